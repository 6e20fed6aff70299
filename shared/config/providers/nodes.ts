import { z } from 'zod'
import { chainUrls } from '../rpc-urls.ts'
import { count, declareProvider } from './declaration.ts'

const UNSUITABLE =
  'none; also none with a node that serves 10 blocks per call; only the younger governors with a node without old blocks'

/** The JSON-RPC nodes of the chains: all data that is read from contracts. */
export const nodesDeclaration = declareProvider({
  title: 'Nodes',
  about:
    'DEX trades (also of arbitrum and optimism), governor votes and delegations (of ethereum, arbitrum, optimism and bnb; also of polygon and avalanche for Aave), the Index Token. Moralis serves the trades of chains without a node here. Do not change the source of a chain later, because both sources would count the same trade.',
  settings: {
    RPC_URLS: z
      .string()
      .default('')
      .pipe(chainUrls)
      .meta({ help: 'Nodes by chain, separated by commas, such as ethereum=https://host/key,base=https://host' }),
    RPC_REQUESTS_PER_MINUTE: count
      .default(300)
      .meta({ help: "Calls per minute and node. Each call of a batch counts, as in the nodes' plans." }),
    RPC_BATCH_SIZE: count
      .default(100)
      .meta({ help: 'Maximum calls per batch. If a node refuses a batch, later batches have 3 calls, or 1.' }),
    DEX_FIRST_RUN_HOURS: count.default(24).meta({ help: 'Hours of trades that the first run reads.' }),
  },
  toConfig: (s, limits) => ({
    rpc: {
      ...limits,
      urls: s.RPC_URLS,
      requestsPerMinute: s.RPC_REQUESTS_PER_MINUTE,
      batchSize: s.RPC_BATCH_SIZE,
    },
  }),
  cost: 'as the node bills: each call of a batch counts',
  data: [
    {
      data: 'trades, Index Token',
      key: 'RPC_URLS',
      withoutKey: 'trades are read from Moralis; the Index Token is not collected',
    },
    { data: 'votes on governors', key: 'RPC_URLS', withoutKey: UNSUITABLE },
    { data: 'delegations of voting tokens', key: 'RPC_URLS', withoutKey: UNSUITABLE },
  ],
  days: [
    {
      of: 'nodes (`RPC_URLS`)',
      day: 'each call of a batch counts',
      plan: "by the node. Alchemy's free plan has logs of 10 blocks per call, and the code adapts to it. Free plans of dRPC, 1RPC and Ronin allow 3 calls per batch; the code adapts the size of batches",
    },
    {
      of: 'nodes, for votes on governors and for delegations of voting tokens, each',
      day: "two or three calls per hour and chain, and one for each event without a time from the node. The first reading begins at the first governor: 16 million blocks of Ethereum are 1,600 calls of 10,000 blocks, at 3 minutes of the node's limit per hour; Arbitrum's 400 million are 40,000",
      plan: "a node must serve at least 200 blocks per call for Ethereum, 4,000 for Arbitrum and 2,000 for other chains. `npm run providers` and `/data/status/coverage` name a node that does not. Alchemy's free plan does not. Each governor is read from its own start: a node without old blocks (EIP-4444, error 4444, before block 15,537,393 of Ethereum) serves the younger governors, and the same two name the older ones",
    },
  ],
})
