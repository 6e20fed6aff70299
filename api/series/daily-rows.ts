import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import type { DailySeries } from '../../shared/datasets/define-series.ts'
import { toIdSql } from '../../shared/ids.ts'
import { INTERVAL_SECONDS, type Interval } from '../../shared/intervals.ts'
import { type Answer, IS_ANY, toOwned } from '../formats/formats.ts'
import type { SeriesQuestion } from './series.ts'
import { toBucketSql } from './series-source.ts'
import { answerEachTable, answerSeriesTable, checkTable, inTableOrder, isOfEach } from './table.ts'

/** The dataset with the cadence of the points: observations may be more frequent. */
export const toDaily = ({ dataset }: DailySeries): DatasetFacts =>
  dataset.cadence === '1d' ? dataset : { ...dataset, cadence: '1d' }

/** The intervals of a series, finest first. */
export const toIntervals = ({ isDaysOnly }: DailySeries): readonly ['1d', ...Interval[]] =>
  isDaysOnly ? ['1d'] : ['1d', '7d']

const toMs = (parameter: string) => `fromUnixTimestamp64Milli({${parameter}: Int64}, 'UTC')`

/** SQL for the values of a record in their order, with `next` for each value inside its objects. */
function toTuples(record: z.ZodObject, next: (name: string) => string): string {
  const members = Object.entries(record.shape as z.ZodRawShape)
  const values = members.map(([name, one]) =>
    one instanceof z.ZodObject ? `tuple(${toTuples(one, next)})` : next(name),
  )
  return values.join(', ')
}

/** A week that combines its days has a source if all of them have the same. */
const SOURCE_OF_WEEK = 'if(count(s.source) = count() AND uniqExact(s.source) = 1, any(s.source), NULL)'

/** SQL for the values of a record from a row `s` of the series' statement. `id` is SQL for the owner's id. */
function toValues(
  { series, record, id }: RowsForm,
  time: string,
  { toValue, source }: { readonly toValue: (column: string) => string; readonly source: string },
): string {
  const columns = series.columns.map(({ name }) => toValue(`s.${name}`)).values()
  return toTuples(record, (name) => {
    if (name === series.time) return time
    if (name === 'source') return source
    if (name === '_id') return toIdSql('{dataset: String}', id, 'toUnixTimestamp64Milli(s.day)')
    return name === series.about ? id : String(columns.next().value)
  })
}

const OF_ROW = { toValue: String, source: 's.source' }

/** The rows of a series, with the record of a point: the usual one, or the one with its source. */
interface RowsForm {
  readonly series: DailySeries
  readonly record: z.ZodObject
  /** SQL for the owner's id. */
  readonly id: string
  /** SQL for the record from its values. */
  readonly toRecord: (values: string) => string
}

/**
 * SQL for the points of an interval, unordered: `owner`, `row_at` (start of the bucket), `as_of` and `record`, one per
 * owner and bucket. Parameters: the owners `entities`, `from` and `to` in Unix milliseconds, and `dataset`.
 */
export function toRowsSql(form: RowsForm, interval: Interval): string {
  const { series, toRecord } = form
  const { about, combineWeek } = series
  const [from, end] = [toMs('from'), toMs('to')]
  const owner = about === undefined ? '' : 's.owner AS owner, '
  if (interval === '1d') {
    const rows = series.select({ isOwner: IS_ANY, from, to: end })
    return `SELECT ${owner}s.day AS row_at, s.as_of AS as_of, ${toRecord(toValues(form, 's.day', OF_ROW))} AS record
FROM (${rows}) AS s`
  }
  const bucket = toBucketSql('s.day', interval)
  // The last bucket of a range may end after the range, which is of the buckets' starts.
  const to = `${end} + INTERVAL ${INTERVAL_SECONDS[interval]} SECOND`
  const rows = `FROM (${series.select({ isOwner: IS_ANY, from, to })}) AS s`
  const isInRange = `${bucket} >= ${from} AND ${bucket} < ${end}`
  const by = about === undefined ? 'row_at' : 'owner, row_at'
  if (combineWeek === undefined)
    return `SELECT ${owner}${bucket} AS row_at, s.as_of AS as_of, ${toRecord(toValues(form, bucket, OF_ROW))} AS record
${rows}
WHERE ${isInRange}
ORDER BY s.day
LIMIT 1 BY ${by}`
  const ofWeek = { toValue: combineWeek, source: SOURCE_OF_WEEK }
  return `SELECT ${owner}${bucket} AS row_at, max(s.as_of) AS as_of, ${toRecord(toValues(form, bucket, ofWeek))} AS record
${rows}
WHERE ${isInRange}
GROUP BY ${by}`
}

/**
 * A daily series of several owners as a table, newest point first. Without `limit` it has at most `each` rows of each owner.
 * @throws DataError `storage`, Problem `invalid_parameter`.
 */
export async function answerTable(
  call: Parameters<typeof answerSeriesTable>[0] & {
    readonly query: SeriesQuestion & Omit<Parameters<typeof answerSeriesTable>[2], 'interval'>
  },
  series: DailySeries,
  each: number,
): Promise<Answer> {
  const { query, representation } = call
  checkTable(query, 'desc')
  const interval = query.interval ?? '1d'
  const dataset = toDaily(series)
  // The key of the owner is a column of the rows `s`.
  const { record } = representation
  const owned = toOwned(call, record, 's.owner')
  const ofOwned = { ...call, representation: owned.representation }
  const source = {
    name: `${dataset.name}-table`,
    dataset,
    order: 'desc',
    sql: inTableOrder(toRowsSql({ series, record, ...owned }, interval), 'desc'),
    params: { ...owned.params, dataset: dataset.name },
  } as const
  // `limit` may change between pages, so a page continues in the way of the first one.
  const { limit } = query
  if (isOfEach(representation.after) || (limit === undefined && representation.after === ''))
    return answerEachTable(ofOwned, source, { ...query, interval, each: limit ?? each })
  const most = limit ?? each * call.entities.length
  return (await answerSeriesTable(ofOwned, source, { ...query, interval, limit: most })).answer
}
