import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/coverage/wanted.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { countBuckets, INTERVALS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toStaleAt } from '../../shared/store/readiness.ts'
import type { Answer } from '../answers/answer.ts'
import type { Representation } from '../answers/formats.ts'
import { type ChunkCache, type ChunkKey, doIfCached, type Sized } from '../cache/chunks.ts'
import { Problem } from '../problem/problem.ts'
import { toObject } from '../records/answer.ts'
import type { Surroundings } from '../route/define-route.ts'
import { answerQuestion } from '../series/asked-series.ts'
import { readFirst, readPieces, toPieces } from '../series/pieces.ts'
import {
  describeSeries,
  inFrame,
  type PointCounts,
  type SeriesQuestion,
  type SeriesRange,
  toTokenFrame,
} from '../series/series.ts'
import type { SeriesSource } from '../series/series-source.ts'
import { toPoints } from './chunk.ts'
import { countCoarse, countCoarsePoints, toCoarseHeaders } from './coarse.ts'
import { POINT, pointsSql, pricePoint, priceRow, toPriceSource } from './points.ts'

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
export async function answerAskedPrices(
  call: Surroundings & { readonly representation: Representation; readonly entities: readonly Token[] },
  question: SeriesQuestion & {
    readonly start: number
    readonly end?: number | undefined
    readonly limit?: number | undefined
  },
): Promise<Answer> {
  const [token, other] = call.entities
  if (token === undefined || other !== undefined) {
    throw new Problem('invalid_parameter', 'order=desc, points and fill take one token: ask for each alone.', {
      param: 'id',
    })
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

/**
 * The time of a token's newest observation in Unix milliseconds; null if there is none. It is read again after every
 * change event, because any event may concern a newer one.
 */
async function readNewestKept(
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

const isSpread = ({ config }: Pick<Surroundings, 'config'>) => config.clickhouse.cluster !== undefined

type Call = Surroundings & { readonly representation: Representation; readonly signal: AbortSignal }

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

/**
 * The points of one token as the API's JSON, oldest first, assembled from chunks of the series; only chunks that are not
 * cached are read.
 */
export async function answerPriceSeries(call: Call, series: PriceSeries): Promise<Answer> {
  const { token, interval, range, limit = Number.POSITIVE_INFINITY } = series
  const most = Math.min(limit, countBuckets(range.from, range.to, interval))
  const source = toPriceSource(call.storedPoints, token.key, interval)
  // One additional point shows whether more follow.
  const reading =
    limit === most ? readFirst(source, call, range, most + 1) : readPieces(source, call, toPieces(range, interval))
  const selecting = reading.then((chunks) => toPoints(chunks, range, interval))
  const cutting = selecting.then((all) => (all.count > most ? all.head(most) : all))
  const [all, points, newest, coarse] = await Promise.all([
    selecting,
    cutting,
    range.open ? readNewestKept(call, token.key) : null,
    countCoarsePoints(call, { token: token.key, interval, range, isSpread: isSpread(call) }, cutting),
  ])
  const { count, asOf } = points
  const early = points.countSince(toDue(call, interval))
  const described = describe(call, series, { points: count, early, asOf, newest, coarse, isCut: all !== points })
  return { assembled: points.toBody(toTokenFrame(token)), ...described }
}

/** The same answer from cached chunks only; undefined if a value must be read. */
export const findPriceSeries = (call: Omit<Call, 'signal'>, series: PriceSeries): Promise<Answer | undefined> =>
  doIfCached(call, (cached) => answerPriceSeries({ ...call, ...cached }, series))
