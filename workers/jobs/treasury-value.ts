import { daoTreasury } from '../../shared/datasets/treasury.ts'
import { treasuryValue } from '../../shared/datasets/treasury-value.ts'
import { defineJob } from '../job/define-job.ts'
import { storedSeries, toDays, withinDays } from '../providers/stored/series.ts'

/**
 * Each live DAO's first treasury of the day. A value of 0 means that none of its holdings has a price, so it counts as
 * unknown.
 */
const TREASURIES = `
  SELECT toStartOfDay(observed_at, 'UTC') AS day, argMin(value_usd, observed_at) AS usd
  FROM dao_treasuries FINAL
  WHERE dao IN (SELECT key FROM daos FINAL WHERE live) AND ${withinDays('observed_at')} AND value_usd > 0
  GROUP BY dao, day`

/** The value of the treasuries of all live DAOs by day, from the stored treasuries (contract section 4). */
export default defineJob({
  name: 'treasury-value',
  cadence: '1d',
  dataset: treasuryValue,
  providers: [storedSeries],
  computedFrom: [daoTreasury],
  entities: treasuryValue.entities,
  history: { intervals: ['1d'], chunkEntities: 1, chunkPoints: 366 },
  run: (run) =>
    run.provider.sumChangedDays(
      { name: 'sum-treasuries', table: 'treasury_values', members: TREASURIES },
      toDays(run),
      run.signal,
    ),
})
