import { toTreasuryValues, treasuryValue } from '../../shared/datasets/treasury-value.ts'
import { defineJob } from '../job/define-job.ts'
import { storedSeries, sumDays, toSummed } from '../providers/stored/series.ts'

/**
 * The daily value of the treasuries of all DAOs that were live on that day, from the stored treasuries
 * (docs/contract.md, section 4).
 */
export default defineJob({
  name: 'treasury-value',
  cadence: '1d',
  dataset: treasuryValue,
  providers: [storedSeries],
  entities: (registry) => toSummed(treasuryValue.entities(registry), registry.daos),
  history: { intervals: ['1d'], chunkEntities: 1, chunkPoints: 366 },
  run: (run) => sumDays(run, { name: 'sum-treasuries', table: 'treasury_values', members: toTreasuryValues }),
})
