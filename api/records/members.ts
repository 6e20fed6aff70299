import { z } from 'zod'
import { toColumns } from './columns.ts'
import { columnTypes } from './values.ts'

export type MemberKind = 'number' | 'text' | 'time' | 'boolean'

/** What ClickHouse holds a member's `sql` as. */
export const MEMBER_TYPES = {
  number: 'Float64',
  text: 'String',
  time: 'Int64',
  boolean: 'UInt8',
} as const satisfies Readonly<Record<MemberKind, string>>

/** A value of a record that it can be sorted and filtered by. */
export interface Member {
  /** The members that lead to it with dots in between: `financialData.marketCap`. */
  readonly path: string
  readonly kind: MemberKind
  readonly isNullable: boolean
  /**
   * Its value in a row that has `record`: a float, Unix milliseconds, 0 or 1, or a text in lower case, as `toComparable`
   * has it.
   */
  readonly sql: string
}

function toKind(schema: z.ZodType): MemberKind {
  if (schema instanceof z.ZodNumber) return 'number'
  if (schema instanceof z.ZodBoolean) return 'boolean'
  return columnTypes.get(schema)?.type.startsWith('DateTime64') ? 'time' : 'text'
}

const TO_SQL: Readonly<Record<MemberKind, (sql: string) => string>> = {
  number: (sql) => `toFloat64(${sql})`,
  time: (sql) => `toUnixTimestamp64Milli(${sql})`,
  boolean: (sql) => `toUInt8(${sql})`,
  text: (sql) => `lowerUTF8(toString(${sql}))`,
}

/** The members of a record by their paths, lists and what is inside them left out (docs/contract.md, section 8). */
export function toMembers(record: z.ZodObject): ReadonlyMap<string, Member> {
  const columns = toColumns(record, Object.keys(record.shape), { shape: 'flat', hasLists: true })
  return new Map(
    columns
      .filter(({ schema }) => !(schema instanceof z.ZodArray))
      .map(({ path, schema, isNullable, sql }) => {
        const kind = toKind(schema)
        return [path.join('.'), { path: path.join('.'), kind, isNullable, sql: TO_SQL[kind](sql) }]
      }),
  )
}

/** A member's value as it compares: times as Unix milliseconds, truth as 0 or 1, text in lower case; null is unknown. */
export function toComparable(record: unknown, { path, kind }: Member): number | string | null {
  let value = record
  for (const name of path.split('.')) value = (value as Record<string, unknown> | null)?.[name] ?? null
  if (value === null) return null
  if (kind === 'time') return Date.parse(String(value))
  return kind === 'text' ? String(value).toLowerCase() : Number(value)
}
