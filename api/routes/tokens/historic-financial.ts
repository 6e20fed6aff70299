import { z } from 'zod'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { countBuckets, INTERVALS, toBucketStart } from '../../../shared/intervals.ts'
import { toStaleAt } from '../../../shared/store/freshness.ts'
import { type Answer, MOST_KEPT } from '../../answers/answer.ts'
import { writeArray } from '../../answers/written-json.ts'
import { SERIES_HEADERS } from '../../http/headers.ts'
import { oneOf, optionalPage, time } from '../../parameters/kinds.ts'
import { readLongSeries } from '../../prices/long-series.ts'
import { hasPoints, pointsSql, pricePoint, priceRow, readNewest } from '../../prices/points.ts'
import { answerPriceTable, toPricePlace } from '../../prices/table.ts'
import { idValue } from '../../records/values.ts'
import { defineRoute } from '../../route/define-route.ts'
import { tokenKind } from '../../route/entities.ts'
import { checkRange, describeSeries, nextGridTime, startAfter, toSeriesRange } from '../../series/series.ts'

const EARLIEST = '2022-02-01'
const MAX_POINTS = 1_000_000

const series = z.strictObject({ name: z.string(), id: idValue, data: z.array(pricePoint) })

export const historicFinancialRoute = defineRoute({
  path: '/data/tokens/historic-financial',
  tag: 'Tokens',
  summary: 'Price, volume, market cap and supplies of one token over time',
  description:
    'One point per bucket that has an observation, oldest first, on the UTC grid (7d on Mondays). A point is the first observation of its bucket: `timestamp` is the start of the bucket, `quote.USD.timestamp` the time of the observation. `X-Series-Missing` counts the buckets without one, up to now or to the last point when `limit` cuts. With another format than JSON the route takes several tokens, each by its id or name as one alone: token after token in the order of their ids, `limit` counts the rows of all together.',
  one: tokenKind,
  severalInTables: true,
  query: {
    interval: oneOf(INTERVALS, 'Length of a bucket.'),
    start: time(`First moment, inclusive, not before ${EARLIEST}.`, '2024-01-01', { earliest: EARLIEST }),
    end: time('Last moment, exclusive; now when it is not given.', '2024-01-08T00:00:00Z').optional(),
    ...optionalPage('points', { max: MAX_POINTS }),
  },
  record: priceRow,
  response: series,
  datasets: [tokenPrices],
  headers: SERIES_HEADERS,
  handle: async (call): Promise<Answer> => {
    const { query, found: token, db, fragments, now, representation } = call
    checkRange(query)
    const { interval, limit } = query
    const covered = toSeriesRange(query, now())
    const keys = call.entities.map(({ key }) => key)
    const after = representation.after === '' ? undefined : toPricePlace(representation.after, keys, covered)
    if (representation.format !== 'json') return answerPriceTable(call, query, covered, after)
    const start = after === undefined ? query.start : startAfter(after.at, interval)
    const range = toSeriesRange({ ...query, start }, now())
    const most = Math.min(limit ?? Number.POSITIVE_INFINITY, countBuckets(range.from, range.to, interval))
    const params = { token: token.key, from: range.from, to: range.to, limit: most }
    const sql = pointsSql(interval)
    const before = `{"name":${JSON.stringify(token.name)},"id":"${token.id}","data":`
    // A point of a coarse interval may be days old while prices still come: the newest observation tells whether they
    // do.
    const newest = () => (range.open ? readNewest(db, token.key) : null)
    const describe = async (points: number, asOf: number | null, heard: number | null) => {
      const rest = { ...params, from: asOf === null ? range.to : startAfter(asOf, interval) }
      const isCut = points === limit && (await hasPoints(db, interval, rest))
      const described = describeSeries({ interval, range, points, asOf, isCut })
      const place = JSON.stringify([token.key, toBucketStart(asOf ?? 0, interval)])
      return {
        ...described,
        headers: { ...described.headers, ...(isCut ? { Link: representation.nextLink(place) } : {}) },
        staleAt: heard === null || isCut ? null : toStaleAt(heard, tokenPrices),
        ...(range.open ? { expiresAt: nextGridTime(now()) } : {}),
      }
    }
    if (most <= MOST_KEPT.pricePoints) {
      const written = writeArray(db, { name: 'historic-financial', sql: sql.records, params })
      const [{ body, records, asOf }, heard] = await Promise.all([written, newest()])
      const whole = Buffer.concat([Buffer.from(before), body, Buffer.from('}')])
      return { body: whole, ...(await describe(records, asOf, heard)) }
    }
    const asked = {
      token: token.key,
      interval,
      from: range.from,
      to: range.to,
      limit: limit === most ? limit : undefined,
    }
    const read = readLongSeries({ db, fragments, now }, asked)
    const [series, heard] = await Promise.all([read, newest()])
    return {
      ...(await describe(series.points, series.asOf, heard)),
      digest: `${token.id} ${token.name} ${interval} ${series.digest}`,
      before,
      after: '}',
      open: series.open,
      holds: series.holds,
    }
  },
})
