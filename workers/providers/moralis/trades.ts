import { DataError } from '../../../shared/errors.ts'
import { HOUR_MS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Provider } from '../../job/define-job.ts'
import { checkAnswer, toUnknown } from '../answer.ts'
import { askEach } from '../ask-each.ts'
import type { TradeSource } from '../contracts/trades.ts'
import { isReadFromNode } from '../evm/trades.ts'
import { MORALIS_CHAINS, NO_SUCH_TOKEN, openMoralis } from './client.ts'
import { type MoralisSwap, swapsAnswer, toMoralisTrades } from './trade-rows.ts'

const SWAPS_PER_PAGE = 100
const CONCURRENCY = 4

/**
 * Trades from Moralis (providers document, section 4.3), for tokens on chains that are not read from a node. The two
 * number the swaps of a transaction differently, so a chain with both sources would count trades twice. It needs a key;
 * without one every call is `provider_unconfigured`.
 */
export const moralisSwaps: Provider<TradeSource, Token> = {
  name: 'moralis-swaps',
  covers: ({ chain }, config) => chain in MORALIS_CHAINS && !isReadFromNode(chain, config.providers.rpc.urls),
  connect(context) {
    const { apiKey } = context.config.providers.moralis
    const firstRunMs = context.config.dex.firstRunHours * HOUR_MS
    const client = openMoralis(context)
    const fetchTrades = async (token: Token, from: number, to: number | undefined, signal: AbortSignal) => {
      if (apiKey === undefined) throw missingKey(token)
      const swaps = await fetchSwaps(client, token, from, to, signal)
      return toMoralisTrades(swaps, token)
    }
    return {
      fetchNew: async ({ entities, slot, state, noteRead, refuse, log, signal }) => {
        const fetchSince = async (token: Token) => {
          const last = await state.get(toStateName(token))
          // An hour is read again, because the newest blocks of the last run may not have been final.
          const from = last === undefined ? slot - firstRunMs : Number(last) - HOUR_MS
          const trades = await fetchTrades(token, from, undefined, signal)
          state.set(toStateName(token), String(slot))
          noteRead([token])
          return trades
        }
        return (await askEach(entities, fetchSince, { concurrency: CONCURRENCY, log, refuse })).flat()
      },
      fetchHistory: async ({ entities, range, refuse, log, signal }) => {
        const fetchIn = (token: Token) => fetchTrades(token, range.from, range.to, signal)
        return (await askEach(entities, fetchIn, { concurrency: CONCURRENCY, log, refuse, range })).flat()
      },
    }
  },
}

const toStateName = ({ id }: Token) => `moralis.${id}`

function missingKey({ chain }: Token): DataError {
  const message = `moralis: MORALIS_API_KEY is not set, and RPC_URLS names no node to read the trades on ${chain} from`
  return new DataError('provider_unconfigured', message)
}

/**
 * All swaps of a token in [from, to), both in Unix milliseconds; up to now without an end.
 * @throws DataError `provider_unknown` for a token that the provider does not know.
 */
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
    if (answer === undefined) throw toUnknown('moralis', path)
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
