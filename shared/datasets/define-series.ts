import { z } from 'zod'
import { observationSource, optionalSource, unitOf } from '../record-values.ts'
import type { DatasetFacts } from './define-dataset.ts'

/** The rows that a statement selects: the condition on the owner's key (default: all owners), and times as SQL. */
export interface Selection {
  readonly isOwner?: string | undefined
  /** The first day, inclusive, and the last one, exclusive: moments as DateTime64(3). */
  readonly from: string
  readonly to: string
  /** The values of each row. Default: those of the series. */
  readonly values?: Readonly<Record<string, string>>
}

interface Declaration {
  /** The owner of a point; absent for points about all entities together. */
  readonly about?: 'dao' | 'token'
  /**
   * A point: its time, then `_id` and the owner's id if it has them, then its values. The descriptions of these members
   * are only here.
   */
  readonly record: z.ZodObject
  /**
   * SQL of each value in a stored row, by the name of its column in files, in the order of the record's values. A value
   * inside an object is a value like the others.
   */
  readonly values: Readonly<Record<string, string>>
  /**
   * SQL for the value of a whole week as an aggregate of a column. Default: a week has the values of its first day.
   */
  readonly combineWeek?: (column: string) => string
  /** Set if the series has days only. */
  readonly isDaysOnly?: true
  /**
   * For values that need other tables: SQL for joins to the rows `s`, which have `owner` and these stored `columns`.
   */
  readonly joined?: {
    readonly columns: Readonly<Record<string, string>>
    readonly joins: (isOwner: string) => string
  }
}

/** The daily series of a dataset. All consumers read its record and its one statement. */
export interface DailySeries extends Declaration {
  readonly dataset: DatasetFacts
  /** The member with the time of a point. */
  readonly time: string
  /** A column for each value, in the order of the record. */
  readonly columns: readonly SeriesColumn[]
  /** The provider of the observation, if the dataset knows it (`include=source`); absent for computed values. */
  readonly sourced?: {
    /** A point with its `source`. */
    readonly record: z.ZodObject
    /** A point in the documentation, where `source` is optional. */
    readonly documented: z.ZodObject
  }
  /**
   * SQL for one row per owner and day: `owner` (absent without `about`), `day` (its start), `as_of` (the time of the
   * observation; both DateTime64(3)), the columns, and `source` with `sourced`. If a day has several observations, the
   * first is used.
   */
  select(selection: Selection): string
}

interface SeriesColumn {
  readonly name: string
  readonly description: string
  readonly unit?: string
}

const toList = (columns: Readonly<Record<string, string>>) =>
  Object.entries(columns).map(([name, sql]) => (name === sql ? name : `${sql} AS ${name}`))

/** The members of a record that are values: neither its time nor its ids. */
function listValues(record: z.ZodObject, omitted: readonly (string | undefined)[]): z.ZodType[] {
  return Object.entries(record.shape as z.ZodRawShape).flatMap(([name, one]) => {
    if (omitted.includes(name)) return []
    return one instanceof z.ZodObject ? listValues(one, []) : [one as z.ZodType]
  })
}

/**
 * Declares the daily points that a dataset serves. The API, the publication and alerts make their statements, columns and
 * descriptions from it (`serveSeries`, `publishSeries`, `watchSeries`).
 * @throws Error if the values do not fit the record
 */
export function defineSeries(dataset: DatasetFacts, declaration: Declaration): DailySeries {
  const { about, record, values } = declaration
  const [time = ''] = Object.keys(record.shape)
  const members = listValues(record, [time, '_id', about])
  const names = Object.keys(values)
  if (members.length !== names.length)
    throw new Error(`series of ${dataset.name}: the record has ${members.length} values, but ${names.length} columns`)
  const columns = names.map((name, index) => {
    const schema = members[index] as z.ZodType
    if (schema.description === undefined) throw new Error(`series of ${dataset.name}: ${name} has no description`)
    const unit = unitOf(schema)
    return { name, description: schema.description, ...(unit === undefined ? {} : { unit }) }
  })
  const sourced = dataset.series.provider === undefined ? {} : { sourced: toSourced(record) }
  return {
    ...{ ...declaration, dataset, time, columns, ...sourced },
    select: (selection) => toSelect(dataset, declaration, selection),
  }
}

const toSourced = (record: z.ZodObject): NonNullable<DailySeries['sourced']> => ({
  record: record.extend({ source: observationSource }),
  documented: record.extend({ source: optionalSource }).meta({ ...record.meta() }),
})

function toSelect(
  { series, cadence, hasOwnTimes }: DatasetFacts,
  { about, joined, ...declared }: Declaration,
  { isOwner, from, to, values = declared.values }: Selection,
): string {
  const { table, entity = '', time, provider: source } = series
  const isDayItself = cadence === '1d' && hasOwnTimes !== true
  const day = isDayItself ? time : `toDateTime64(toStartOfDay(${time}, 'UTC'), 3, 'UTC')`
  // The sorting key has the time of the observation, which is at most a day after the start of its day.
  const isInRange = isDayItself
    ? [`${time} >= ${from}`, `${time} < ${to}`]
    : [`${time} >= ${from}`, `${time} < ${to} + INTERVAL 1 DAY`, `${day} >= ${from}`, `${day} < ${to}`]
  const conditions = about === undefined || isOwner === undefined ? isInRange : [`${entity} ${isOwner}`, ...isInRange]
  const keys = [...(about === undefined ? [] : [`${entity} AS owner`]), `${day} AS day`, `${time} AS as_of`]
  const first = cadence === '1d' ? '' : `\nORDER BY ${entity}, ${time}\nLIMIT 1 BY ${entity}, day`
  const sources = source === undefined ? {} : { source }
  const rows = `SELECT ${[...keys, ...toList({ ...(joined?.columns ?? values), ...sources })].join(', ')}
FROM ${table} FINAL
WHERE ${conditions.join(' AND ')}${first}`
  if (joined === undefined) return rows
  const all = source === undefined ? values : { ...values, source: 's.source' }
  return `SELECT s.owner AS owner, s.day AS day, s.as_of AS as_of, ${toList(all).join(', ')}
FROM (${rows}) AS s
${joined.joins(isOwner ?? 'IS NOT NULL')}`
}
