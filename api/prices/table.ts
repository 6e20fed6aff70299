import { z } from 'zod'
import { RUNS, toSeriesDueEnd, toYear } from '../../shared/buckets.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { countBuckets, INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import { toJson } from '../../shared/json.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toStaleAt } from '../../shared/store/readiness.ts'
import type { Answer } from '../answers/answer.ts'
import type { Representation } from '../answers/formats.ts'
import { refuseCursor } from '../answers/keyset.ts'
import { toCoarseHeaders } from '../http/headers.ts'
import { Problem } from '../problem/problem.ts'
import { answerRecords, toObject } from '../records/answer.ts'
import type { AppContext } from '../route/define-route.ts'
import { type SeriesRange, startAfter, toExpiry, toSeriesHeaders } from '../series/series.ts'
import { POINT, priceRow, toTier, VALUES } from './points.ts'

// Lets the sorting key limit the range if a page continues in the middle of a token.
const OF_SEVERAL = (column: string) => `token IN {tokens: Array(UInt64)}
  AND ${column} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
  AND (token != {resumed: UInt64} OR ${column} >= fromUnixTimestamp64Milli({resume: Int64}, 'UTC'))`

const FINE_OF_SEVERAL = `
SELECT token, toDateTime64(toStartOfInterval(observed_at, INTERVAL 5 MINUTE, 'UTC'), 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM token_prices FINAL
WHERE ${OF_SEVERAL('observed_at')}
ORDER BY token, observed_at
LIMIT 1 BY token, bucket
LIMIT {limit: UInt64}`

const coarseOfSeveral = ({ table, isOfTier }: ReturnType<typeof toTier>) => `
SELECT token, toDateTime64(bucket_at, 3, 'UTC') AS bucket, observed_at AS as_of, ${VALUES}
FROM ${table} FINAL
WHERE ${isOfTier} AND ${OF_SEVERAL('bucket_at')}
ORDER BY token, interval_seconds, bucket_at
LIMIT {limit: UInt64}`

const named = (list: string) => `transform(token, {keys: Array(UInt64)}, {${list}: Array(String)}, '')`
const AS_ROW = toObject(priceRow, `${named('ids')}, ${named('names')}, ${named('symbols')}, ${POINT}`)

const toPoints = (interval: Interval) => (interval === '5m' ? FINE_OF_SEVERAL : coarseOfSeveral(toTier(interval)))

/** SQL that counts the points of `tablePointsSql` that fulfil `isCounted`, a condition on `p`. */
const countPointsSql = (interval: Interval, join: string, isCounted: string): string =>
  `SELECT count() AS points FROM (${toPoints(interval)}) AS p ${join} WHERE ${isCounted}`

/** SQL for the tokens and buckets of the same points. */
const placesSql = (interval: Interval): string =>
  `SELECT token, toUnixTimestamp64Milli(bucket) AS at FROM (${toPoints(interval)})`

/**
 * SQL for the points of several tokens, token after token. Parameters: `tokens`; `from` and `to` in Unix milliseconds
 * on the grid; `limit`; for token `resumed` only points from `resume` on; `keys` with the `ids`, `names` and `symbols`
 * of all.
 */
function tablePointsSql(interval: Interval): { sql: string; rowHash: string } {
  return {
    sql: `SELECT *, tuple(token, toUnixTimestamp64Milli(bucket)) AS page_key,
  ${AS_ROW} AS record
FROM (${toPoints(interval)})`,
    rowHash: `sipHash64(tuple(token, bucket, as_of, ${VALUES}))`,
  }
}

/**
 * The points of an answer: the first `points` of the tokens in the range; for token `resumed` those from `resume` on.
 */
interface Answered extends TimeRange {
  readonly tokens: readonly number[]
  readonly interval: Interval
  readonly resumed: number
  readonly resume: number
}

const CADENCE = INTERVAL_SECONDS[tokenPrices.cadence]

/** SQL for the runs of buckets, by token, that are stored only at a coarser step than `seconds`. */
const COARSE = `SELECT entity, run.1 AS first, run.2 AS last
FROM
(
  SELECT entity, groupBitmapMergeStateIf(buckets, interval_seconds > {seconds: UInt32}) AS coarser,
    groupBitmapMergeStateIf(buckets, interval_seconds <= {seconds: UInt32}) AS fine,
    arraySort(bitmapToArray(bitmapSubsetInRange(bitmapAndnot(coarser, fine), {first: UInt32}, {end: UInt32}))) AS numbers
  FROM coverage
  WHERE dataset = {dataset: String} AND state = 'stored' AND entity IN {tokens: Array(UInt64)}
    AND year BETWEEN {firstYear: UInt16} AND {lastYear: UInt16}
  GROUP BY entity
)
ARRAY JOIN ${RUNS('numbers')} AS run`

const found = z.object({ entity: z.number() })
const counted = z.object({ points: z.int() })

/**
 * Counts the points of an answer with observations coarser than its interval, according to the coverage. If the range
 * contains coarser data, which is rare, the points themselves are read: the first `points` of them.
 */
export async function countCoarse(
  db: Database,
  { tokens, interval, resumed, resume, from, to }: Answered,
  points: Promise<number>,
): Promise<number> {
  const first = Math.floor(from / 1000 / CADENCE)
  // The last bucket may end after the range, with the observation in it.
  const end = Math.ceil(to / 1000 / CADENCE) + INTERVAL_SECONDS[interval] / CADENCE
  const params = {
    dataset: tokenPrices.name,
    tokens,
    seconds: INTERVAL_SECONDS[interval],
    first,
    end,
    firstYear: toYear(first, tokenPrices.cadence),
    lastYear: toYear(end, tokenPrices.cadence),
  }
  const [coarse, limit] = await Promise.all([
    db.rows({
      name: 'coarse-tokens',
      sql: `SELECT entity FROM (${COARSE}) LIMIT 1`,
      params,
      settings: { max_threads: 1 },
      schema: found,
    }),
    points,
  ])
  if (coarse.length === 0 || limit === 0) return 0
  const number = `toUInt32(intDiv(toUnixTimestamp(p.as_of), ${CADENCE}))`
  const join = `ASOF INNER JOIN (${COARSE}) AS c ON p.token = c.entity AND ${number} >= c.first`
  const [row] = await db.rows({
    name: 'coarse-points',
    sql: countPointsSql(interval, join, `${number} <= c.last`),
    params: { ...params, from, to, resumed, resume, limit },
    schema: counted,
  })
  return row?.points ?? 0
}

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
  call: AppContext & { readonly representation: Representation; readonly entities: readonly Token[] },
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
  const remaining = keys.filter((key) => key >= from.token)
  const place = { resumed: from.token, resume: from.at, from: range.from, to: range.to }
  const { next, ...answer } = await answerRecords(call, {
    name: 'historic-financial',
    ...tablePointsSql(interval),
    params: { keys, ...named, ...place, tokens: remaining, limit: most },
    identity: JSON.stringify(named),
    ...(limit === undefined ? {} : { page: limit }),
  })
  const cut = next === '' ? undefined : toPricePlace(next, keys, range)
  const until = cut === undefined ? end : { ...cut, at: startAfter(cut.at, interval) }
  const answered = { ...place, tokens: remaining, interval }
  const due = toSeriesDueEnd(tokenPrices, interval, now())
  const late = { ...place, tokens: remaining, from: Math.max(range.from, due), limit: most }
  const [newest, coarse, early] = await Promise.all([
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
    staleAt: newest === null ? null : toStaleAt(newest, tokenPrices),
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
