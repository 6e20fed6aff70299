import { z } from 'zod'
import { RUNS, toSeriesDueEnd } from '../../shared/buckets.ts'
import {
  isInPriceRange,
  PRICE_POINT,
  pricePoint,
  selectPricePoints,
  selectPrices,
  sourcedPoint,
  withSources,
} from '../../shared/datasets/price-points.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import {
  countBuckets,
  INTERVAL_SECONDS,
  INTERVALS,
  type Interval,
  type TimeRange,
  toBucketStart,
} from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { type Database, toStaleAt } from '../../shared/store/store.ts'
import type { CacheKey, CacheReader, Sized } from '../cache/cache.ts'
import { type Answer, MOST_CACHED, type Representation, toObject } from '../formats/formats.ts'
import { toCoarseHeaders } from '../http/headers.ts'
import { Problem } from '../problem/problem.ts'
import type { AppContext, RequestCall } from '../route/define-route.ts'
import { selectPoints } from '../series/chunks.ts'
import type { Points } from '../series/points.ts'
import {
  describeSeries,
  type PointCounts,
  type SeriesQuestion,
  type SeriesRange,
  toTokenFrame,
} from '../series/series.ts'
import { answerQuestion, toAnswer } from '../series/series-answer.ts'
import { countByChunk, type SeriesSource, toSeries } from '../series/series-source.ts'
import { hasSource, isShort, priceRow, SHORT_CHUNKS, sourcedRow, toColumnTypes, writePoints } from './points.ts'
import { packRows, selectRange, unpackRows, writeJson } from './stored-rows.ts'
import { countCoarse } from './table.ts'

/** Records of one token's series: a point alone, or a table row that includes the token. */
const RECORDS = {
  point: { record: pricePoint, values: PRICE_POINT, constants: {} },
  row: {
    record: priceRow,
    values: `{id: String}, {name: String}, {symbol: String}, ${PRICE_POINT}`,
    constants: { id: '{id: String}', name: '{name: String}', symbol: '{symbol: String}' },
  },
} as const

/** The same with the provider of each observation. */
const SOURCED_RECORDS = {
  point: { ...RECORDS.point, record: sourcedPoint, values: `${PRICE_POINT}, source` },
  row: { ...RECORDS.row, record: sourcedRow, values: `${RECORDS.row.values}, source` },
} as const

/** A series of a token, whose points `toPoints` selects. */
function toUncached(
  { key, id, name, symbol }: Token,
  {
    name: statement,
    record,
    values,
    constants,
  }: Required<Pick<SeriesSource, 'name' | 'record' | 'constants'>> & { readonly values: string },
  toPoints: (interval: Interval) => string,
) {
  return {
    name: statement,
    dataset: tokenPrices,
    record,
    time: 'timestamp',
    constants,
    intervals: INTERVALS,
    sql: (interval) =>
      `SELECT bucket AS row_at, as_of, ${toObject(record, values)} AS record FROM (${toPoints(interval)})`,
    params: { entities: [key], id, name, symbol },
  } satisfies SeriesSource
}

/** The series with providers, which is not cached, because few clients request it. */
const toSourced = (token: Token, isTable: boolean): SeriesSource =>
  toUncached(token, { name: 'historic-financial-sources', ...SOURCED_RECORDS[isTable ? 'row' : 'point'] }, (interval) =>
    withSources(selectPricePoints(interval), isInPriceRange('observed_at')),
  )

/** Offset of the time of the observation from the end of a point: it is the last member, and its width is fixed. */
const TIME_WIDTH = '2026-01-01T00:00:00.000Z'.length
const OBSERVED_FROM_END = '"}}}'.length + TIME_WIDTH

/** The time of the observation of the point that ends at a position. */
const readObserved = (text: Buffer, end: number) =>
  Date.parse(text.toString('latin1', end - OBSERVED_FROM_END, end - OBSERVED_FROM_END + TIME_WIDTH))

function toSource({ storedPoints, now }: Pick<AppContext, 'storedPoints' | 'now'>, token: Token, isTable: boolean) {
  const { key, id, name, symbol } = token
  const form = { name: 'historic-financial', ...RECORDS[isTable ? 'row' : 'point'] }
  return {
    ...toUncached(token, form, selectPricePoints),
    cached: {
      key: `${tokenPrices.name} ${key}`,
      ...(isTable ? { before: { id, name, symbol } } : {}),
      readAsOf: readObserved,
      fast: {
        read: async (db, interval, range, abandoned) =>
          isShort(range, interval)
            ? writeJson(await storedPoints[interval]({ token: key, ...range }, abandoned))
            : writePoints(db, { token: key, interval, ...range }),
        count: (db, interval, range, toChunkSql) => {
          const params = { entities: [key], ...range }
          return countByChunk(db, { name: 'historic-financial', sql: selectPrices(interval), params }, toChunkSql)
        },
        toStored: (interval) => ({
          until: toSeriesDueEnd(tokenPrices, interval, now()),
          mostChunks: SHORT_CHUNKS,
          read: async (chunks, abandoned) => {
            const [from, to] = [chunks[0]?.from ?? 0, chunks.at(-1)?.to ?? 0]
            const rows = await storedPoints[interval]({ token: key, from, to }, abandoned)
            return chunks.map((chunk) => packRows(selectRange(rows, chunk)))
          },
          toPoints: (packed, range) => writeJson(selectRange(unpackRows(packed, toColumnTypes(interval)), range)),
        }),
      },
    },
  } satisfies SeriesSource
}

