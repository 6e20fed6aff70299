import { z } from 'zod'
import type { Database } from '../../../shared/clickhouse.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { countBuckets, INTERVALS } from '../../../shared/intervals.ts'
import { type Answer, defineRoute } from '../../define.ts'
import { tokenKind } from '../../entities.ts'
import { SERIES_HEADERS } from '../../headers.ts'
import { oneOf, optionalLimit, time } from '../../parameters/kinds.ts'
import { Problem } from '../../problem/problem.ts'
import { describeSeries, nextGridTime, type SeriesRange, toSeriesRange } from '../../series.ts'
import { idValue, numberOrNull, timeValue } from '../../values.ts'
import { JSON_SETTINGS, writeArray } from '../../written-json.ts'
import { pointsSql } from './price-points.ts'

const EARLIEST = '2022-02-01'
const MAX_POINTS = 1_000_000

/** Up to here (about 1 MB) an answer is kept as bytes; longer ones are streamed. */
const MAX_KEPT_POINTS = 5_000

const point = z.strictObject({
  timestamp: timeValue,
  quote: z.strictObject({
    USD: z.strictObject({
      price: numberOrNull,
      volume_24h: numberOrNull,
      market_cap: numberOrNull,
      total_supply: numberOrNull,
      circulating_supply: numberOrNull,
      timestamp: timeValue,
    }),
  }),
})

const series = z.strictObject({ name: z.string(), id: idValue, data: z.array(point) })

const summary = z.object({ points: z.int(), newest: z.int(), digest: z.string() })

/** Points, newest time and a hash over all of an answer's data, in Unix milliseconds. */
async function summarize(db: Database, sql: string, params: Readonly<Record<string, unknown>>) {
  const [row] = await db.rows({
    name: 'historic-financial-summary',
    sql: `SELECT count() AS points, toUnixTimestamp64Milli(max(as_of)) AS newest,
  toString(groupBitXor(sipHash64(tuple(bucket, as_of, price, volume_24h, market_cap, total_supply, circulating_supply)))) AS digest
FROM (${sql})`,
    params,
    schema: summary,
  })
  return row ?? { points: 0, newest: 0, digest: '' }
}

function checkRange(start: number, end: number | undefined): void {
  if (end === undefined || end >= start) return
  throw new Problem('invalid_parameter', 'end must not be before start.', { param: 'end' })
}

export const historicFinancialRoute = defineRoute({
  path: '/data/tokens/historic-financial',
  tag: 'Tokens',
  summary: 'Price, volume, market cap and supplies of one token over time',
  description:
    'One point per bucket that has an observation, oldest first, on the UTC grid (7d on Mondays). A point is the first observation of its bucket: `timestamp` is the start of the bucket, `quote.USD.timestamp` the time of the observation. `X-Series-Missing` counts the buckets without one, up to now or to the last point when `limit` cuts.',
  one: tokenKind,
  query: {
    interval: oneOf(INTERVALS, 'Length of a bucket.'),
    start: time(`First moment, inclusive, not before ${EARLIEST}.`, '2024-01-01', { earliest: EARLIEST }),
    end: time('Last moment, exclusive; now when it is not given.', '2024-01-08T00:00:00Z').optional(),
    limit: optionalLimit('points', { max: MAX_POINTS }),
  },
  response: series,
  datasets: [tokenPrices],
  headers: SERIES_HEADERS,
  handle: async ({ query, found: token, db, now }): Promise<Answer> => {
    checkRange(query.start, query.end)
    const range: SeriesRange = toSeriesRange(query, now())
    const most = Math.min(query.limit ?? Number.POSITIVE_INFINITY, countBuckets(range.from, range.to, query.interval))
    const params = { token: token.key, from: range.from, to: range.to, limit: most }
    const sql = pointsSql(query.interval)
    const before = `{"name":${JSON.stringify(token.name)},"id":"${token.id}","data":`
    const clock = query.end !== undefined && query.end <= now() ? {} : { expiresAt: nextGridTime(now()) }
    if (most <= MAX_KEPT_POINTS) {
      const { body, records, asOf } = await writeArray(db, { name: 'historic-financial', sql: sql.records, params })
      const whole = Buffer.concat([Buffer.from(before), body, Buffer.from('}')])
      return { body: whole, ...clock, ...describeSeries({ ...query, range, points: records, asOf }) }
    }
    const { points, newest, digest } = await summarize(db, sql.columns, params)
    const asOf = points === 0 ? null : newest
    return {
      ...describeSeries({ ...query, range, points, asOf }),
      digest: `${token.id} ${token.name} ${query.interval} ${points} ${newest} ${digest}`,
      before,
      after: '}',
      // As many points as the tag was made of, even if one more arrived meanwhile.
      open: (signal) =>
        db.stream({
          name: 'historic-financial-stream',
          sql: sql.rows,
          params: { ...params, limit: points },
          settings: { ...JSON_SETTINGS, output_format_json_array_of_rows: 1 },
          signal,
        }),
    }
  },
})
