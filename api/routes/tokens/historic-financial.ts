import { z } from 'zod'
import type { Database } from '../../../shared/clickhouse.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { countBuckets, INTERVALS, toBucketStart } from '../../../shared/intervals.ts'
import { type Answer, defineRoute } from '../../define.ts'
import { tokenKind } from '../../entities.ts'
import { toStaleAt } from '../../freshness.ts'
import { SERIES_HEADERS } from '../../headers.ts'
import { oneOf, optionalPage, time } from '../../parameters/kinds.ts'
import { Problem } from '../../problem/problem.ts'
import { describeSeries, nextGridTime, startAfter, toSeriesRange } from '../../series.ts'
import { idValue, timeValue } from '../../values.ts'
import { JSON_SETTINGS, writeArray } from '../../written-json.ts'
import { hasPoints, pointQuote, pointsSql, readNewest } from './price-points.ts'
import { answerPriceTable, tableRow, toPricePlace } from './price-table.ts'

const EARLIEST = '2022-02-01'
const MAX_POINTS = 1_000_000

/** Up to here (about 1 MB) an answer is kept as bytes; longer ones are streamed. */
const MAX_KEPT_POINTS = 5_000

const point = z.strictObject({ timestamp: timeValue, quote: pointQuote })

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
    'One point per bucket that has an observation, oldest first, on the UTC grid (7d on Mondays). A point is the first observation of its bucket: `timestamp` is the start of the bucket, `quote.USD.timestamp` the time of the observation. `X-Series-Missing` counts the buckets without one, up to now or to the last point when `limit` cuts. With another format than JSON the route takes several tokens, each by its id or name as one alone: token after token in the order of their ids, `limit` counts the rows of all together.',
  one: tokenKind,
  severalInTables: true,
  query: {
    interval: oneOf(INTERVALS, 'Length of a bucket.'),
    start: time(`First moment, inclusive, not before ${EARLIEST}.`, '2024-01-01', { earliest: EARLIEST }),
    end: time('Last moment, exclusive; now when it is not given.', '2024-01-08T00:00:00Z').optional(),
    ...optionalPage('points', { max: MAX_POINTS }),
  },
  record: tableRow,
  response: series,
  datasets: [tokenPrices],
  headers: SERIES_HEADERS,
  handle: async (call): Promise<Answer> => {
    const { query, found: token, db, now, wanted } = call
    checkRange(query.start, query.end)
    const { interval, limit } = query
    const after = wanted.after === '' ? undefined : toPricePlace(wanted.after)
    if (wanted.format !== 'json') return answerPriceTable(call, query, toSeriesRange(query, now()), after)
    const start = after === undefined ? query.start : startAfter(after.at, interval)
    const range = toSeriesRange({ ...query, start }, now())
    const most = Math.min(limit ?? Number.POSITIVE_INFINITY, countBuckets(range.from, range.to, interval))
    const params = { token: token.key, from: range.from, to: range.to, limit: most }
    const sql = pointsSql(interval)
    const before = `{"name":${JSON.stringify(token.name)},"id":"${token.id}","data":`
    const describe = async (points: number, asOf: number | null) => {
      const rest = { ...params, from: asOf === null ? range.to : startAfter(asOf, interval) }
      const isCut = points === limit && (await hasPoints(db, interval, rest))
      const heard = range.open && !isCut ? await readNewest(db, token.key) : null
      const described = describeSeries({ interval, range, points, asOf, isCut })
      const place = JSON.stringify([token.key, toBucketStart(asOf ?? 0, interval)])
      return {
        ...described,
        headers: { ...described.headers, ...(isCut ? { Link: wanted.nextLink(place) } : {}) },
        // Coarse points are seldom: what tells whether prices still come is the token's newest observation.
        staleAt: heard === null ? null : toStaleAt(heard, tokenPrices),
        ...(range.open ? { expiresAt: nextGridTime(now()) } : {}),
      }
    }
    if (most <= MAX_KEPT_POINTS) {
      const { body, records, asOf } = await writeArray(db, { name: 'historic-financial', sql: sql.records, params })
      return { body: Buffer.concat([Buffer.from(before), body, Buffer.from('}')]), ...(await describe(records, asOf)) }
    }
    const { points, newest: asOf, digest } = await summarize(db, sql.columns, params)
    // As many points as the tag is made of, even if one more arrives meanwhile.
    const counted = { ...params, limit: points }
    return {
      ...(await describe(points, points === 0 ? null : asOf)),
      digest: `${token.id} ${token.name} ${interval} ${points} ${asOf} ${digest}`,
      before,
      after: '}',
      open: (signal) =>
        db.stream({
          name: 'historic-financial-stream',
          sql: sql.rows,
          params: counted,
          settings: { ...JSON_SETTINGS, output_format_json_array_of_rows: 1 },
          signal,
        }),
      holds: async () => (await summarize(db, sql.columns, counted)).digest === digest,
    }
  },
})
