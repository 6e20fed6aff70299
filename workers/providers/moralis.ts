import { TOP_HOLDERS } from '../../shared/datasets/holders.ts'
import { DataError } from '../../shared/errors.ts'
import type { Token } from '../../shared/registry/registry.ts'
import type { Provider } from '../define.ts'
import { checkAnswer } from './answer.ts'
import { type HoldersSource, toTokensPerSlot } from './holders-source.ts'
import type { ErrorReading, HttpClient } from './http.ts'
import { holdersAnswer, ownersAnswer, toHoldersRow } from './moralis-owners.ts'

/** The provider's names of the registry's chains; a chain that is not here is not asked for. */
const CHAINS: Readonly<Record<string, string>> = {
  arbitrum: 'arbitrum',
  avalanche: 'avalanche',
  base: 'base',
  bnb: 'bsc',
  ethereum: 'eth',
  fantom: 'fantom',
  gnosis: 'gnosis',
  linea: 'linea',
  optimism: 'optimism',
  polygon: 'polygon',
}

/** A token that the provider does not know, or does not take for one. */
const NO_SUCH_TOKEN = [400, 404]
/** A bound on following cursors: a page has a hundred owners unless the provider cuts it shorter. */
const MOST_PAGES = 10
const CONCURRENCY = 4

/** Moralis (providers document, section 4). It needs a key; without one every call is `provider_rejected`. */
export const moralis: Provider<HoldersSource, Token> = {
  name: 'moralis',
  covers: (token) => token.chain in CHAINS,
  connect({ config, http }) {
    const { apiKey, ...settings } = config.providers.moralis
    const headers = apiKey === undefined ? {} : { 'X-API-Key': apiKey }
    const client = http.open({ provider: 'moralis', ...settings, headers, readError })
    return {
      concurrency: CONCURRENCY,
      tokensPerSlot: toTokensPerSlot(settings.requestsPerMinute),
      async fetchHolders(token, slot, signal) {
        if (apiKey === undefined) throw new DataError('provider_rejected', 'moralis: MORALIS_API_KEY is not set')
        const owners = await fetchOwners(client, token, signal)
        if (owners.length === 0) return undefined
        const about = await fetchHolderCount(client, token, signal)
        return about === undefined ? undefined : toHoldersRow(about, owners, token, slot)
      },
    }
  },
}

/** The largest owners; none for a token that the provider does not know. */
async function fetchOwners(client: HttpClient, token: Token, signal: AbortSignal) {
  const path = `/erc20/${token.contractAddress}/owners`
  const owners = []
  let cursor: string | undefined
  for (let page = 0; page < MOST_PAGES && owners.length < TOP_HOLDERS; page += 1) {
    const query = { chain: CHAINS[token.chain], limit: TOP_HOLDERS, order: 'DESC', cursor }
    const route = '/erc20/{address}/owners'
    const answer = await client.json({ path, route, query, signal, absent: NO_SUCH_TOKEN })
    if (answer === undefined) return []
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
  const query = { chain: CHAINS[token.chain] }
  const answer = await client.json({ path, route, query, signal, absent: NO_SUCH_TOKEN })
  return answer === undefined ? undefined : checkAnswer(holdersAnswer, answer, { provider: 'moralis', path })
}

/** Adds the setting to look at; which statuses are worth another try is as everywhere. */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status !== 401 && status !== 402 && status !== 403) return undefined
  return { code: 'provider_rejected', says: `${body} (check MORALIS_API_KEY and its plan)` }
}
