import { marketCap, toMarketCaps } from '../../shared/datasets/market-cap.ts'
import { defineJob } from '../job/define-job.ts'
import { storedSeries, sumDays, toSummed } from '../providers/stored/series.ts'

/**
 * The daily market capitalization of all tokens that were live on that day, from the stored prices (docs/contract.md,
 * section 4).
 */
export default defineJob({
  name: 'market-cap',
  cadence: '1d',
  dataset: marketCap,
  providers: [storedSeries],
  entities: (registry) => toSummed(marketCap.entities(registry), registry.tokens),
  history: { intervals: ['1d'], chunkEntities: 1, chunkPoints: 366 },
  run: (run) => sumDays(run, { name: 'sum-market-caps', table: 'market_caps', members: toMarketCaps }),
})
