import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { countBuckets, type Interval, toBucketStart } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { toStaleAt } from '../../shared/store/freshness.ts'
import { type Answer, MOST_KEPT } from '../answers/answer.ts'
import { writeArray } from '../answers/written-json.ts'
import type { Representation } from '../records/representation.ts'
import type { Surroundings } from '../route/define-route.ts'
import { describeSeries, nextGridTime, type SeriesRange, startAfter } from '../series/series.ts'
import { countCoarse, toCoarseHeaders } from './coarse.ts'
import { readLongSeries } from './long-series.ts'
import { hasPoints, pointsSql, readNewest } from './points.ts'

interface PriceSeries {
  readonly token: Token
  readonly interval: Interval
  readonly range: SeriesRange
  /** Most points; all of the range unless it is given. */
  readonly limit: number | undefined
}

/** What was found of a series. */
interface Found {
  readonly points: number
  /** Newest time used, in Unix milliseconds; null without points. */
  readonly asOf: number | null
  /** Time of the token's newest observation; null where the range has an end, so that it cannot grow stale. */
  readonly newest: number | null
  /** Points whose observations are coarser than the interval. */
  readonly coarse: number
}

type Call = Surroundings & { readonly representation: Representation }

/** Age, expiry and headers of an answer. */
async function describe(
  { db, now, representation }: Call,
  series: PriceSeries,
  { points, asOf, newest, coarse }: Found,
) {
  const { token, interval, range, limit } = series
  const rest = { token: token.key, from: asOf === null ? range.to : startAfter(asOf, interval), to: range.to }
  const isCut = points === limit && (await hasPoints(db, interval, rest))
  const described = describeSeries({ interval, range, points, asOf, isCut })
  const place = JSON.stringify([token.key, toBucketStart(asOf ?? 0, interval)])
  return {
    ...described,
    headers: {
      ...described.headers,
      ...toCoarseHeaders(coarse),
      ...(isCut ? { Link: representation.nextLink(place) } : {}),
    },
    staleAt: newest === null || isCut ? null : toStaleAt(newest, tokenPrices),
    ...(range.open ? { expiresAt: nextGridTime(now()) } : {}),
  }
}

/** The points of one token as the interface's JSON, oldest first: few as bytes, many as a stream. */
export async function answerPriceSeries(call: Call, series: PriceSeries): Promise<Answer> {
  const { db, fragments, now } = call
  const { token, interval, range, limit } = series
  const most = Math.min(limit ?? Number.POSITIVE_INFINITY, countBuckets(range.from, range.to, interval))
  const asked = { token: token.key, from: range.from, to: range.to }
  const [before, after] = [`{"name":${JSON.stringify(token.name)},"id":"${token.id}","data":`, '}']
  // A point of a coarse interval may be days old while prices still come: the newest observation tells whether they do.
  const reading = range.open ? readNewest(db, token.key) : null
  const readCoarse = (points: Promise<number>) =>
    countCoarse(db, { ...range, tokens: [token.key], interval, resumed: token.key, resume: range.from }, points)
  if (most <= MOST_KEPT.pricePoints) {
    const statement = {
      name: 'historic-financial',
      sql: pointsSql(interval).records,
      params: { ...asked, limit: most },
    }
    const written = writeArray(db, statement)
    const coarsely = readCoarse(written.then(({ records }) => records))
    const [{ body, records, asOf }, newest, coarse] = await Promise.all([written, reading, coarsely])
    const described = await describe(call, series, { points: records, asOf, newest, coarse })
    return { body: Buffer.concat([Buffer.from(before), body, Buffer.from(after)]), ...described }
  }
  const long = readLongSeries({ db, fragments, now }, { ...asked, interval, limit: limit === most ? limit : undefined })
  const coarsely = readCoarse(long.then(({ points }) => points))
  const [{ points, asOf, digest, open, holds }, newest, coarse] = await Promise.all([long, reading, coarsely])
  const described = await describe(call, series, { points, asOf, newest, coarse })
  return { ...described, digest: `${token.id} ${token.name} ${interval} ${digest}`, before, after, open, holds }
}
