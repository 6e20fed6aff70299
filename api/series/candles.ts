import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { countBuckets, HISTORY_START, INTERVAL_SECONDS, type Interval } from '../../shared/intervals.ts'
import { type Answer, MOST_KEPT } from '../answers/answer.ts'
import { SERIES_HEADERS } from '../http/headers.ts'
import { oneOf, optionalPage, time } from '../parameters/kinds.ts'
import { answerRecords } from '../records/answer.ts'
import { toObject } from '../records/columns.ts'
import { defineKeyset } from '../records/keyset.ts'
import { idValue } from '../records/values.ts'
import { defineRoute, type Route } from '../route/define-route.ts'
import { tokenKind } from '../route/entities.ts'
import { checkRange, describeSeries, nextGridTime, toSeriesRange } from './series.ts'

const MAX_CANDLES = 1_000_000

interface Candles {
  readonly path: string
  readonly summary: string
  readonly description: string
  /** Whose stored rows are summed up. */
  readonly dataset: DatasetFacts
  /** The interval that stands for a cadence comes first: the finest. */
  readonly intervals: readonly [Interval, ...Interval[]]
  /** A candle, `timestamp` first. */
  readonly candle: z.ZodObject
  /** Its other members, as aggregates over the rows of a bucket. */
  readonly values: string
  /** The column with a row's time. */
  readonly time: string
}

const KEYSET = defineKeyset(['toUnixTimestamp64Milli(bucket)', 'Int64'])

/**
 * One candle per bucket with a row, oldest first. Buckets lie on the grid of all series, which begins on the first Monday
 * (contract section 4).
 */
const toSql = ({ dataset, candle, values, time: at }: Candles, after: string) => `
SELECT as_of, ${KEYSET.place} AS page_key, record FROM
(
  WITH toInt64(toUnixTimestamp(${at})) AS second
  SELECT fromUnixTimestamp64Milli((second - (second - 345600) % {seconds: Int64}) * 1000, 'UTC') AS bucket,
    max(${at}) AS as_of, ${toObject(candle, `bucket, ${values}`)} AS record
  FROM ${dataset.series.table} FINAL
  WHERE token = {token: UInt64} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
    AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
  GROUP BY bucket
)
WHERE true${KEYSET.isAfter(after)}
ORDER BY bucket
LIMIT {limit: UInt32}`

/** A route of one token's candles over what is stored of it (contract section 8). */
export function defineCandles(candles: Candles): Route {
  return defineRoute({
    path: candles.path,
    tag: 'Tokens',
    summary: candles.summary,
    description: candles.description,
    one: tokenKind,
    query: {
      interval: oneOf(candles.intervals, 'Length of a bucket.'),
      start: time(`First moment, inclusive, not before ${HISTORY_START}.`, '2024-01-01', { earliest: HISTORY_START }),
      end: time('Last moment, exclusive; now when it is not given.', '2024-01-08T00:00:00Z').optional(),
      ...optionalPage('candles', { max: MAX_CANDLES }),
    },
    record: candles.candle,
    response: z.strictObject({ name: z.string(), id: idValue, data: z.array(candles.candle) }),
    datasets: [candles.dataset],
    headers: SERIES_HEADERS,
    handle: async (call): Promise<Answer> => {
      const { query, found: token, now, representation } = call
      checkRange(query)
      const { interval } = query
      const after = representation.after === '' ? undefined : Number(KEYSET.read(representation.after)[0])
      const range = toSeriesRange(after === undefined ? query : { ...query, start: after + 1 }, now())
      const most = countBuckets(range.from, range.to, interval)
      const answer = await answerRecords(
        call,
        {
          name: candles.path.slice('/data/tokens/'.length),
          sql: toSql(candles, representation.after),
          params: {
            token: token.key,
            from: range.from,
            to: range.to,
            seconds: INTERVAL_SECONDS[interval],
            limit: most,
          },
          ...(query.limit === undefined ? {} : { page: query.limit }),
        },
        { isLong: Math.min(most, query.limit ?? most) > MOST_KEPT.pricePoints },
      )
      const isCut = answer.next !== ''
      const { headers } = describeSeries({ interval, range, points: answer.records, asOf: answer.asOf, isCut })
      return {
        ...(representation.format === 'json' ? ofToken(token, answer) : answer),
        headers: { ...answer.headers, ...headers },
        ...(range.open && !isCut ? {} : { staleAt: null }),
        ...(range.open ? { expiresAt: nextGridTime(now()) } : {}),
      }
    },
  })
}

/** A list of points as the series of one token. */
function ofToken<A extends Answer>({ name, id }: { name: string; id: string }, answer: A): A {
  const before = `{"name":${JSON.stringify(name)},"id":"${id}","data":`
  if ('body' in answer) return { ...answer, body: Buffer.concat([Buffer.from(before), answer.body, Buffer.from('}')]) }
  return {
    ...answer,
    digest: `${id} ${name} ${answer.digest}`,
    before: before + answer.before,
    after: `${answer.after}}`,
  }
}
