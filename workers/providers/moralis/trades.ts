import type { Config } from '../../../shared/config/config.ts'
import { DataError } from '../../../shared/errors.ts'
import { HOUR_MS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import { type Allowance, openSlotAllowance, toShare } from '../../job/allowance.ts'
import type { Provider } from '../../job/define-job.ts'
import { checkAnswer, toUnknown } from '../answer.ts'
import { askEach } from '../ask-each.ts'
import type { NewTradeRequest, TradeSource } from '../contracts/trades.ts'
import { isReadFromNode } from '../evm/trades.ts'
import { orderByMarketCap } from '../stored/market-caps.ts'
import { toCallsPerSlot } from './budget.ts'
import { MORALIS_CHAINS, NO_SUCH_TOKEN, openMoralis } from './client.ts'
import { type MoralisSwap, swapsAnswer, toMoralisTrades } from './trade-rows.ts'

const SWAPS_PER_PAGE = 100
const CONCURRENCY = 4

/**
 * Trades from Moralis (providers document, section 4.3), for tokens on chains that are not read from a node. The two
 * number the swaps of a transaction differently, so a chain with both sources would count trades twice. It needs a key;
 * without one every call is `provider_unconfigured`. The largest tokens come first, and those for which a day's units leave
 * no call are refused as `provider_unconfigured` too.
 */
export const moralisSwaps: Provider<TradeSource, Token> = {
  name: 'moralis-swaps',
  covers: ({ chain }, config) => chain in MORALIS_CHAINS && !isReadFromNode(chain, config.providers.rpc.urls),
  connect(context) {
    const { apiKey } = context.config.providers.moralis
    const firstRunMs = context.config.dex.firstRunHours * HOUR_MS
    const client = openMoralis(context)
    return {
      fetchNew: async ({ entities, peers, piece, slot, state, noteRead, refuse, log, signal }) => {
        const ranked = await orderByMarketCap(context.db, peers.all, slot)
        const calls = toCalls(toCallsPerSlot(context.config, 'swaps'), ranked, { peers, piece, slot })
        const allowance = await openSlotAllowance(state, { name: 'moralis', slot, calls, piece })
        const asked = new Set(entities.map(({ key }) => key))
        const tokens = ranked.filter(({ key }) => asked.has(key))
        const fetchSince = async (token: Token) => {
          if (apiKey === undefined) throw missingKey(token)
          // Before anything is waited for, so that the first in order have the first calls.
          const isAsked = allowance.take()
          const last = await state.get(toStateName(token))
          // An hour is read again, because the newest blocks of the last run may not have been final.
          const from = last === undefined ? slot - firstRunMs : Number(last) - HOUR_MS
          const { swaps, next } = isAsked
            ? await fetchSwaps(client, token, { from, to: undefined }, signal, allowance)
            : { swaps: [], next: from }
          // Read on from here in the next slot, where the calls of this one did not do.
          if (next !== undefined) refuse(token, toOverBudget(context.config))
          else noteRead([token])
          state.set(toStateName(token), String(next === undefined ? slot : next + HOUR_MS))
          return toMoralisTrades(swaps, token)
        }
        try {
          return (await askEach(tokens, fetchSince, { concurrency: CONCURRENCY, log, refuse })).flat()
        } finally {
          await allowance.save()
        }
      },
      fetchHistory: async ({ entities, range, refuse, log, signal }) => {
        const fetchIn = async (token: Token) => {
          if (apiKey === undefined) throw missingKey(token)
          return toMoralisTrades((await fetchSwaps(client, token, range, signal)).swaps, token)
        }
        return (await askEach(entities, fetchIn, { concurrency: CONCURRENCY, log, refuse, range })).flat()
      },
    }
  },
}

/**
 * The calls of a piece: one for each of its tokens among the largest that there are calls for, and its share of those that
 * are left for further pages. The pieces of a slot have all its calls together.
 */
function toCalls(
  perSlot: number,
  ranked: readonly Token[],
  { peers, piece, slot }: Pick<NewTradeRequest, 'peers' | 'piece' | 'slot'>,
): number {
  const own = new Set(peers.own.map(({ key }) => key))
  const first = ranked.slice(0, perSlot).filter(({ key }) => own.has(key))
  return first.length + toShare(Math.max(0, perSlot - ranked.length), slot, piece)
}

const toStateName = ({ id }: Token) => `moralis.${id}`

function missingKey({ chain }: Token): DataError {
  const message = `moralis: MORALIS_API_KEY is not set, and RPC_URLS names no node to read the trades on ${chain} from`
  return new DataError('provider_unconfigured', message)
}

/** Without a call left the token is not asked for in this slot. */
function toOverBudget({ providers }: Config): DataError {
  const message = `moralis: MORALIS_UNITS_PER_DAY of ${providers.moralis.unitsPerDay} leaves no call for it in an hour; larger tokens come first`
  return new DataError('provider_unconfigured', message)
}

interface Swaps {
  readonly swaps: readonly MoralisSwap[]
  /** Where the reading ended early, in Unix milliseconds: all swaps before it are there. */
  readonly next: number | undefined
}

/**
 * All swaps of a token in [from, to), both in Unix milliseconds; up to now without an end. They come oldest first, with as
 * many further pages as the allowance has, and with those that the first block takes whatever it has: where a reading
 * ended in the block that it began with, the next one would have the same pages.
 * @throws DataError `provider_unknown` for a token that the provider does not know.
 */
async function fetchSwaps(
  client: HttpClient,
  token: Token,
  { from, to }: { readonly from: number; readonly to: number | undefined },
  signal: AbortSignal,
  allowance?: Allowance,
): Promise<Swaps> {
  const path = `/erc20/${token.contractAddress}/swaps`
  const swaps: MoralisSwap[] = []
  const isInside = ({ blockTimestamp }: MoralisSwap) => {
    const ms = Date.parse(String(blockTimestamp))
    // A time that cannot be read is the row check's to reject, and to count.
    return !(ms < from) && !(to !== undefined && ms >= to)
  }
  let cursor: string | null | undefined
  do {
    if (cursor && allowance?.take() === false) {
      const last = Date.parse(String(swaps.at(-1)?.blockTimestamp))
      if (!(last <= from)) return { swaps: swaps.filter(isInside), next: Number.isNaN(last) ? from : last }
    }
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
  return { swaps: swaps.filter(isInside), next: undefined }
}
