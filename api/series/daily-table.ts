import type { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { toIdSql } from '../../shared/ids.ts'
import { INTERVAL_SECONDS, type Interval } from '../../shared/intervals.ts'
import { type Answer, IS_ANY, type Owned, toOwned } from '../formats/formats.ts'
import type { Described } from '../route/define-route.ts'
import type { EntityKind, Named } from '../route/entities.ts'

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

/** The owner of a series. */
export interface SeriesOwner {
  readonly kind: EntityKind<Named>
  readonly tag: string
  /** The column with the owner's key, and the member of a point with the owner, if there is one. */
  readonly column: string
}

export interface DailySeries extends Omit<Described, 'tag'> {
  /** The owner. Default: a DAO. */
  readonly of?: SeriesOwner
  /** Default: days and weeks. */
  readonly intervals?: readonly [Interval, ...Interval[]]
  readonly dataset: DatasetFacts
  /** The schema of a point: its time, `_id` and the owner's id if it has them, and the values. */
  readonly point: z.ZodObject
  /**
   * SQL for one row per day, with the owner's column, the time of the point as `day` and that of the observation as
   * `observed_at`. Default: the rows of the dataset's table. `isOwner` is the condition on the owner's column.
   */
  readonly rows?: (isOwner: string) => string
  /** SQL for the values, from the table's row. */
  readonly values: string
  /**
   * SQL for the values of a whole week, as aggregates of its rows. Without it a week has the values of its first day.
   */
  readonly weekValues?: string
}
