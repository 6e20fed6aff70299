import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { HISTORY_START, INTERVAL_SECONDS, type Interval, MONDAY_SHIFT_MS } from '../../shared/intervals.ts'
import type { Answer } from '../answers/answer.ts'
import { SERIES_HEADERS } from '../http/headers.ts'
import { optionalPage, time } from '../parameters/kinds.ts'
import { toObject } from '../records/columns.ts'
import { idValue } from '../records/values.ts'
import { defineRoute, type Route } from '../route/define-route.ts'
import { type Described, toDescribed } from '../route/described.ts'
import { tokenKind } from '../route/entities.ts'
import { answerQuestion } from './asked-series.ts'
import { toPoints } from './filled.ts'
import { inFrame, toTokenFrame } from './frame.ts'
import { checkChosen, chosenParameters } from './questions.ts'
import { checkRange } from './series.ts'
import type { SeriesSource } from './series-source.ts'

const MAX_CANDLES = 1_000_000

interface Candles extends Omit<Described, 'tag'> {
  /** What the documentation calls the answer. */
  readonly series: string
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
  /** As a source has it; `{token: UInt64}` is the token. */
  readonly readUpTo?: string
}

/**
 * One candle per bucket with a row. Buckets lie on the grid of all series, which begins on the first Monday (docs/contract.md, section
 * 4).
 */
const toSql = ({ dataset, candle, values, time: at }: Candles, interval: Interval) => `
WITH toInt64(toUnixTimestamp(${at})) AS second
SELECT fromUnixTimestamp64Milli((second - (second - ${MONDAY_SHIFT_MS / 1000}) % ${INTERVAL_SECONDS[interval]}) * 1000, 'UTC') AS row_at,
  max(${at}) AS as_of, ${toObject(candle, `row_at, ${values}`)} AS record
FROM ${dataset.series.table} FINAL
WHERE token = {token: UInt64} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
GROUP BY row_at`

/** A route of one token's candles over what is stored of it (docs/contract.md, section 8). */
export function defineCandles(candles: Candles): Route {
  return defineRoute({
    ...toDescribed({ ...candles, tag: 'Tokens' }),
    one: tokenKind,
    query: {
      ...chosenParameters(candles.intervals),
      start: time(`First moment, inclusive, not before ${HISTORY_START}.`, '2024-01-01', { earliest: HISTORY_START }),
      end: time('Last moment, exclusive; now when it is not given.', '2024-01-08T00:00:00Z').optional(),
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
    handle: async (call): Promise<Answer> => {
      const { query, found: token, representation } = call
      checkRange(query)
      checkChosen(query, candles.intervals)
      const source: SeriesSource = {
        name: candles.path.slice('/data/tokens/'.length),
        dataset: candles.dataset,
        record: candles.candle,
        time: 'timestamp',
        intervals: candles.intervals,
        sql: (interval) => toSql(candles, interval),
        params: { token: token.key },
        ...(candles.readUpTo === undefined ? {} : { readUpTo: candles.readUpTo }),
      }
      const { answer } = await answerQuestion(call, source, query)
      if (representation.format !== 'json') return answer
      return inFrame(answer, toTokenFrame(token))
    },
  })
}
