import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { INTERVALS } from '../../shared/intervals.ts'
import { defineJob } from '../job/define-job.ts'
import { openPriceConfirmation, openSuspectCheck } from '../prices/confirmation.ts'
import { openPriceReplay } from '../prices/replay.ts'
import { coingecko } from '../providers/coingecko/prices.ts'
import { coinmarketcap } from '../providers/coinmarketcap/prices.ts'
import { defillamaPrices } from '../providers/defillama/current-prices.ts'

/** Market data of every token with a live price. */
export default defineJob({
  name: 'prices',
  cadence: '5m',
  dataset: tokenPrices,
  providers: [coinmarketcap, coingecko],
  entities: tokenPrices.entities,
  history: { intervals: INTERVALS, chunkEntities: 20, chunkPoints: 2500 },
  slotEntities: 1000,
  witnesses: [defillamaPrices],
  openConfirmation: openPriceConfirmation,
  openConfirmationReplay: openPriceReplay,
  openHistoryCheck: openSuspectCheck,
  run: ({ provider, entities, range, ...run }) =>
    range ? provider.fetchHistory(entities, range, run) : provider.fetchLatest(entities, run),
})
