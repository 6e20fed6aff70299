import { moralisDeclaration } from '../../../shared/config/providers/moralis.ts'
import { TOP_HOLDERS } from '../../../shared/datasets/holders.ts'
import { DataError } from '../../../shared/errors.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Provider } from '../../job/define-job.ts'
import { checkAnswer, toUnknown } from '../answer.ts'
import { type HoldersSource, toTokensPerSlot } from '../contracts/holders.ts'
import { toCallsPerSlot } from './budget.ts'
import { MORALIS_CHAINS, NO_SUCH_TOKEN, openMoralis } from './client.ts'
import { holdersAnswer, ownersAnswer, toHoldersRow } from './holder-rows.ts'

/** Limit of followed cursors: a page has 100 owners unless the provider returns fewer. */
const MOST_PAGES = 10
const CONCURRENCY = 4

/**
 * Moralis (docs/providers.md, section 4). Without a key, every call is `provider_unconfigured`. If a day's units do not
 * suffice for all tokens in every slot, the tokens take turns.
 */
export const moralis: Provider<HoldersSource, Token> = {
  name: 'moralis',
  cost: moralisDeclaration.cost,
  covers: (token) => token.chain in MORALIS_CHAINS,
  connect(context) {
    const { apiKey, requestsPerMinute } = context.config.providers.moralis
    const callsPerSlot = toCallsPerSlot(context.config, 'holders')
    const client = openMoralis(context)
    return {
      name: 'moralis',
      concurrency: CONCURRENCY,
      tokensPerSlot: toTokensPerSlot(requestsPerMinute, callsPerSlot),
      async fetchHolders(token, slot, signal) {
        if (apiKey === undefined) throw new DataError('provider_unconfigured', 'moralis: MORALIS_API_KEY is not set')
        const owners = await fetchOwners(client, token, signal)
        if (owners.length === 0) return undefined
        return toHoldersRow(await fetchHolderCount(client, token, signal), owners, token, slot)
      },
    }
  },
}

/** Fetches the largest owners. @throws DataError `provider_unknown` if the provider does not know the token. */
async function fetchOwners(client: HttpClient, token: Token, signal: AbortSignal) {
  const path = `/erc20/${token.contractAddress}/owners`
  const owners = []
  let cursor: string | undefined
  for (let page = 0; page < MOST_PAGES && owners.length < TOP_HOLDERS; page += 1) {
    const query = { chain: MORALIS_CHAINS[token.chain], limit: TOP_HOLDERS, order: 'DESC', cursor }
    const route = '/erc20/{address}/owners'
    const answer = await client.json({ path, route, query, signal, absent: NO_SUCH_TOKEN })
    if (answer === undefined) throw toUnknown('moralis', path)
    const { result, cursor: next } = checkAnswer(ownersAnswer, answer, { provider: 'moralis', path })
    owners.push(...result)
    if (!next) break
    cursor = next
  }
  return owners
}

async function fetchHolderCount(client: HttpClient, token: Token, signal: AbortSignal) {
  const path = `/erc20/${token.contractAddress}/holders`
  const route = '/erc20/{address}/holders'
  const query = { chain: MORALIS_CHAINS[token.chain] }
  const answer = await client.json({ path, route, query, signal, absent: NO_SUCH_TOKEN })
  if (answer === undefined) throw toUnknown('moralis', path)
  return checkAnswer(holdersAnswer, answer, { provider: 'moralis', path })
}
