import { dexTrades } from '../../shared/datasets/dex-trades.ts'
import { toId, toKey } from '../../shared/ids.ts'
import { remembering } from '../../shared/intervals.ts'
import { defineJob } from '../job/define-job.ts'
import { ethereum, isReadFromNode } from '../providers/evm/trades.ts'
import { moralisSwaps } from '../providers/moralis/trades.ts'

const toChainKey = remembering((chain) => toKey(toId('chain', chain)))

/**
 * Trades on decentralized exchanges of every live token. A chain has one source, because a second one would count
 * trades twice.
 */
export default defineJob({
  name: 'dex-trades',
  cadence: '1h',
  dataset: dexTrades,
  providers: [ethereum, moralisSwaps],
  entities: dexTrades.entities,
  history: { intervals: ['1h'], chunkEntities: 20, chunkPoints: 24 },
  slotEntities: 1000,
  // The pools of a chain are read together from its node, with shared cursors.
  batchKey: ({ chain, key }, { providers }) => (isReadFromNode(chain, providers.rpc.urls) ? toChainKey(chain) : key),
  run: ({ provider, range, ...request }) =>
    range ? provider.fetchHistory({ ...request, range }) : provider.fetchNew(request),
})
