import { z } from 'zod'
import { DAO_VALUES, daoRecord } from '../../shared/datasets/dao-records.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import type { DailySeries } from '../../shared/datasets/define-series.ts'
import { TOKEN_FACTS, tokenRecord } from '../../shared/datasets/token-records.ts'
import type { Interval } from '../../shared/intervals.ts'
import { SOURCE_TEXT, unitOf } from '../../shared/record-values.ts'
import type { Registry } from '../../shared/registry/registry.ts'

/** A column of the files. `unit` is absent for texts, times and plain counts. */
interface Column {
  readonly name: string
  readonly description: string
  readonly unit?: string
}

/** A dataset of the publication. */
export interface Published {
  readonly name: string
  readonly description: string
  /** The stored dataset whose coverage the partitions report; absent for the registry's records. */
  readonly of?: DatasetFacts
  /** The entity of a row: its id and names are columns of each row. */
  readonly about?: 'token' | 'dao'
  /** The values of the partition key `interval`; absent if the dataset has one step. */
  readonly intervals?: readonly Interval[]
  /** Whether a file has the rows of a year instead of a month: readers need one request for each file. */
  readonly isYearly?: (interval: Interval) => boolean
  /** The table and its column with the time by which rows are partitioned; absent for a dataset in one file. */
  readonly extent?: (interval: Interval) => { readonly table: string; readonly time: string }
  /**
   * SQL for the rows of `{from: DateTime64(3, 'UTC')}` (inclusive) to `{to: ...}` (exclusive): `key` of the entity, and a
   * column for each of `columns`.
   */
  readonly rows: (interval: Interval) => string
  readonly params?: (registry: Registry) => Readonly<Record<string, unknown>>
  /** The first column is the time, for a dataset with an extent. */
  readonly columns: readonly Column[]
  /** Columns after entity and time that make the order of rows unique. */
  readonly order?: readonly string[]
}

/** A member of records: their declaration is the only place that has its description. */
function findMember(record: z.ZodObject, member: string): { readonly schema: z.ZodType; readonly description: string } {
  let schema: z.ZodType = record
  const name = record.meta()?.id ?? 'the record'
  for (const step of member.split('.')) {
    const inner = schema instanceof z.ZodNullable ? schema.unwrap() : schema
    const next = inner instanceof z.ZodObject ? (inner.shape as Record<string, z.ZodType>)[step] : undefined
    if (next === undefined) throw new Error(`${name} has no member ${member}`)
    schema = next
  }
  const { description } = schema
  if (description === undefined) throw new Error(`${name} does not describe ${member}`)
  return { schema, description }
}

/** The description of a record's member in the API's documentation. */
export const documented = (record: z.ZodObject, member: string): string => findMember(record, member).description

/** The columns of files, each with the member of the records whose value it has. */
export type Columns<Values = Readonly<Record<string, string>>> = readonly (readonly [
  name: string,
  member: keyof Values & string,
  unit?: string,
])[]

/** SQL of columns, from the SQL of the members by name. */
export const toValues = <Values extends Readonly<Record<string, string>>>(
  values: Values,
  columns: Columns<Values>,
): string => columns.map(([name, member]) => `${values[member]} AS ${name}`).join(', ')

/** Columns that are members of records. The declaration of a member has its unit, or the list of columns. */
export const from = (record: z.ZodObject, columns: Columns): Column[] =>
  columns.map(([name, member, ownUnit]) => {
    const { schema, description } = findMember(record, member)
    const unit = ownUnit ?? unitOf(schema)
    return { name, description, ...(unit === undefined ? {} : { unit }) }
  })

const asMoment = (parameter: string) => `{${parameter}: DateTime64(3, 'UTC')}`
/** The start of the rows' range in `rows`. */
export const MOMENT_FROM = asMoment('from')
/** The end of the rows' range in `rows`. */
export const MOMENT_TO = asMoment('to')
export const RANGE = (time: string) => `${time} >= ${asMoment('from')} AND ${time} < ${asMoment('to')}`
/** A day in UTC: a date, so that it is the same day in every time zone of a reader. */
const asDay = (sql: string) => `toDate32(${sql}, 'UTC')`
export const DAY = asDay('observed_at')

