import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/coverage/wanted.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { countBuckets, type Interval, type TimeRange } from '../../shared/intervals.ts'
import { toJson } from '../../shared/json.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toStaleAt } from '../../shared/store/freshness.ts'
import type { Answer } from '../answers/answer.ts'
import { Problem } from '../problem/problem.ts'
import { answerRecords } from '../records/answer.ts'
import { refuseCursor } from '../records/cursor.ts'
import type { Representation } from '../records/representation.ts'
import type { Surroundings } from '../route/define-route.ts'
import { type SeriesRange, startAfter, toExpiry } from '../series/series.ts'
import { toSeriesHeaders } from '../series/series-headers.ts'
import { countCoarse, toCoarseHeaders } from './coarse.ts'
import { placesSql, tablePointsSql } from './table-points.ts'

/** A point's token key, and the start of its bucket in Unix milliseconds. */
interface PricePlace {
  readonly token: number
  readonly at: number
}

/** Maximum buckets of an answer without a limit: more would exceed the time limit of a query. */
const MAX_BUCKETS = 5_000_000

/** The time of the newest observation of the tokens, in Unix milliseconds; null if there is none. */
async function readNewestOf(db: Database, tokens: readonly number[]): Promise<number | null> {
  const [row] = await db.rows({
    name: 'newest-prices',
    sql: `SELECT toUnixTimestamp64Milli(max(observed_at)) AS newest FROM token_quotes WHERE has({tokens: Array(UInt64)}, token)`,
    params: { tokens },
    schema: z.object({ newest: z.int() }),
  })
  return row === undefined || row.newest === 0 ? null : row.newest
}

/** Number of points of a table's tokens before a position. */
async function countBefore(
  db: Database,
  interval: Interval,
  params: Readonly<Record<string, unknown>>,
  place: PricePlace,
): Promise<number> {
  const rows = await db.rows({
    name: 'newest-places',
    sql: placesSql(interval),
    params,
    settings: { max_threads: 1 },
    schema: z.object({ token: z.number(), at: z.int() }),
  })
  return rows.filter(({ token, at }) => token < place.token || (token === place.token && at < place.at)).length
}

/** Number of buckets of a range between two positions of a table, first inclusive, last exclusive. */
function countPlaces(keys: readonly number[], range: TimeRange, interval: Interval, from: PricePlace, to: PricePlace) {
  const buckets = (start: number, end: number) => countBuckets(start, Math.min(end, range.to), interval)
  const [first, last] = [keys.indexOf(from.token), keys.indexOf(to.token)]
  if (first === last) return buckets(from.at, to.at)
  return buckets(from.at, range.to) + (last - first - 1) * buckets(range.from, range.to) + buckets(range.from, to.at)
}

/**
 * The points of one or several tokens as a table: ordered by token id, then oldest first. `limit` counts rows of all
 * tokens together.
 */
export async function answerPriceTable(
  call: Surroundings & { readonly representation: Representation; readonly entities: readonly Token[] },
  query: { readonly interval: Interval; readonly limit?: number | undefined },
  range: SeriesRange,
  after: PricePlace | undefined,
): Promise<Answer> {
  const { db, now, entities: tokens } = call
  const { interval, limit } = query
  const keys = tokens.map(({ key }) => key)
  const [first = 0, last = 0] = [keys[0], keys.at(-1)]
  const from = after === undefined ? { token: first, at: range.from } : { ...after, at: startAfter(after.at, interval) }
  const end = { token: last, at: range.to }
  const most = countPlaces(keys, range, interval, from, end)
  if (limit === undefined && most > MAX_BUCKETS) {
    const detail = `This range has ${most} buckets: give a limit and follow the Link of each answer, or ask for at most ${MAX_BUCKETS}.`
    throw new Problem('invalid_parameter', detail, { param: 'limit' })
  }
  const named = {
    ids: tokens.map(({ id }) => id),
    names: tokens.map(({ name }) => name),
    symbols: tokens.map(({ symbol }) => symbol),
  }
  const left = keys.filter((key) => key >= from.token)
  const place = { resumed: from.token, resume: from.at, from: range.from, to: range.to }
  const { next, ...answer } = await answerRecords(call, {
    name: 'historic-financial',
    ...tablePointsSql(interval),
    params: { keys, ...named, ...place, tokens: left, limit: most },
    identity: JSON.stringify(named),
    ...(limit === undefined ? {} : { page: limit }),
  })
  const cut = next === '' ? undefined : toPricePlace(next, keys, range)
  const until = cut === undefined ? end : { ...cut, at: startAfter(cut.at, interval) }
  const answered = { ...place, tokens: left, interval }
  const due = toSeriesDueEnd(tokenPrices, interval, now())
  const late = { ...place, tokens: left, from: Math.max(range.from, due), limit: most }
  const [heard, coarse, early] = await Promise.all([
    range.open && cut === undefined ? readNewestOf(db, keys) : null,
    countCoarse(db, answered, Promise.resolve(answer.records)),
    due < range.to ? countBefore(db, interval, late, until) : 0,
  ])
  const expected = countPlaces(keys, { from: range.from, to: Math.min(range.to, due) }, interval, from, until)
  return {
    ...answer,
    headers: {
      ...answer.headers,
      ...toCoarseHeaders(coarse),
      ...toSeriesHeaders(interval, answer.records, Math.max(0, expected - (answer.records - early))),
    },
    staleAt: heard === null ? null : toStaleAt(heard, tokenPrices),
    ...toExpiry(range, due, now()),
  }
}

const placeValues = z.tuple([z.int(), z.int()])

/**
 * The last point of a page, from a cursor's sort values.
 * @throws Problem `invalid_parameter` for a position outside the range, or of another token.
 */
export function toPricePlace(after: string, keys: readonly number[], { from, to }: SeriesRange): PricePlace {
  const { data: [token, at] = [] } = placeValues.safeParse(toJson(after))
  if (token === undefined || at === undefined || !keys.includes(token) || at < from || at >= to) throw refuseCursor()
  return { token, at }
}
