import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/coverage/expected.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { countBuckets, INTERVALS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toStaleAt } from '../../shared/store/readiness.ts'
import { type Answer, MOST_CACHED } from '../answers/answer.ts'
import type { Representation } from '../answers/formats.ts'
import { toArray } from '../answers/rows.ts'
import type { ChunkCache, ChunkKey, Sized } from '../cache/chunks.ts'
import { Problem } from '../problem/problem.ts'
import { toObject } from '../records/answer.ts'
import type { AppContext } from '../route/define-route.ts'
import {
  type CountedSource,
  countSince,
  countSlices,
  cutSlices,
  findNewest,
  peekRange,
  readFirst,
  readRange,
} from '../series/chunks.ts'
import {
  describeSeries,
  inFrame,
  type PointCounts,
  type SeriesQuestion,
  type SeriesRange,
  startAfter,
  toTokenFrame,
} from '../series/series.ts'
import { answerQuestion } from '../series/series-answer.ts'
import type { SeriesSource } from '../series/series-source.ts'
import { countCoarse, countCoarsePoints, peekCoarsePoints, toCoarseHeaders } from './coarse.ts'
import { readLongSeries } from './long-series.ts'
import { countPoints, POINT, pointsSql, pricePoint, priceRow, toPriceSeries, toPriceSource } from './points.ts'

/** Records of one token's series: a point alone, or a table row that includes the token. */
const RECORDS = {
  point: { record: pricePoint, values: POINT, constants: {} },
  row: {
    record: priceRow,
    values: `{id: String}, {name: String}, {symbol: String}, ${POINT}`,
    constants: { id: '{id: String}', name: '{name: String}', symbol: '{symbol: String}' },
  },
} as const

function toSource({ key, id, name, symbol }: Token, isTable: boolean): SeriesSource {
  const { record, values, constants } = RECORDS[isTable ? 'row' : 'point']
  return {
    name: 'historic-financial',
    dataset: tokenPrices,
    record,
    time: 'timestamp',
    constants,
    intervals: INTERVALS,
    sql: (interval) =>
      `SELECT bucket AS row_at, as_of, ${toObject(record, values)} AS record FROM (${pointsSql(interval).all})`,
    params: { token: key, id, name, symbol },
  }
}

/**
 * The points of one token with an order, a number of points or a row for every bucket (docs/contract.md, section 8).
 * @throws DataError `storage`, Problem `invalid_parameter` for several tokens.
 */
export async function answerPricesInForm(
  call: AppContext & { readonly representation: Representation; readonly entities: readonly Token[] },
  question: SeriesQuestion & {
    readonly start: number
    readonly end?: number | undefined
    readonly limit?: number | undefined
  },
): Promise<Answer> {
  const [token, second] = call.entities
  if (token === undefined || second !== undefined) {
    throw new Problem(
      'invalid_parameter',
      'order=desc, points and fill work with one token: send one request per token.',
      {
        param: 'id',
      },
    )
  }
  const isTable = call.representation.format !== 'json'
  const { answer, interval, covered, points } = await answerQuestion(call, toSource(token, isTable), question)
  const answered = { ...covered, tokens: [token.key], interval, resumed: token.key, resume: covered.from }
  const coarse = points === 0 ? 0 : await countCoarse(call.db, answered, Promise.resolve(points))
  const described = { ...answer, headers: { ...answer.headers, ...toCoarseHeaders(coarse) } }
  return isTable ? described : inFrame(described, toTokenFrame(token))
}

interface Newest extends Sized {
  readonly at: number | null
}

const newestRow = z.object({ newest: z.int() })

async function readNewest(db: Database, token: number): Promise<Newest> {
  const [row] = await db.rows({
    name: 'newest-price',
    sql: `SELECT toUnixTimestamp64Milli(observed_at) AS newest FROM token_prices
WHERE token = {token: UInt64}
ORDER BY token DESC, observed_at DESC
LIMIT 1`,
    params: { token },
    settings: { max_threads: 1 },
    schema: newestRow,
  })
  return { at: row?.newest ?? null, size: 8 }
}

const toPlace = (token: number): ChunkKey => ({
  key: `newest ${token}`,
  dataset: tokenPrices.name,
  from: Number.NEGATIVE_INFINITY,
  to: Number.POSITIVE_INFINITY,
})

/** Like `readCachedNewest`, from the cache only; undefined if it is not cached. */
const peekNewest = (chunks: ChunkCache, token: number): number | null | undefined =>
  chunks.get<Newest>(toPlace(token).key)?.at

/**
 * The time of a token's newest observation in Unix milliseconds; null if there is none. It is read again after every
 * change event, because any event may concern a newer one.
 */
async function readCachedNewest(
  { chunks, signal }: { readonly chunks: ChunkCache; readonly signal: AbortSignal },
  token: number,
): Promise<number | null> {
  const place = toPlace(token)
  const [newest] = await chunks.read([place], async (_, db) => [await readNewest(db, token)], signal)
  return newest?.at ?? null
}

interface PriceSeries {
  readonly token: Token
  readonly interval: Interval
  readonly range: SeriesRange
  /** Maximum points. Default: all of the range. */
  readonly limit: number | undefined
}

/** Points and times found for a series. */
interface Found extends PointCounts {
  /** Newest time used, in Unix milliseconds; null without points. */
  readonly asOf: number | null
  /** Time of the token's newest observation; null if the range has an end, because it then cannot become stale. */
  readonly newest: number | null
  /** Points with observations coarser than the interval. */
  readonly coarse: number
  /** Whether `limit` cut the range: more points follow in it. */
  readonly isCut: boolean
}

