import { toSeriesDueEnd } from '../../shared/coverage/wanted.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { countBuckets, type Interval, toBucketStart } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { toStaleAt } from '../../shared/store/freshness.ts'
import { type Answer, MOST_KEPT } from '../answers/answer.ts'
import { toArray } from '../answers/rows.ts'
import type { Representation } from '../records/representation.ts'
import type { Surroundings } from '../route/define-route.ts'
import { toTokenFrame } from '../series/frame.ts'
import {
  type CountedSource,
  countSince,
  countSlices,
  cutSlices,
  findNewest,
  peekRange,
  readFirst,
  readRange,
} from '../series/pieces.ts'
import { describeSeries, type PointCounts, type SeriesRange, startAfter } from '../series/series.ts'
import { countCoarse, toCoarseHeaders } from './coarse.ts'
import { countCoarsePoints, peekCoarsePoints } from './coarse-points.ts'
import { readLongSeries } from './long-series.ts'
import { peekNewest, readNewestKept } from './newest-price.ts'
import { countPoints } from './points.ts'
import { toPriceSeries, toPriceSource } from './price-pieces.ts'

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

type PeekCall = Pick<Surroundings, 'memory' | 'now' | 'config'> & { readonly representation: Representation }

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

/** The points of one token as the API's JSON, oldest first: few as bytes, many as a stream. */
export function answerPriceSeries(call: Call, series: PriceSeries): Promise<Answer> {
  const { range, interval, limit = Number.POSITIVE_INFINITY } = series
  const most = Math.min(limit, countBuckets(range.from, range.to, interval))
  return most <= MOST_KEPT.pricePoints ? answerShort(call, series, most) : answerLong(call, series, most)
}

/** A source that records whether it was read. */
function watch(source: CountedSource) {
  let isRead = false
  const read: CountedSource['read'] = (...asked) => {
    isRead = true
    return source.read(...asked)
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
    range.open ? readNewestKept(call, token.key) : null,
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
  const { memory } = call
  const { token, interval, range, limit = Number.POSITIVE_INFINITY } = series
  const buckets = countBuckets(range.from, range.to, interval)
  if (buckets > MOST_KEPT.pricePoints || limit <= buckets) return undefined
  const slices = peekRange(toPriceSeries(token.key, interval), memory, range)
  const newest = range.open ? peekNewest(memory, token.key) : null
  if (slices === undefined || newest === undefined) return undefined
  const coarse = peekCoarsePoints(memory, { token: token.key, interval, range, isSpread: isSpread(call) }, slices)
  if (coarse === undefined) return undefined
  const [points, early] = [countSlices(slices), countSince(slices, toDue(call, interval))]
  const found = { points, early, asOf: findNewest(slices), newest, coarse, isCut: false }
  const body = toArray(slices, toTokenFrame(token), memory.bodies.take)
  return { body, isQuick: true, ...describe(call, series, found) }
}

/** Streams the answer, with cached chunks if there are any. */
async function answerLong(call: Call, series: PriceSeries, most: number): Promise<Answer> {
  const { db } = call
  const { token, interval, range, limit } = series
  const asked = { token: token.key, from: range.from, to: range.to }
  const long = readLongSeries(call, { ...asked, interval, limit: limit === most ? limit : undefined })
  const coarsely = { ...range, tokens: [token.key], interval, resumed: token.key, resume: range.from }
  const [{ points, asOf, digest, open, holds }, newest, coarse] = await Promise.all([
    long,
    range.open ? readNewestKept(call, token.key) : null,
    countCoarse(
      db,
      coarsely,
      long.then((read) => read.points),
    ),
  ])
  const until = asOf === null ? range.to : startAfter(asOf, interval)
  const late = { from: Math.max(range.from, toDue(call, interval)), to: until }
  const [more, early] = await Promise.all([
    points === limit ? countPoints(db, interval, { ...asked, from: until, limit: 1 }) : 0,
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
