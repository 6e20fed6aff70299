import { z } from 'zod'
import { toPriceRows } from '../../shared/datasets/price-points.ts'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import type { BasketIndex } from '../../shared/registry/index-records.ts'
import type { Database } from '../../shared/store/store.ts'
import { Problem } from '../problem/problem.ts'
import type { RegistryCandidate } from './question.ts'
import type { Market } from './rule.ts'

/** Longest range of a back-test: ten years. */
const MAX_DAYS = 3660
/** Days of a back-test without `start`. */
export const DEFAULT_DAYS = 365

const numbers = z.array(z.number().nullable())
const tokenDays = z.object({
  token: z.number(),
  days: z.array(z.int()),
  prices: numbers,
  caps: numbers,
  as_of: z.int(),
})
const firstDay = z.object({ first: z.int() })

/** Values of a basket's candidates, and the time of the newest of them in Unix milliseconds; null if there is none. */
export interface StoredMarket {
  readonly market: Market
  readonly asOf: number | null
  /** Whether the range ends with the newest day, so that days are added over time. */
  readonly isOpen: boolean
}

/**
 * Reads the daily prices and market caps of candidates: the first observation of each day, like the series of prices with
 * `interval=1d`. The market begins on the day before the first allocation.
 * @throws DataError `storage`; Problem `invalid_parameter` for a range without prices, or one that is too long.
 */
export async function readMarket(
  db: Database,
  candidates: readonly RegistryCandidate[],
  query: { readonly start?: number | undefined; readonly end?: number | undefined },
  now: number,
): Promise<StoredMarket> {
  const keys = candidates.map(({ key }) => key)
  const end = Math.min(query.end ?? now, now)
  const lastDay = toBucketStart(end - 1, '1d')
  const firstStored = await readFirstDay(db, keys)
  const earliest = firstStored === undefined ? undefined : firstStored + DAY_MS
  const start = toNextDay(query.start ?? Math.max(end - DEFAULT_DAYS * DAY_MS, earliest ?? 0))
  checkRange({ start, lastDay, earliest })
  const days = Array.from({ length: (lastDay - start) / DAY_MS + 2 }, (_, at) => start + (at - 1) * DAY_MS)
  const { table, time, isOfInterval } = toPriceRows('1d')
  const rows = await db.rows({
    name: 'basket-prices',
    sql: `SELECT token, groupArray(intDiv(toUnixTimestamp(${time}), 86400)) AS days, groupArray(price) AS prices,
  groupArray(market_cap) AS caps, toUnixTimestamp64Milli(max(toDateTime64(observed_at, 3, 'UTC'))) AS as_of
FROM ${table} FINAL
WHERE ${isOfInterval} AND token IN {tokens: Array(UInt64)}
  AND ${time} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND ${time} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
GROUP BY token`,
    params: { tokens: keys, from: start - DAY_MS, to: lastDay + DAY_MS },
    settings: { max_threads: 1 },
    schema: tokenDays,
  })
  const [prices, marketCaps] = [
    new Float64Array(keys.length * days.length),
    new Float64Array(keys.length * days.length),
  ]
  prices.fill(Number.NaN)
  marketCaps.fill(Number.NaN)
  const placeOf = new Map(keys.map((key, at) => [key, at]))
  const firstNumber = (start - DAY_MS) / DAY_MS
  for (const row of rows) {
    const offset = (placeOf.get(row.token) ?? 0) * days.length - firstNumber
    for (const [at, day] of row.days.entries()) {
      prices[offset + day] = row.prices[at] ?? Number.NaN
      marketCaps[offset + day] = row.caps[at] ?? Number.NaN
    }
  }
  const asOf = rows.length === 0 ? null : Math.max(...rows.map(({ as_of }) => as_of))
  const isOpen = query.end === undefined || query.end > now
  return { market: withoutEmptyEnd({ days, candidates, prices, marketCaps }, isOpen), asOf, isOpen }
}

const toNextDay = (ms: number) => toBucketStart(ms - 1, '1d') + DAY_MS
const toDayText = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const invalid = (param: string, detail: string) => new Problem('invalid_parameter', detail, { param })

async function readFirstDay(db: Database, tokens: readonly number[]): Promise<number | undefined> {
  const { table, time, isOfInterval } = toPriceRows('1d')
  const [row] = await db.rows({
    name: 'basket-first-day',
    sql: `SELECT toUnixTimestamp64Milli(toDateTime64(min(${time}), 3, 'UTC')) AS first FROM ${table} WHERE ${isOfInterval} AND token IN {tokens: Array(UInt64)}`,
    params: { tokens },
    settings: { max_threads: 1 },
    schema: firstDay,
  })
  return row === undefined || row.first === 0 ? undefined : row.first
}

function checkRange({ start, lastDay, earliest }: { start: number; lastDay: number; earliest: number | undefined }) {
  if (earliest === undefined) throw invalid('start', 'None of these tokens has a stored price.')
  if (Math.min(start, lastDay) < earliest) {
    const [first, possible] = [toDayText(earliest - DAY_MS), toDayText(earliest)]
    throw invalid('start', `The prices of these tokens begin on ${first}: the earliest start is ${possible}.`)
  }
  if (lastDay < start) throw invalid('end', 'end must be after start, by at least a day.')
  const days = (lastDay - start) / DAY_MS + 1
  if (days > MAX_DAYS) throw invalid('start', `The range has ${days} days: ask for at most ${MAX_DAYS}.`)
}

/** In an open range, the newest day counts once it has a price. */
function withoutEmptyEnd(market: Market, isOpen: boolean): Market {
  const { days, candidates, prices, marketCaps } = market
  const last = days.length - 1
  const hasPrice = candidates.some((_, token) => !Number.isNaN(prices[token * days.length + last] ?? Number.NaN))
  if (!isOpen || hasPrice || last < 2) return market
  const cut = (values: Float64Array) =>
    Float64Array.from(
      candidates.flatMap((_, token) => [...values.subarray(token * days.length, token * days.length + last)]),
    )
  return { candidates, days: days.slice(0, last), prices: cut(prices), marketCaps: cut(marketCaps) }
}

const indexDay = z.object({ day: z.int(), value: z.number() })

/** The Index's value by day: the first of each day, null if it has none. */
export async function readIndexDays(
  db: Database,
  index: BasketIndex,
  days: readonly number[],
): Promise<(number | null)[]> {
  const [from = 0, to = 0] = [days[0], days.at(-1)]
  const rows = await db.rows({
    name: 'basket-index',
    sql: `SELECT toUnixTimestamp(toStartOfDay(created_at, 'UTC')) * 1000 AS day, argMin(value_usd, created_at) AS value
FROM index_points FINAL
WHERE index_key = {index: UInt64} AND created_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND created_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
GROUP BY day`,
    params: { index: index.key, from, to: to + DAY_MS },
    settings: { max_threads: 1 },
    schema: indexDay,
  })
  const values = new Map(rows.map(({ day, value }) => [day, value]))
  return days.map((day) => values.get(day) ?? null)
}