const isSpread = ({ config }: Pick<AppContext, 'config'>) => config.clickhouse.cluster !== undefined

type PeekCall = Pick<AppContext, 'chunks' | 'now' | 'config'> & { readonly representation: Representation }

type Call = AppContext & { readonly representation: Representation; readonly signal: AbortSignal }

const toDue = ({ now }: Pick<Call, 'now'>, interval: Interval) => toSeriesDueEnd(tokenPrices, interval, now())

/** Age, expiry and headers of an answer. */
function describe({ now, representation }: Pick<Call, 'now' | 'representation'>, series: PriceSeries, found: Found) {
  const { token, interval, range } = series
  const { asOf, newest, coarse, isCut } = found
  const described = describeSeries({ dataset: tokenPrices, interval, range, ...found }, now())
  const place = JSON.stringify([token.key, toBucketStart(asOf ?? 0, interval)])
  return {
    ...described,
    headers: {
      ...described.headers,
      ...toCoarseHeaders(coarse),
      ...(isCut ? { Link: representation.nextLink(place) } : {}),
    },
    staleAt: newest === null || isCut ? null : toStaleAt(newest, tokenPrices),
  }
}

/** The points of one token as the API's JSON, oldest first: few as bytes, many as a stream. */
export function answerPriceSeries(call: Call, series: PriceSeries): Promise<Answer> {
  const { range, interval, limit = Number.POSITIVE_INFINITY } = series
  const most = Math.min(limit, countBuckets(range.from, range.to, interval))
  return most <= MOST_CACHED.pricePoints ? answerShort(call, series, most) : answerLong(call, series, most)
}

/** A source that records whether it was read. */
function watch(source: CountedSource) {
  let isRead = false
  const read: CountedSource['read'] = (...args) => {
    isRead = true
    return source.read(...args)
  }
  return { source: { ...source, read }, isRead: () => isRead }
}

/** Assembles the answer from chunks of the series; only chunks that are not cached are read. */
async function answerShort(call: Call, series: PriceSeries, most: number): Promise<Answer> {
  const { token, interval, range, limit } = series
  const { source, isRead } = watch(toPriceSource(call.storedPoints, token.key, interval))
  // One additional point shows whether more follow.
  const reading = limit === most ? readFirst(source, call, range, most + 1) : readRange(source, call, range)
  const cutting = reading.then((slices) => cutSlices(slices, most))
  const [all, slices, newest, coarse] = await Promise.all([
    reading,
    cutting,
    range.open ? readCachedNewest(call, token.key) : null,
    countCoarsePoints(call, { token: token.key, interval, range, isSpread: isSpread(call) }, cutting),
  ])
  const [points, early] = [countSlices(slices), countSince(slices, toDue(call, interval))]
  const found = { points, early, asOf: findNewest(slices), newest, coarse, isCut: countSlices(all) > points }
  return { body: toArray(slices, toTokenFrame(token)), isQuick: !isRead(), ...describe(call, series, found) }
}

/**
 * Like `answerShort`, from cached chunks only, without a statement. Undefined if a chunk is missing, or if `limit` may
 * cut the range.
 */
export function peekPriceSeries(call: PeekCall, series: PriceSeries): Answer | undefined {
  const { chunks } = call
  const { token, interval, range, limit = Number.POSITIVE_INFINITY } = series
  const buckets = countBuckets(range.from, range.to, interval)
  if (buckets > MOST_CACHED.pricePoints || limit <= buckets) return undefined
  const slices = peekRange(toPriceSeries(token.key, interval), chunks, range)
  const newest = range.open ? peekNewest(chunks, token.key) : null
  if (slices === undefined || newest === undefined) return undefined
  const coarse = peekCoarsePoints(chunks, { token: token.key, interval, range, isSpread: isSpread(call) }, slices)
  if (coarse === undefined) return undefined
  const [points, early] = [countSlices(slices), countSince(slices, toDue(call, interval))]
  const found = { points, early, asOf: findNewest(slices), newest, coarse, isCut: false }
  const body = toArray(slices, toTokenFrame(token), chunks.buffers.take)
  return { body, isQuick: true, ...describe(call, series, found) }
}

/** Streams the answer, with cached chunks if there are any. */
async function answerLong(call: Call, series: PriceSeries, most: number): Promise<Answer> {
  const { db } = call
  const { token, interval, range, limit } = series
  const bounds = { token: token.key, from: range.from, to: range.to }
  const long = readLongSeries(call, { ...bounds, interval, limit: limit === most ? limit : undefined })
  const coarsely = { ...range, tokens: [token.key], interval, resumed: token.key, resume: range.from }
  const [{ points, asOf, digest, open, holds }, newest, coarse] = await Promise.all([
    long,
    range.open ? readCachedNewest(call, token.key) : null,
    countCoarse(
      db,
      coarsely,
      long.then((read) => read.points),
    ),
  ])
  const until = asOf === null ? range.to : startAfter(asOf, interval)
  const late = { from: Math.max(range.from, toDue(call, interval)), to: until }
  const [more, early] = await Promise.all([
    points === limit ? countPoints(db, interval, { ...bounds, from: until, limit: 1 }) : 0,
    countPoints(db, interval, { ...late, token: token.key, limit: points }),
  ])
  const described = describe(call, series, { points, early, asOf, newest, coarse, isCut: more > 0 })
  return {
    ...described,
    digest: `${token.id} ${token.name} ${interval} ${digest}`,
    ...toTokenFrame(token),
    open,
    holds,
  }
}