/** The provider of an observation: the last column, so that the columns of older files keep their positions. */
export const SOURCE: Column = { name: 'source', description: SOURCE_TEXT }

/**
 * The files of a daily series, one for each year: a row per owner and day. `more` are series of the same dataset whose values are columns
 * after its own. The last column is the provider, if the dataset knows it.
 */
export function publishSeries(series: DailySeries, description: string, more: readonly DailySeries[] = []): Published {
  const { dataset, about, record, time } = series
  const own = [series, ...more].flatMap((one) => one.columns)
  const columns = series.sourced === undefined ? own : [...own, SOURCE]
  const values = Object.assign({}, ...[series, ...more].map((one) => one.values))
  const key = about === undefined ? '0' : 's.owner'
  return {
    ...{ name: dataset.name, description, of: dataset, extent: () => dataset.series, isYearly: () => true },
    ...(about === undefined ? {} : { about }),
    rows: () => `SELECT ${key} AS key, ${asDay('s.day')} AS day, ${columns.map(({ name }) => `s.${name} AS ${name}`).join(', ')}
FROM (${series.select({ from: asMoment('from'), to: asMoment('to'), values })}) AS s`,
    columns: [{ name: 'day', description: record.shape[time]?.description ?? '' }, ...columns],
  }
}

const TOKEN: Columns<typeof TOKEN_FACTS> = [
  ['token_id', '_id'],
  ['token_name', 'name'],
  ['token_symbol', 'symbol'],
  ['dao_id', 'dao'],
]
const DAO_NAME: Columns<typeof DAO_VALUES> = [['dao_name', 'name']]
const DAO: Columns<typeof DAO_VALUES> = [['dao_id', '_id'], ...DAO_NAME]

const ENTITIES = {
  token: {
    columns: [...from(tokenRecord, TOKEN), ...from(daoRecord, DAO_NAME)],
    values: [toValues(TOKEN_FACTS, TOKEN), toValues(DAO_VALUES, DAO_NAME)].join(', '),
    joins: `INNER JOIN (SELECT key, id, name, symbol, dao_id, dao_key FROM tokens FINAL) AS t ON t.key = r.key
LEFT JOIN (SELECT key, name FROM daos FINAL) AS d ON d.key = t.dao_key`,
    first: 'token_id',
  },
  dao: {
    columns: from(daoRecord, DAO),
    values: toValues(DAO_VALUES, DAO),
    joins: 'INNER JOIN (SELECT key, id, name FROM daos FINAL) AS d ON d.key = r.key',
    first: 'dao_id',
  },
} as const

/** All columns of a dataset's files, in their order. */
export const toColumns = ({ about, columns }: Published): readonly Column[] =>
  about === undefined ? columns : [...ENTITIES[about].columns, ...columns]

/** The columns by which the rows of a file are sorted. */
export const toOrder = ({ about, columns, extent, order = [] }: Published): string[] => [
  ...(about === undefined ? [] : [ENTITIES[about].first]),
  ...(extent === undefined ? [] : columns.slice(0, 1).map(({ name }) => name)),
  ...order,
]

/** SQL for the rows of the files; `isKeyed` adds the key of the entity. */
export function toSelect(dataset: Published, interval: Interval, isKeyed = false): string {
  const { about, columns, rows } = dataset
  const entity = about === undefined ? undefined : ENTITIES[about]
  const values = [
    ...(isKeyed ? ['r.key AS key'] : []),
    ...(entity === undefined ? [] : [entity.values]),
    ...columns.map(({ name }) => `r.${name} AS ${name}`),
  ]
  return `SELECT ${values.join(', ')}\nFROM (${rows(interval)}) AS r\n${entity?.joins ?? ''}`
}
