import { dexTrades } from '../../shared/datasets/dex-trades.ts'
import { defineJob } from '../job/define-job.ts'
import { ethereum } from '../providers/evm/trades.ts'
import { moralisSwaps } from '../providers/moralis/trades.ts'

/** Trades on decentralized exchanges of every live token. A chain has one source, because two would count twice. */
export default defineJob({
  name: 'dex-trades',
  cadence: '1h',
  dataset: dexTrades,
  providers: [ethereum, moralisSwaps],
  entities: dexTrades.entities,
  history: { intervals: ['1h'], chunkEntities: 20, chunkPoints: 24 },
  run: ({ provider, range, ...request }) =>
    range ? provider.fetchHistory({ ...request, range }) : provider.fetchNew(request),
})
