import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { HISTORY_START, INTERVAL_SECONDS, type Interval, MONDAY_SHIFT_MS } from '../../shared/intervals.ts'
import { idValue } from '../../shared/record-values.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { type Answer, IS_ANY, inTables, toObject, toOwned } from '../formats/formats.ts'
import { SERIES_HEADERS } from '../http/headers.ts'
import { optionalPage, time } from '../parameters/kinds.ts'
import { type Described, defineRoute, type Route, toDescribed } from '../route/define-route.ts'
import { tokenKind } from '../route/entities.ts'
import { toPoints } from './filled.ts'
import { checkChosen, checkRange, chosenParameters, type SeriesQuestion, toTokenFrame } from './series.ts'
import { answerQuestion, type SeriesCall } from './series-answer.ts'
import type { SeriesSource } from './series-source.ts'
import { answerSeriesTable, checkTable, inTableOrder } from './table.ts'

const MAX_CANDLES = 1_000_000

interface Candles extends Omit<Described, 'tag'> {
  /** Schema name in the API documentation. */
  readonly series: string
  /** The dataset with the stored rows to aggregate. */
  readonly dataset: DatasetFacts
  /** The finest interval comes first; it corresponds to a cadence. */
  readonly intervals: readonly [Interval, ...Interval[]]
  /** The schema of a candle, `timestamp` first. */
  readonly candle: z.ZodObject
  /** Its other members, as SQL aggregates over the rows of a bucket. */
  readonly values: string
  /** The column with a row's time. */
  readonly time: string
  /** See `SeriesSource.readUpTo`. Default for tables: the newest candle. */
  readonly readUpTo?: string
}

/**
 * SQL for one candle per token and bucket with a row. Buckets lie on the common grid, which begins on the first Monday
 * (docs/contract.md, section 4).
 */
const toSql = ({ dataset, values, time: at }: Candles, interval: Interval, toRecord: (values: string) => string) => `
WITH toInt64(toUnixTimestamp(${at})) AS second
SELECT token AS owner, fromUnixTimestamp64Milli((second - (second - ${MONDAY_SHIFT_MS / 1000}) % ${INTERVAL_SECONDS[interval]}) * 1000, 'UTC') AS row_at,
  max(${at}) AS as_of, ${toRecord(`row_at, ${values}`)} AS record
FROM ${dataset.series.table} FINAL
WHERE token ${IS_ANY} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
GROUP BY token, row_at`

/** Defines a route for one token's candles from stored rows (docs/contract.md, section 8). */
export function defineCandles(candles: Candles): Route {
  return defineRoute({
    ...toDescribed({ ...candles, tag: 'Tokens', description: `${candles.description} ${inTables(tokenKind.noun)}` }),
    one: tokenKind,
    severalInTables: true,
    query: {
      ...chosenParameters(candles.intervals),
      start: time(`First moment, inclusive, not before ${HISTORY_START}.`, '2024-01-01', { earliest: HISTORY_START }),
      end: time('Last moment, exclusive; default: now.', '2024-01-08T00:00:00Z').optional(),
      ...optionalPage('candles', { max: MAX_CANDLES }),
    },
    record: candles.candle,
    response: z
      .strictObject({
        name: z.string().describe('Name of the token.'),
        id: idValue.describe('Id of the token.'),
        data: toPoints({ record: candles.candle, time: 'timestamp' }),
      })
      .meta({ id: candles.series, description: 'The candles of one token.' }),
    datasets: [candles.dataset],
    headers: SERIES_HEADERS,
    handle: (call) => answerCandles(candles, call),
  })
}

const nameOf = ({ path }: Candles) => path.slice('/data/tokens/'.length)

type CandlesQuery = SeriesQuestion & {
  readonly start: number
  readonly end?: number | undefined
  readonly limit?: number | undefined
}

async function answerCandles(
  candles: Candles,
  call: SeriesCall & { readonly found: Token; readonly entities: readonly Token[]; readonly query: CandlesQuery },
): Promise<Answer> {
  const { query, found: token } = call
  checkRange(query)
  checkChosen(query, candles.intervals)
  if (call.entities.length > 1) return answerCandlesOfSeveral(candles, call)
  const source: SeriesSource = {
    name: nameOf(candles),
    dataset: candles.dataset,
    record: candles.candle,
    time: 'timestamp',
    intervals: candles.intervals,
    sql: (interval) => toSql(candles, interval, (values) => toObject(candles.candle, values)),
    params: { entities: [token.key] },
    cached: { key: `${candles.path} ${token.key}` },
    ...(candles.readUpTo === undefined ? {} : { readUpTo: candles.readUpTo }),
  }
  return (await answerQuestion(call, source, query, { frame: toTokenFrame(token) })).answer
}

/** The candles of several tokens as a table, oldest first. */
async function answerCandlesOfSeveral(
  candles: Candles,
  call: Parameters<typeof answerSeriesTable>[0] & { readonly query: CandlesQuery },
): Promise<Answer> {
  const { query } = call
  checkTable(query, 'asc')
  const interval = query.interval ?? candles.intervals[0]
  const owned = toOwned(call, candles.candle, 'token')
  const { answer } = await answerSeriesTable(
    { ...call, representation: owned.representation },
    {
      name: nameOf(candles),
      dataset: candles.dataset,
      order: 'asc',
      sql: inTableOrder(toSql(candles, interval, owned.toRecord), 'asc'),
      params: owned.params,
      ...(candles.readUpTo === undefined ? {} : { readUpTo: candles.readUpTo }),
    },
    { ...query, interval },
  )
  return answer
}
