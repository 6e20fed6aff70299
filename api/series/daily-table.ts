import { INTERVAL_SECONDS, type Interval } from '../../shared/intervals.ts'
import type { Answer } from '../answers/answer.ts'
import { toIdSql } from '../answers/keyset.ts'
import { IS_ANY, type Owned, toOwned } from '../records/owned.ts'
import type { DailySeries } from './daily.ts'
import type { SeriesQuestion } from './series.ts'
import { toBucketSql } from './series-source.ts'
import { answerSeriesTable, checkTable, inTableOrder } from './table.ts'

/** The source of the points of a series: the rows, the time of a point, and the time of its data. */
export function toPlaces({ rows, dataset: { series } }: DailySeries, isOwner: string) {
  if (rows === undefined) return { table: `${series.table} FINAL`, at: series.time, asOf: series.time }
  return { table: rows(isOwner), at: 'day', asOf: 'observed_at' }
}

/** SQL for the rows of several owners (`TableSource.sql`), without order. */
function toRowsSql(series: DailySeries, owned: Owned, column: string, interval: Interval): string {
  const { table, at, asOf } = toPlaces(series, IS_ANY)
  const id = toIdSql('{dataset: String}', owned.id, `toUnixTimestamp64Milli(toDateTime64(${at}, 3, 'UTC'))`)
  const ids = '_id' in series.point.shape ? `${id}, ${owned.id}, ` : ''
  const toRecord = (values: string) => owned.toRecord(`row_at, ${ids}${values}`)
  const isInRange = (time: string) =>
    `toUnixTimestamp64Milli(${time}) >= {from: Int64} AND toUnixTimestamp64Milli(${time}) < {to: Int64}`
  const rowAt = `toDateTime64(${interval === '1d' ? at : toBucketSql(at, interval)}, 3, 'UTC') AS row_at`
  const isSummed = interval !== '1d' && series.weekValues !== undefined
  const within = `FROM ${table}
WHERE ${column} ${IS_ANY} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC') + INTERVAL ${INTERVAL_SECONDS[interval]} SECOND`
  if (isSummed)
    return `SELECT ${column} AS owner, ${rowAt}, max(toDateTime64(${asOf}, 3, 'UTC')) AS as_of, ${toRecord(series.weekValues ?? '')} AS record
${within}
GROUP BY ${column}, row_at
HAVING ${isInRange('row_at')}`
  return `SELECT ${column} AS owner, ${rowAt}, toDateTime64(${asOf}, 3, 'UTC') AS as_of, ${toRecord(series.values)} AS record
${within} AND ${isInRange('row_at')}
ORDER BY owner, ${at}
LIMIT 1 BY owner, row_at`
}

/**
 * A daily series of several owners as a table, newest point first.
 * @throws DataError `storage`, Problem `invalid_parameter`.
 */
export async function answerDailyTable(
  call: Parameters<typeof answerSeriesTable>[0] & {
    readonly query: SeriesQuestion & Omit<Parameters<typeof answerSeriesTable>[2], 'interval'>
  },
  series: DailySeries,
  { column, intervals }: { readonly column: string; readonly intervals: readonly [Interval, ...Interval[]] },
): Promise<Answer> {
  const { query } = call
  checkTable(query, 'desc')
  const interval = query.interval ?? intervals[0]
  const owned = toOwned(call, series.point, column)
  const { name } = series.dataset
  const { answer } = await answerSeriesTable(
    { ...call, representation: owned.representation },
    {
      name: `${name}-table`,
      dataset: series.dataset,
      order: 'desc',
      sql: inTableOrder(toRowsSql(series, owned, column, interval), 'desc'),
      params: { ...owned.params, dataset: name },
    },
    { ...query, interval },
  )
  return answer
}
