import { z } from 'zod'
import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import { INTERVAL_SECONDS, toBucketStart, toMs } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate, Range } from '../../job/define-job.ts'
import { asSent, isTime, toIso, toUnreadable } from '../answer.ts'

const id = z.union([z.number(), z.string()]).transform(String)

/** Members shared by latest and historical quotes; each version omits some. */
const quote = z.object({
  symbol: asSent,
  price: asSent,
  volume_24h: asSent,
  market_cap: asSent,
  total_supply: asSent,
  circulating_supply: asSent,
  fully_diluted_market_cap: asSent,
  volume_change_24h: asSent,
  percent_change_1h: asSent,
  percent_change_24h: asSent,
  percent_change_7d: asSent,
  percent_change_30d: asSent,
  percent_change_60d: asSent,
  percent_change_90d: asSent,
  tvl: asSent,
  timestamp: asSent,
  last_updated: asSent,
})

/** v3 returns a list of quotes, v2 and historical responses a map by currency. Only the USD quote is used. */
const usdQuote = z.preprocess(toUsd, quote.optional())

function toUsd(quotes: unknown): unknown {
  if (Array.isArray(quotes)) return quotes.find((one) => isObject(one) && one.symbol === 'USD')
  return isObject(quotes) ? quotes.USD : (quotes ?? undefined)
}

const latestCoin = z.object({
  id,
  total_supply: asSent,
  circulating_supply: asSent,
  max_supply: asSent,
  quote: usdQuote,
})

/** A backfill reads millions of quotes. A quote is not parsed until it becomes a row. */
const historicalCoin = z.object({ id, quotes: z.array(z.unknown()).nullish() })

interface HistoricalQuote {
  readonly timestamp?: unknown
  readonly quote?: unknown
}

function isHistoricalQuote(value: unknown): value is HistoricalQuote {
  if (!isObject(value)) return false
  const usd = toUsd(value.quote)
  return usd === undefined || isObject(usd)
}

/**
 * A coin with data that does not match the documentation, and the path of the difference. The other coins of the
 * response remain valid.
 */
interface FaultyCoin {
  /** Undefined if the response has no id for it. */
  readonly id: string | undefined
  readonly fault: string
}

/** Parses a coin, or returns its fault. */
function coinOrFault<T extends z.ZodType>(coin: T) {
  return z.unknown().transform((value): z.output<T> | FaultyCoin => {
    const read = coin.safeParse(value)
    if (read.success) return read.data
    const [issue] = read.error.issues
    const fault = `${issue?.path.join('.') || 'coin'}: ${issue?.message}`
    return { id: z.object({ id }).safeParse(value).data?.id, fault }
  })
}

/** Splits the coins of a response into readable and faulty ones. */
export function splitFaulty<C extends object>(coins: readonly (C | FaultyCoin)[]) {
  return { good: coins.filter((coin): coin is C => !isFaulty(coin)), faulty: coins.filter(isFaulty) }
}

/**
 * Parses coins as a list from any documented container: a list, a map by id, a map of lists by symbol, or one coin
 * alone. The container is wrapped in `{ status, data }` or, if it is a list, not wrapped.
 */
function coinsOf<T extends z.ZodType>(coin: T) {
  return z.preprocess(
    (answer) => {
      const data = isObject(answer) ? answer.data : answer
      if (!isObject(data)) return data
      return 'id' in data && !isObject(data.id) ? [data] : Object.values(data).flat()
    },
    z
      .array(coinOrFault(coin))
      // One unreadable coin affects only itself. A response without any readable coin does not match the documentation.
      .refine((coins) => coins.length === 0 || coins.some((one) => !isFaulty(one) || one.id !== undefined), {
        error: ({ input }) => (Array.isArray(input) ? input.find(isFaulty)?.fault : undefined),
      }),
  )
}

const isFaulty = (coin: unknown): coin is FaultyCoin => isObject(coin) && 'fault' in coin

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Quotes/latest of v3 and v2 (docs/providers.md, section 1.1). */
export const latestAnswer = coinsOf(latestCoin)
/** Quotes/historical (docs/providers.md, section 1.2). */
export const historicalAnswer = coinsOf(historicalCoin)

type Quote = z.infer<typeof quote>

