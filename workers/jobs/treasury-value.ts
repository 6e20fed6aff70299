import { daoTreasury } from '../../shared/datasets/treasury.ts'
import { treasuryValue } from '../../shared/datasets/treasury-value.ts'
import { defineJob } from '../job/define-job.ts'
import { isMember, storedSeries, sumDays, toSummed, withinDays } from '../providers/stored/series.ts'

/**
 * The first treasury of the day of each DAO that counts on it. A value of 0 means that none of its holdings has a price, so it counts as
 * unknown.
 */
const TREASURIES = `
  SELECT toStartOfDay(observed_at, 'UTC') AS day, argMin(value_usd, observed_at) AS usd
  FROM dao_treasuries FINAL
  WHERE ${withinDays('observed_at')} AND value_usd > 0 AND ${isMember('dao', 'observed_at', 'daos')}
  GROUP BY dao, day`

/** The value by day of the treasuries of all DAOs that were live then, from the stored treasuries (contract section 4). */
export default defineJob({
  name: 'treasury-value',
  cadence: '1d',
  dataset: treasuryValue,
  providers: [storedSeries],
  computedFrom: [daoTreasury],
  entities: (registry) => toSummed(treasuryValue.entities(registry), registry.daos),
  history: { intervals: ['1d'], chunkEntities: 1, chunkPoints: 366 },
  run: (run) => sumDays(run, { name: 'sum-treasuries', table: 'treasury_values', members: TREASURIES }),
})
