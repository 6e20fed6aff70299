import { z } from 'zod'
import { toSeriesDueEnd } from '../../shared/buckets.ts'
import { INTERVAL_SECONDS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { toJson } from '../../shared/json.ts'
import { toStaleAt } from '../../shared/store/readiness.ts'
import type { Answer } from '../answers/answer.ts'
import type { Representation } from '../answers/formats.ts'
import { refuseCursor, toIdSql } from '../answers/keyset.ts'
import { Problem } from '../problem/problem.ts'
import { answerRecords, toObject } from '../records/answer.ts'
import { idValue } from '../records/table.ts'
import type { AppContext } from '../route/define-route.ts'
import type { Named } from '../route/entities.ts'
import type { DailySeries } from './daily.ts'
import { countMissing, type SeriesQuestion, toExpiry, toSeriesHeaders, toSeriesRange } from './series.ts'
import { toBucketSql } from './series-source.ts'

type Call = Pick<AppContext, 'db' | 'now'> & {
  readonly entities: readonly Named[]
  readonly representation: Representation
  readonly query: SeriesQuestion & {
    readonly start?: number | undefined
    readonly end?: number | undefined
    readonly limit: number
  }
}

/** The source of the points of a series: the rows, the time of a point, and the time of its data. */
export function toPlaces({ rows, dataset: { series } }: DailySeries, isOwner: string) {
  if (rows === undefined) return { table: `${series.table} FINAL`, at: series.time, asOf: series.time }
  return { table: rows(isOwner), at: 'day', asOf: 'observed_at' }
}

/** The owner's position among the requested ones, from 1, and the time of a point in Unix milliseconds. */
const placeValues = z.tuple([z.int(), z.int()])

const counted = z.object({ position: z.int(), points: z.int(), early: z.int(), oldest: z.int() })

/** @throws Problem `invalid_parameter` for parameters of one owner only. */
function checkTable({ order, points, fill }: SeriesQuestion): void {
  if ((order ?? 'desc') === 'desc' && points === undefined && fill === undefined) return
  const param = points !== undefined ? 'points' : fill !== undefined ? 'fill' : 'order'
  throw new Problem('invalid_parameter', `${param} is for one id or name, not for a table of several.`, { param })
}

/**
 * SQL for the points of several owners: `position`, `row_at`, `as_of` and `record`, which has the owner's id and name
 * first. Parameters: `entities`, `ids`, `names`, `dataset`; `from` and `to` in Unix milliseconds.
 */
function toRowsSql(series: DailySeries, record: z.ZodObject, column: string, interval: Interval): string {
  const isOwner = 'IN {entities: Array(UInt64)}'
  const { table, at, asOf } = toPlaces(series, isOwner)
  const ofOwner = (list: string) => `arrayElement({${list}: Array(String)}, position)`
  const id = toIdSql('{dataset: String}', ofOwner('ids'), `toUnixTimestamp64Milli(toDateTime64(${at}, 3, 'UTC'))`)
  const ids = '_id' in series.point.shape ? `${id}, ${ofOwner('ids')}, ` : ''
  const toRecord = (values: string) =>
    toObject(record, `${ofOwner('ids')}, ${ofOwner('names')}, row_at, ${ids}${values}`)
  const isInRange = (time: string) =>
    `toUnixTimestamp64Milli(${time}) >= {from: Int64} AND toUnixTimestamp64Milli(${time}) < {to: Int64}`
  const rowAt = `toDateTime64(${interval === '1d' ? at : toBucketSql(at, interval)}, 3, 'UTC') AS row_at`
  const position = `toUInt32(indexOf({entities: Array(UInt64)}, ${column})) AS position`
  const isSummed = interval !== '1d' && series.weekValues !== undefined
  const within = `FROM ${table}
WHERE ${column} ${isOwner} AND ${at} >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND ${at} < fromUnixTimestamp64Milli({to: Int64}, 'UTC') + INTERVAL ${INTERVAL_SECONDS[interval]} SECOND`
  if (isSummed)
    return `SELECT ${position}, ${rowAt}, max(toDateTime64(${asOf}, 3, 'UTC')) AS as_of, ${toRecord(series.weekValues ?? '')} AS record
${within}
GROUP BY position, row_at
HAVING ${isInRange('row_at')}`
  return `SELECT ${position}, ${rowAt}, toDateTime64(${asOf}, 3, 'UTC') AS as_of, ${toRecord(series.values)} AS record
${within} AND ${isInRange('row_at')}
ORDER BY position, ${at}
LIMIT 1 BY position, row_at`
}

/** @throws Problem `invalid_parameter` for a position that no answer contained. */
function readPlace(after: string, owners: number): readonly [position: number, at: number] {
  if (after === '') return [1, Number.MAX_SAFE_INTEGER]
  const { data } = placeValues.safeParse(toJson(after))
  if (data === undefined || data[0] < 1 || data[0] > owners) throw refuseCursor()
  return data
}

/**
 * A daily series of several owners as a table: owner after owner in the order of their ids, newest point first. `limit`
 * counts the rows of all together. Missing buckets are counted like in the answers of each owner alone.
 * @throws DataError `storage`, Problem `invalid_parameter`.
 */
export async function answerDailyTable(
  call: Call,
  series: DailySeries,
  { column, intervals }: { readonly column: string; readonly intervals: readonly [Interval, ...Interval[]] },
): Promise<Answer> {
  const { db, entities, query, representation } = call
  checkTable(query)
  const now = call.now()
  const interval = query.interval ?? intervals[0]
  const range = toSeriesRange({ start: query.start ?? 0, end: query.end, interval }, now)
  const due = toSeriesDueEnd(series.dataset, interval, now)
  const record = z.strictObject({
    id: idValue.describe('Id of the owner of the point.'),
    name: z.string().describe('Name of the owner of the point.'),
    ...series.point.shape,
  })
  const [position, at] = readPlace(representation.after, entities.length)
  const rows = `SELECT * FROM (${toRowsSql(series, record, column, interval)})
WHERE (position, -toUnixTimestamp64Milli(row_at)) > ({position: UInt32}, -{at: Int64})
ORDER BY position, row_at DESC
LIMIT {limit: UInt32}`
  const params = {
    ...{ entities: entities.map(({ key }) => key), dataset: series.dataset.name },
    ...{ ids: entities.map(({ id }) => id), names: entities.map(({ name }) => name) },
    ...{ from: range.from, to: range.to, position, at },
  }
  const fields = ['id', 'name', ...representation.fields]
  const [{ next, records, ...answer }, counts] = await Promise.all([
    answerRecords(
      { db, representation: { ...representation, record, fields } },
      {
        name: `${series.dataset.name}-table`,
        sql: `SELECT as_of, tuple(position, toUnixTimestamp64Milli(row_at)) AS page_key, record FROM (${rows})`,
        params,
        page: query.limit,
      },
    ),
    db.rows({
      name: `${series.dataset.name}-table-summary`,
      sql: `SELECT position, count() AS points, countIf(toUnixTimestamp64Milli(row_at) >= {due: Int64}) AS early,
  toUnixTimestamp64Milli(min(row_at)) AS oldest
FROM (SELECT position, row_at FROM (${rows})) GROUP BY position`,
      params: { ...params, due, limit: query.limit },
      schema: counted,
    }),
  ])
  const last = next === '' ? entities.length : readPlace(next, entities.length)[0]
  const countsOf = new Map(counts.map((one) => [one.position, one]))
  let missing = 0
  for (let owner = position; owner <= last; owner += 1) {
    const { points, early, oldest } = countsOf.get(owner) ?? { points: 0, early: 0, oldest: range.to }
    const isCut = next !== '' && owner === last
    const from = isCut || query.start === undefined ? toBucketStart(oldest, interval) : range.from
    const to = owner === position ? Math.min(at, range.to) : range.to
    if (from < to) missing += countMissing({ from, to }, interval, due, { points, early })
  }
  return {
    ...answer,
    headers: { ...answer.headers, ...toSeriesHeaders(interval, records, missing) },
    staleAt: range.open && answer.asOf !== null ? toStaleAt(answer.asOf, series.dataset) : null,
    ...toExpiry(range, due, now),
  }
}