/**
 * The points of one token with an order, a number of points or a row for every bucket (docs/contract.md, section 8).
 * @throws DataError `storage`, Problem `invalid_parameter` for several tokens.
 */
export async function answerPricesInForm(
  call: Call & { readonly entities: readonly Token[] },
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
  const source = hasSource(call.representation) ? toSourced(token, isTable) : toSource(call, token, isTable)
  const found = await answerQuestion(call, source, question, { frame: toTokenFrame(token) })
  const { answer, selected, interval, covered, points } = found
  const answered = { ...covered, tokens: [token.key], interval, resumed: token.key, resume: covered.from }
  const countStored = () => countCoarse(call.db, answered, Promise.resolve(points))
  const countCached = (cached: Points) =>
    countCoarsePoints(
      call,
      { token: token.key, interval, range: covered, isSpread: isSpread(call) },
      Promise.resolve(cached),
    )
  const coarse = points === 0 ? 0 : await (selected === undefined ? countStored() : countCached(selected))
  return { ...answer, headers: { ...answer.headers, ...toCoarseHeaders(coarse) } }
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

/**
 * The time of a token's newest observation in Unix milliseconds; null if there is none. The time is read again after
 * every change event, because any event may be about a newer observation.
 */
async function readCachedNewest(reader: CacheReader, token: number): Promise<number | null> {
  const sources = { datasets: [tokenPrices.name] }
  return (await reader.cache.get(`newest ${token}`, sources, (db) => readNewest(db, token), reader)).at
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

type Call = RequestCall & { readonly representation: Representation }

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

const CADENCE_MS = INTERVAL_SECONDS[tokenPrices.cadence] * 1000
const NUMBER_BYTES = 8

/**
 * The longest step, in seconds, of a year's stored buckets, by token; only tokens with steps longer than the cadence.
 */
interface Coarsest extends Sized {
  readonly of: ReadonlyMap<number, number>
}

/**
 * The buckets of a token's year that are stored only at a coarser step than some interval, as ordered runs of bucket
 * numbers.
 */
interface CoarseBuckets extends Sized {
  readonly runs: readonly (readonly [first: number, last: number])[]
}

interface YearPlace extends CacheKey {
  readonly year: number
}

const toYearPlace = (key: string, year: number): YearPlace => ({
  key: `coarse ${key} ${year}`,
  datasets: [tokenPrices.name],
  year,
  range: { from: Date.UTC(year, 0), to: Date.UTC(year + 1, 0) },
})

const IN_YEARS = `dataset = {dataset: String} AND state = 'stored' AND year IN {years: Array(UInt16)}`

const toParams = (places: readonly YearPlace[]) => ({
  dataset: tokenPrices.name,
  years: places.map(({ year }) => year),
})

const coarsestRow = z.object({ year: z.int(), entity: z.number(), seconds: z.int() })

async function readCoarsest(places: readonly YearPlace[], db: Database): Promise<Coarsest[]> {
  const rows = await db.rows({
    name: 'coarse-tokens',
    sql: `SELECT year, entity, max(interval_seconds) AS seconds FROM coverage
WHERE ${IN_YEARS} AND interval_seconds > {cadence: UInt32}
GROUP BY year, entity`,
    params: { ...toParams(places), cadence: CADENCE_MS / 1000 },
    settings: { max_threads: 1 },
    schema: coarsestRow,
  })
  return places.map((place) => {
    const of = rows.filter(({ year }) => year === place.year).map((row) => [row.entity, row.seconds] as const)
    return { of: new Map(of), size: of.length * 4 * NUMBER_BYTES }
  })
}

const runRow = z.object({ year: z.int(), runs: z.array(z.tuple([z.int(), z.int()])) })

async function readBuckets(
  places: readonly YearPlace[],
  db: Database,
  params: { token: number; seconds: number },
): Promise<CoarseBuckets[]> {
  const rows = await db.rows({
    name: 'coarse-buckets',
    sql: `SELECT year, ${RUNS('numbers')} AS runs
FROM
(
  SELECT year, groupBitmapMergeStateIf(buckets, interval_seconds > {seconds: UInt32}) AS coarser,
    groupBitmapMergeStateIf(buckets, interval_seconds <= {seconds: UInt32}) AS fine,
    arraySort(bitmapToArray(bitmapAndnot(coarser, fine))) AS numbers
  FROM coverage
  WHERE ${IN_YEARS} AND entity = {token: UInt64}
  GROUP BY year
)`,
    params: { ...toParams(places), ...params },
    settings: { max_threads: 1 },
    schema: runRow,
  })
  return places.map(({ year }) => {
    const runs = rows.find((row) => row.year === year)?.runs ?? []
    return { runs, size: runs.length * 4 * NUMBER_BYTES }
  })
}

/** The years of the observations in a range's buckets: the last bucket may end after the range. */
function toYears({ from, to }: TimeRange, interval: Interval): number[] {
  const first = new Date(from).getUTCFullYear()
  const last = new Date(to + INTERVAL_SECONDS[interval] * 1000 - 1).getUTCFullYear()
  return from < to ? Array.from({ length: last - first + 1 }, (_, index) => first + index) : []
}

interface PriceRange {
  readonly token: number
  readonly interval: Interval
  readonly range: TimeRange
  /**
   * Whether tokens are distributed over shards. A query about all tokens then needs every shard, a query about one
   * token does not.
   */
  readonly isSpread: boolean
}

/**
 * Counts the points with observations coarser than their interval, according to the coverage. A cached value
 * for all tokens contains those with coarser data in a year. Only for these few tokens the buckets are read.
 */
async function countCoarsePoints(reader: CacheReader, series: PriceRange, reading: Promise<Points>): Promise<number> {
  const { token, interval, range, isSpread } = series
  const seconds = INTERVAL_SECONDS[interval]
  const years = toYears(range, interval)
  const ofAll = isSpread ? [] : years.map((year) => toYearPlace('', year))
  const coarsest = await reader.cache.getEach(ofAll, readCoarsest, reader)
  const coarse = years.filter((_, index) => isSpread || (coarsest[index]?.of.get(token) ?? 0) > seconds)
  if (coarse.length === 0) return 0
  const places = coarse.map((year) => toYearPlace(`${token} ${seconds}`, year))
  const read = (missing: readonly YearPlace[], db: Database) => readBuckets(missing, db, { token, seconds })
  const buckets = await reader.cache.getEach(places, read, reader)
  const runs = buckets.flatMap((year) => year.runs)
  // The last bucket may end after the range, with the observation in it.
  const observed = { from: range.from, to: range.to + seconds * 1000 }
  return runs.length === 0 ? 0 : countWithin(await reading, runs, observed)
}

/** Counts the points with observations in the runs, which are ordered by time. */
function countWithin(points: Points, all: CoarseBuckets['runs'], { from, to }: TimeRange): number {
  const runs = all.filter(([first, last]) => (last + 1) * CADENCE_MS > from && first * CADENCE_MS < to)
  const [earliest, latest] = [runs[0], runs.at(-1)]
  if (earliest === undefined || latest === undefined) return 0
  let [count, next] = [0, 0]
  for (const at of points.readAsOf({ from: earliest[0] * CADENCE_MS, to: (latest[1] + 1) * CADENCE_MS })) {
    const number = Math.floor(at / CADENCE_MS)
    while (next < runs.length && (runs[next]?.[1] ?? 0) < number) next++
    if (number >= (runs[next]?.[0] ?? Number.POSITIVE_INFINITY)) count++
  }
  return count
}

/**
 * The points of one token in a text format, oldest first, made from chunks of the series; only chunks that are not cached
 * are read.
 */
export async function answerPriceSeries(call: Call, series: PriceSeries): Promise<Answer> {
  const { token, interval, range, limit } = series
  const most = Math.min(limit ?? Number.POSITIVE_INFINITY, countBuckets(range.from, range.to, interval))
  const form = { interval, order: 'asc', hasLines: most > MOST_CACHED.pricePoints } as const
  const isTable = call.representation.format !== 'json'
  const source = toSource(call, token, isTable)
  const selecting = selectPoints(toSeries(source, form), call, range, limit)
  const reading = selecting.then((selected) => selected.points)
  const [{ isCut }, points, newest, coarse] = await Promise.all([
    selecting,
    reading,
    range.open ? readCachedNewest(call, token.key) : null,
    countCoarsePoints(call, { token: token.key, interval, range, isSpread: isSpread(call) }, reading),
  ])
  const { count, asOf } = points
  const early = points.countSince(toDue(call, interval))
  const described = describe(call, series, { points: count, early, asOf, newest, coarse, isCut })
  if (!isTable) return { assembled: points.toBody(toTokenFrame(token)), ...described }
  const answer = toAnswer(points, source, call.representation)
  return { ...answer, ...described, headers: { ...answer.headers, ...described.headers } }
}