/** Returns one row for each requested coin. Supplies are those of the coin; a maximum of null means unlimited. */
export function toLatestRows(
  coins: z.infer<typeof latestAnswer>,
  tokens: readonly Token[],
): Candidate<TokenPriceRow>[] {
  const tokenByCoin = toTokenByCoin(tokens)
  const { good, faulty } = splitFaulty(coins)
  const rows = good.flatMap((coin) => {
    const token = tokenByCoin.get(coin.id)
    return token ? [toRow(token, toIso(coin.quote?.last_updated), true, coin.quote ?? {}, coin)] : []
  })
  return [...rows, ...toNameless(faulty)]
}

/** Reports the faulty coins without an id. */
const toNameless = (faulty: readonly FaultyCoin[]) =>
  faulty.flatMap(({ id, fault }) => (id === undefined ? [toUnreadable<TokenPriceRow>(fault)] : []))

/**
 * Returns one row for each step of the range that has a quote. The provider returns the quote closest to each step,
 * which may precede the step. Such a quote is the price at the step, so its row gets the step's time; with its own time
 * it would be in the previous bucket, or before the range. Steps are on the UTC grid, wherever the range begins. The
 * request starts one step early and its end is inclusive, so steps outside of the range are removed.
 */
export function toHistoryRows(
  coins: z.infer<typeof historicalAnswer>,
  tokens: readonly Token[],
  range: Range,
): Candidate<TokenPriceRow>[] {
  const tokenByCoin = toTokenByCoin(tokens)
  const { good, faulty } = splitFaulty(coins)
  const rows = good.flatMap((coin) => {
    const token = tokenByCoin.get(coin.id)
    return token === undefined ? [] : toCoinRows(coin.quotes ?? [], token, range)
  })
  return [...rows, ...toNameless(faulty)]
}

const UNREADABLE_QUOTE = 'quotes.*: expected a quote in USD'

function toCoinRows(quotes: readonly unknown[], token: Token, { from, to, interval }: Range) {
  const stepMs = INTERVAL_SECONDS[interval] * 1000
  const rows: Candidate<TokenPriceRow>[] = []
  const closest = new Map<number, { row: Candidate<TokenPriceRow>; distance: number }>()
  for (const sent of quotes) {
    if (!isHistoricalQuote(sent)) {
      rows.push(toUnreadable<TokenPriceRow>(UNREADABLE_QUOTE, { token: token.key }))
      continue
    }
    const usd: Quote = toUsd(sent.quote) ?? {}
    const observedAt = toIso(sent.timestamp ?? usd.timestamp ?? usd.last_updated)
    const ms = toMs(String(observedAt))
    // A row with an unreadable or impossible time is kept: the row check rejects and counts it.
    if (!isTime(ms)) rows.push(toRow(token, observedAt ?? undefined, false, usd, usd))
    const step = toBucketStart(ms + stepMs / 2, interval)
    const distance = Math.abs(ms - step)
    const counts = Math.max(ms, step)
    if (!(counts >= from && counts < to) || distance >= (closest.get(step)?.distance ?? Number.POSITIVE_INFINITY))
      continue
    closest.set(step, { row: toRow(token, ms < step ? toIso(step) : observedAt, false, usd, usd), distance })
  }
  for (const { row } of closest.values()) rows.push(row)
  return rows
}

function toTokenByCoin(tokens: readonly Token[]): ReadonlyMap<string | null, Token> {
  return new Map(tokens.map((token) => [token.cmcId, token]))
}

interface Supplies {
  total_supply?: unknown
  circulating_supply?: unknown
  max_supply?: unknown
}

/** One object literal: a backfill creates millions of these rows, and merging objects took ten times as long. */
function toRow(token: Token, observedAt: unknown, isLatest: boolean, usd: Quote, supplies: Supplies) {
  return {
    token: token.key,
    observed_at: observedAt,
    is_latest: isLatest,
    price: usd.price ?? null,
    volume_24h: usd.volume_24h ?? null,
    market_cap: usd.market_cap ?? null,
    total_supply: supplies.total_supply ?? null,
    circulating_supply: supplies.circulating_supply ?? null,
    max_supply: supplies.max_supply ?? null,
    fully_diluted_market_cap: usd.fully_diluted_market_cap ?? null,
    volume_change_24h: usd.volume_change_24h ?? null,
    percent_change_1h: usd.percent_change_1h ?? null,
    percent_change_24h: usd.percent_change_24h ?? null,
    percent_change_7d: usd.percent_change_7d ?? null,
    percent_change_30d: usd.percent_change_30d ?? null,
    percent_change_60d: usd.percent_change_60d ?? null,
    percent_change_90d: usd.percent_change_90d ?? null,
    tvl: usd.tvl ?? null,
  } satisfies Candidate<TokenPriceRow>
}
