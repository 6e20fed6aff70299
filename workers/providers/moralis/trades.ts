import { z } from 'zod'
import type { Config } from '../../../shared/config/config.ts'
import { moralisDeclaration } from '../../../shared/config/providers/moralis.ts'
import type { DexTradeRow } from '../../../shared/datasets/dex-trades.ts'
import { DataError } from '../../../shared/errors.ts'
import { HOUR_MS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Candidate, Provider, Range } from '../../job/define-job.ts'
import { type Allowance, openSlotAllowance, recall, toShare } from '../../job/state.ts'
import { checkAnswer, isTime, toUnknown } from '../answer.ts'
import type { NewTradeRequest, TradeSource } from '../contracts/trades.ts'
import { isReadFromNode } from '../evm/trades.ts'
import { requestEach } from '../requests.ts'
import { orderByMarketCap } from '../stored/market-caps.ts'
import { toCallsPerSlot } from './budget.ts'
import { MORALIS_CHAINS, NO_SUCH_TOKEN, openMoralis } from './client.ts'
import { type MoralisSwap, swapsAnswer, toMoralisTrades, toUnreadTrades } from './trade-rows.ts'

const SWAPS_PER_PAGE = 100
const CONCURRENCY = 4

/**
 * Trades from Moralis (docs/providers.md, section 4.3), for tokens on chains that are not read from a node. The two
 * sources number the swaps of a transaction differently, so a chain with both would count trades twice. Without a key,
 * every call is `provider_unconfigured`. The largest tokens come first. Tokens without a call left in the day's units
 * are refused as `provider_unconfigured`, too.
 */
export const moralisSwaps: Provider<TradeSource, Token> = {
  name: 'moralis-swaps',
  cost: moralisDeclaration.cost,
  covers: ({ chain }, config) => chain in MORALIS_CHAINS && !isReadFromNode(chain, config.providers.rpc.urls),
  connect(context) {
    const { apiKey } = context.config.providers.moralis
    const now = context.now ?? Date.now
    const firstRunMs = context.config.dex.firstRunHours * HOUR_MS
    const client = openMoralis(context)
    return {
      fetchNew: async ({ entities, peers, batch, slot, state, noteRead, refuse, log, signal }) => {
        const ranked = await orderByMarketCap(context.db, peers.all, slot)
        const calls = toCalls(toCallsPerSlot(context.config, 'swaps'), ranked, { peers, batch, slot })
        const allowance = await openSlotAllowance(state, { name: 'moralis', slot, calls, batch })
        const requested = new Set(entities.map(({ key }) => key))
        const tokens = ranked.filter(({ key }) => requested.has(key))
        const cutOff: Candidate<DexTradeRow>[] = []
        const fetchSince = async (token: Token) => {
          if (apiKey === undefined) throw missingKey(token)
          // Taken before the first await, so that the first tokens in order get the first calls.
          const isAllowed = allowance.take()
          const [last, began] = await Promise.all([
            recall(state, toStateName(token), readUntil),
            recall(state, toSinceName(token), readUntil),
          ])
          // The last hour is read again, because the newest blocks of the last run may not have been final.
          const from = last === undefined ? slot - firstRunMs : last - HOUR_MS
          const since = last === undefined ? from : (began ?? from)
          const final = slot - HOUR_MS
          const { swaps, unread, next, failure } = isAllowed
            ? await fetchSwaps(client, token, { from, to: undefined }, signal, allowance)
            : { swaps: [], unread: 0, next: from, failure: undefined }
          const trades = [...toMoralisTrades(swaps, token), ...toUnreadTrades(unread, token)]
          state.set(toStateName(token), String(next === undefined ? slot : next + HOUR_MS))
          state.set(toSinceName(token), String(next === undefined ? Math.max(since, final) : since))
          if (failure !== undefined) {
            cutOff.push(...trades)
            throw failure
          }
          // The next slot continues here if this slot's calls do not suffice.
          if (next !== undefined) refuse(token, toOverBudget(context.config))
          else noteRead([token], { from: since, to: final })
          return trades
        }
        try {
          const complete = await requestEach(tokens, fetchSince, {
            ...{ concurrency: CONCURRENCY, log, refuse, state, providerName: 'moralis' },
            expected: peers.own,
          })
          return [...complete.flat(), ...cutOff]
        } finally {
          await allowance.save()
        }
      },
      fetchHistory: async ({ entities, range, state, refuse, noteRead, log, signal }) => {
        const final = now() - HOUR_MS
        const cutOff: Candidate<DexTradeRow>[] = []
        const fetchIn = async (token: Token) => {
          if (apiKey === undefined) throw missingKey(token)
          const name = toRangeName(token, range)
          const startedAt = await recall(state, name, readUntil)
          const from = startedAt ?? range.from
          const { swaps, unread, next, failure } = await fetchSwaps(client, token, { from, to: range.to }, signal)
          const trades = [...toMoralisTrades(swaps, token), ...toUnreadTrades(unread, token)]
          if (failure !== undefined) {
            // The pages so far are billed, so the next attempt continues after them.
            state.set(name, String(next))
            cutOff.push(...trades)
            throw failure
          }
          if (startedAt !== undefined) state.set(name, DONE)
          noteRead([token], { from: range.from, to: Math.min(range.to, final) })
          return trades
        }
        const complete = await requestEach(entities, fetchIn, {
          ...{ concurrency: CONCURRENCY, log, refuse, range, state, providerName: 'moralis' },
        })
        return [...complete.flat(), ...cutOff]
      },
    }
  },
}

