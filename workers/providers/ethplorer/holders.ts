import { ethplorerDeclaration } from '../../../shared/config/providers/ethplorer.ts'
import { TOP_HOLDERS } from '../../../shared/datasets/holders.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Provider } from '../../job/define-job.ts'
import { type HoldersSource, toTokensPerSlot } from '../contracts/holders.ts'
import { fetchAnswer, openEthplorer } from './client.ts'
import { toHoldersRow, tokenInfoAnswer, topHoldersAnswer } from './holder-rows.ts'

/** The free key allows two calls a second, so tokens are requested in sequence. */
const CONCURRENCY = 1

/**
 * Ethplorer and, for BNB Chain, its sister host, with one key and one quota (docs/providers.md, section 5). The free
 * key allows 3,000 calls a week. The default of 16 an hour is below that: 8 tokens a slot.
 */
export const ethplorer: Provider<HoldersSource, Token> = {
  name: 'ethplorer',
  cost: ethplorerDeclaration.cost,
  hostPerChain: true,
  covers: ({ chain }) => chain === 'ethereum' || chain === 'bnb',
  connect(context) {
    const { apiKey, requestsPerMinute, requestsPerHour } = context.config.providers.ethplorer
    const clientOf = openEthplorer(context)
    return {
      name: 'ethplorer',
      concurrency: CONCURRENCY,
      tokensPerSlot: toTokensPerSlot(requestsPerMinute, requestsPerHour),
      async fetchHolders(token, slot, signal) {
        const client = clientOf(token)
        const query = { apiKey, limit: TOP_HOLDERS }
        const list = await fetchAnswer(client, 'getTopTokenHolders', topHoldersAnswer, token, query, signal)
        if (list.holders.length === 0) return undefined
        const info = await fetchAnswer(client, 'getTokenInfo', tokenInfoAnswer, token, { apiKey }, signal)
        return toHoldersRow(list, info, token, slot)
      },
    }
  },
}
