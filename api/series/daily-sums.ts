import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { DAY_MS, HISTORY_START, toBucketStart } from '../../shared/intervals.ts'
import type { Answer } from '../answers/answer.ts'
import { optionalLimit, time } from '../parameters/kinds.ts'
import { answerRecords } from '../records/answer.ts'
import { toObject } from '../records/columns.ts'
import type { Representation } from '../records/representation.ts'
import type { Surroundings } from '../route/define-route.ts'
import { answerQuestion } from './asked-series.ts'
import { countSlices, findNewest } from './pieces.ts'
import { isPlain, type SeriesQuestion, seriesParameters } from './questions.ts'
import { NO_FRAME, toArray, toSlice } from './rows.ts'
import { checkRange, describeSeries } from './series.ts'
import type { SeriesSource } from './series-source.ts'
import { isOfWholeRows, readWhole } from './whole-series.ts'

const MAX_DAYS = 10_000
const VALUES = 'recorded_at, tuple(value_usd, tuple(member_count))'

/** The parameters of a series of daily sums: `limit` means days back (contract section 2). */
export const dailySumParameters = {
  limit: optionalLimit('days', { max: MAX_DAYS }).meta({
    description: `From how many days ago on, at most ${MAX_DAYS}; 10 when neither it nor \`start\` is given.`,
    examples: [30],
  }),
  start: time(`First moment, inclusive, not before ${HISTORY_START}.`, '2024-01-01', {
    earliest: HISTORY_START,
  }).optional(),
  end: time('Last moment, exclusive; now when it is not given.', '2024-02-01').optional(),
  ...seriesParameters(['1d', '7d'], 'asc'),
}

type Query = SeriesQuestion & { [Name in 'limit' | 'start' | 'end']?: number | undefined }

/**
 * The points of the last days or of a range, oldest first unless it is asked for otherwise: a record is the day, the sum and how
 * many have a part in it.
 */
export async function answerDailySums(
  call: Surroundings & { readonly representation: Representation; readonly signal: AbortSignal },
  series: DatasetFacts & Pick<Dataset, 'table'>,
  query: Query,
): Promise<Answer> {
  checkRange(query)
  const at = call.now()
  const days = query.limit ?? 10
  if (query.start !== undefined || query.end !== undefined || !isPlain(query, 'asc', '1d')) {
    const back = query.start !== undefined && query.limit === undefined ? 0 : at - days * DAY_MS
    const { limit: _, ...question } = query
    const start = Math.max(query.start ?? 0, back)
    return (await answerQuestion(call, toSource(call, series), { ...question, start })).answer
  }
  const from = toBucketStart(at - days * DAY_MS - 1, '1d') + DAY_MS
  const { records, ...answer } = await answerFrom(call, series, from)
  const range = { from, to: toBucketStart(at, '1d') + DAY_MS, open: true }
  const { headers } = describeSeries({ interval: '1d', range, points: records, asOf: answer.asOf })
  // The oldest day leaves the answer when it is more than `days` days old.
  return { ...answer, headers: { ...answer.headers, ...headers }, expiresAt: from + days * DAY_MS + 1 }
}

const toSource = (
  { representation: { record } }: { representation: Representation },
  dataset: DatasetFacts,
): SeriesSource => ({
  name: dataset.name,
  dataset,
  record,
  time: 'recordedAt',
  intervals: ['1d', '7d'],
  sql: () => `SELECT toDateTime64(recorded_at, 3, 'UTC') AS row_at, row_at AS as_of,
  ${toObject(record, VALUES)} AS record
FROM ${dataset.series.table} FINAL
WHERE recorded_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND recorded_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')`,
  params: {},
})

/** The points from a time on. */
async function answerFrom(
  call: Parameters<typeof answerDailySums>[0],
  { name, table }: Pick<Dataset, 'name' | 'table'>,
  from: number,
): Promise<Answer & { records: number }> {
  const { representation } = call
  const sql = (condition: string) => `SELECT recorded_at AS row_at, recorded_at AS as_of,
  ${toObject(representation.record, VALUES)} AS record
FROM ${table} FINAL
${condition}
ORDER BY recorded_at`
  if (!isOfWholeRows(representation)) {
    const since = "WHERE recorded_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')"
    return answerRecords(call, { name, sql: sql(since), params: { from } })
  }
  const rows = await readWhole(call, { dataset: name, entity: 0 }, { name, sql: sql(''), params: {} })
  const slice = toSlice(rows, { from, to: Number.POSITIVE_INFINITY })
  return { body: toArray([slice], NO_FRAME), asOf: findNewest([slice]), records: countSlices([slice]) }
}