/**
 * Returns the calls of a batch: one for each of its tokens among the largest tokens that have a call, plus its share of
 * the remaining calls, which are for further pages. The calls of all batches add up to those of the slot.
 */
function toCalls(
  perSlot: number,
  ranked: readonly Token[],
  { peers, batch, slot }: Pick<NewTradeRequest, 'peers' | 'batch' | 'slot'>,
): number {
  const own = new Set(peers.own.map(({ key }) => key))
  const first = ranked.slice(0, perSlot).filter(({ key }) => own.has(key))
  return first.length + toShare(Math.max(0, perSlot - ranked.length), slot, batch)
}

const toStateName = ({ id }: Token) => `moralis.${id}`
/** State name of the time from which a token has been read without a gap, in Unix milliseconds. */
const toSinceName = (token: Token) => `${toStateName(token)}.since`

/** State name of the position of an unfinished range. */
const toRangeName = (token: Token, { from, to }: Range) => `${toStateName(token)}.${from}.${to}`
/** The state cannot delete a name, so an empty text means no value. */
const DONE = ''

/** State: the time up to which trades were read, in Unix milliseconds. */
const readUntil = z.int()

function missingKey({ chain }: Token): DataError {
  const message = `moralis: MORALIS_API_KEY is not set, and RPC_URLS names no node to read the trades on ${chain} from`
  return new DataError('provider_unconfigured', message)
}

/** The error for a token that has no call left in this slot. */
function toOverBudget({ providers }: Config): DataError {
  const message = `moralis: MORALIS_UNITS_PER_DAY of ${providers.moralis.unitsPerDay} leaves no call for it in an hour; larger tokens come first`
  return new DataError('provider_unconfigured', message)
}

/** Unix milliseconds; an undefined end means now. */
interface Span {
  readonly from: number
  readonly to: number | undefined
}

interface Swaps {
  readonly swaps: readonly MoralisSwap[]
  /** Number of unreadable swaps, which are not in `swaps`. */
  readonly unread: number
  /** Time at which the reading stopped early, in Unix milliseconds: all swaps before it are included. */
  readonly next: number | undefined
  /** Why the reading stopped; undefined if the allowance was used up. */
  readonly failure: DataError | undefined
}

/**
 * Fetches all swaps of a token in [from, to), oldest first, with as many further pages as the allowance permits. The
 * pages of the first block are always read: if a reading stopped in its first block, the next reading would fetch the
 * same pages. A failed page stops the reading before the last block of the earlier pages, because that block may
 * continue on the failed page.
 * @throws DataError of a failed page if there are no earlier results; `provider_unknown` if the provider does not know
 *   the token.
 */
async function fetchSwaps(
  client: HttpClient,
  token: Token,
  { from, to }: Span,
  signal: AbortSignal,
  allowance?: Allowance,
): Promise<Swaps> {
  const swaps: MoralisSwap[] = []
  // An impossible time is kept for the row check to reject and count.
  const isInside = (swap: MoralisSwap) =>
    !isTime(toTime(swap)) || (toTime(swap) >= from && (to === undefined || toTime(swap) < to))
  let unread = 0
  let cursor: string | null | undefined
  do {
    const last = toTime(swaps.findLast((swap) => isTime(toTime(swap))))
    if (cursor && allowance?.take() === false && !(last <= from))
      return { swaps: swaps.filter(isInside), unread, next: Number.isNaN(last) ? from : last, failure: undefined }
    try {
      const page = await fetchPage(client, token, { from, to }, cursor, signal)
      const readable = page.result.filter((swap) => swap !== null)
      swaps.push(...readable)
      unread += page.result.length - readable.length
      cursor = page.result.length === 0 ? null : page.cursor
    } catch (failure) {
      if (!(failure instanceof DataError) || !(last > from)) throw failure
      const complete = swaps.filter((swap) => isInside(swap) && !(toTime(swap) >= last))
      return { swaps: complete, unread, next: last, failure }
    }
  } while (cursor)
  return { swaps: swaps.filter(isInside), unread, next: undefined, failure: undefined }
}

/** Returns the time of a swap's block in Unix milliseconds; NaN if there is none. */
const toTime = (swap: MoralisSwap | undefined): number => Date.parse(String(swap?.blockTimestamp))

async function fetchPage(
  client: HttpClient,
  token: Token,
  { from, to }: Span,
  cursor: string | null | undefined,
  signal: AbortSignal,
) {
  const path = `/erc20/${token.contractAddress}/swaps`
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
  return checkAnswer(swapsAnswer, answer, { provider: 'moralis', path })
}
