import { DataError } from '../../shared/errors.ts'
import type { Token } from '../../shared/registry/registry.ts'
import type { Provider } from '../define.ts'
import { checkAnswer } from './answer.ts'
import { isReadFromNode } from './ethereum.ts'
import type { HttpClient } from './http.ts'
import { MORALIS_CHAINS } from './moralis-chains.ts'
import { type MoralisSwap, swapsAnswer, toMoralisTrades } from './moralis-trades.ts'
import type { TradeSource } from './trade-source.ts'

const HOUR_MS = 3_600_000
const SWAPS_PER_PAGE = 100
/** A token that the provider does not know. */
const NO_SUCH_TOKEN = [404]
const NO_ACCESS = new Set([401, 402, 403])

/**
 * Trades from Moralis (providers document, section 4.3), for tokens on chains that are not read from a node: the two number
 * the swaps of a transaction differently, so that a chain with both would count trades twice. It needs a key; without
 * one every call is `provider_rejected`.
 */
export const moralisSwaps: Provider<TradeSource, Token> = {
  name: 'moralis-swaps',
  covers: ({ chain }, config) => chain in MORALIS_CHAINS && !isReadFromNode(chain, config.providers.rpc.urls),
  connect({ config, http }) {
    const { apiKey, ...settings } = config.providers.moralis
    const headers = apiKey === undefined ? {} : { 'X-API-Key': apiKey }
    const client = http.open({ provider: 'moralis', ...settings, headers, readError })
    const fetchAll = async (tokens: readonly Token[], from: number, to: number | undefined, signal: AbortSignal) => {
      if (apiKey === undefined) throw missingKey(tokens)
      const rows = []
      for (const token of tokens)
        rows.push(...toMoralisTrades(await fetchSwaps(client, token, from, to, signal), token))
      return rows
    }
    return {
      fetchNew: async (tokens, slot, state, signal) => {
        const since = slot - config.dex.firstRunHours * HOUR_MS
        const starts = new Map<number, Token[]>()
        for (const token of tokens) {
          const last = await state.get(toStateName(token))
          // An hour is read again, because the newest blocks of the last run may not have been final.
          const from = last === undefined ? since : Number(last) - HOUR_MS
          starts.set(from, [...(starts.get(from) ?? []), token])
        }
        const rows = []
        for (const [from, own] of starts) rows.push(...(await fetchAll(own, from, undefined, signal)))
        for (const token of tokens) state.set(toStateName(token), String(slot))
        return rows
      },
      fetchHistory: (tokens, range, _state, signal) => fetchAll(tokens, range.from, range.to, signal),
    }
  },
}

const toStateName = ({ id }: Token) => `moralis.${id}`

function missingKey(tokens: readonly Token[]): DataError {
  const chains = [...new Set(tokens.map(({ chain }) => chain))].join(', ')
  const message = `moralis: MORALIS_API_KEY is not set, and RPC_URLS has no node that trades on ${chains} could be read from`
  return new DataError('provider_rejected', message)
}

/** All swaps of a token in [from, to), both in Unix milliseconds; up to now without an end. */
async function fetchSwaps(
  client: HttpClient,
  token: Token,
  from: number,
  to: number | undefined,
  signal: AbortSignal,
): Promise<MoralisSwap[]> {
  const path = `/erc20/${token.contractAddress}/swaps`
  const swaps: MoralisSwap[] = []
  let cursor: string | null | undefined
  do {
    const query = {
      chain: MORALIS_CHAINS[token.chain],
      fromDate: new Date(from).toISOString(),
      toDate: to === undefined ? undefined : new Date(to).toISOString(),
      limit: SWAPS_PER_PAGE,
      order: 'ASC',
      transactionTypes: 'buy,sell',
      cursor: cursor ?? undefined,
    }
    const answer = await client.json({ path, route: '/erc20/{address}/swaps', query, signal, absent: NO_SUCH_TOKEN })
    if (answer === undefined) return []
    const page = checkAnswer(swapsAnswer, answer, { provider: 'moralis', path })
    swaps.push(...page.result)
    cursor = page.result.length === 0 ? null : page.cursor
  } while (cursor)
  const isInside = ({ blockTimestamp }: MoralisSwap) => {
    const ms = Date.parse(String(blockTimestamp))
    // A time that cannot be read is the row check's to reject, and to count.
    return !(ms < from) && !(to !== undefined && ms >= to)
  }
  return swaps.filter(isInside)
}

/** Adds the setting to look at; which statuses are worth another try is as everywhere. */
function readError(status: number, body: string) {
  if (!NO_ACCESS.has(status)) return undefined
  return { code: 'provider_rejected', says: `${body} (check MORALIS_API_KEY and its plan)` } as const
}
