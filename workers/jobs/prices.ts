import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVALS } from '../../shared/intervals.ts'
import { defineJob } from '../job/define-job.ts'
import { coingecko } from '../providers/coingecko/prices.ts'
import { coinmarketcap } from '../providers/coinmarketcap/prices.ts'
import { openPriceCheck } from '../providers/plausibility.ts'

/** Market data of every token with a live price. */
export default defineJob({
  name: 'prices',
  cadence: '5m',
  dataset: tokenPrices,
  providers: [coinmarketcap, coingecko],
  entities: tokenPrices.entities,
  history: { intervals: INTERVALS, chunkEntities: 20, chunkPoints: 2500 },
  slotEntities: 1000,
  openPlausibilityCheck: openPriceCheck,
  run: ({ provider, entities, range, ...run }) =>
    range ? provider.fetchHistory(entities, range, run) : provider.fetchLatest(entities, run),
})
