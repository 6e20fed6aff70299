import { z } from 'zod'
import { columnTypes } from '../../shared/record-values.ts'
import type { FORMATS } from './representation.ts'

/** A column of an answer: its name, and its SQL in a row with `record`. */
export interface Column {
  readonly name: string
  readonly sql: string
  /** The member names from the record to the value. */
  readonly path: readonly string[]
  /** The schema of its values, if it is known. */
  readonly schema: z.ZodType
  /** Whether some records have no value. */
  readonly isNullable: boolean
}

export type Shape = Pick<(typeof FORMATS)['json'], 'shape' | 'hasLists'>

const quoted = (text: string) => `'${text.replaceAll(/[\\']/g, '\\$&')}'`

const member = (record: string, name: string) => `tupleElement(${record}, ${quoted(name)})`

/** A member that may be absent is null in statements and tables. */
function bare(schema: z.ZodType): { schema: z.ZodType; isNullable: boolean } {
  if (schema instanceof z.ZodOptional) return { ...bare(schema.unwrap() as z.ZodType), isNullable: true }
  if (schema instanceof z.ZodNullable) return { schema: schema.unwrap() as z.ZodType, isNullable: true }
  return { schema, isNullable: false }
}

/**
 * The ClickHouse type of a schema, with `toLeaf` for single values. A nullable object or list is a Variant, which contains
 * it or nothing.
 */
function toType(schema: z.ZodType, toLeaf: (value: z.ZodType) => string): string {
  const { schema: inner, isNullable } = bare(schema)
  if (inner instanceof z.ZodObject) {
    const members = Object.entries(inner.shape as z.ZodRawShape)
    const types = members.map(([name, one]) => `${name} ${toType(one as z.ZodType, toLeaf)}`)
    return isNullable ? `Variant(Tuple(${types.join(', ')}))` : `Tuple(${types.join(', ')})`
  }
  if (inner instanceof z.ZodArray) {
    const type = `Array(${toType(inner.element as z.ZodType, toLeaf)})`
    return isNullable ? `Variant(${type})` : type
  }
  // A value of several types is a Variant, which contains one of them or nothing.
  if (inner instanceof z.ZodUnion) return toLeaf(inner)
  return isNullable ? `Nullable(${toLeaf(inner)})` : toLeaf(inner)
}

function toJsonLeaf(value: z.ZodType): string {
  if (value instanceof z.ZodBoolean) return 'Bool'
  if (value instanceof z.ZodNumber) return value.format === null ? 'Float64' : 'Int64'
  return 'String'
}

/** The ClickHouse type that parses a value of a schema from JSON. */
export const toJsonType = (schema: z.ZodType): string => toType(schema, toJsonLeaf)

/** The ClickHouse type of a schema in statements and tables. */
const toColumnType = (schema: z.ZodType): string =>
  toType(schema, (value) => columnTypes.get(value)?.type ?? toJsonLeaf(value))

/** SQL for an object from its values in the order of its members. */
export const toObject = (schema: z.ZodObject, values: string): string =>
  `CAST(tuple(${values}), $type$${toColumnType(schema)}$type$)`

/** A nullable object is a Variant in ClickHouse; its members can be extracted only from its JSON. */
function flattenNullable(schema: z.ZodObject, path: readonly string[], sql: string): Column[] {
  return Object.entries(schema.shape).map(([key, one]) => {
    const value = bare(one as z.ZodType).schema
    const extracted = `JSONExtract(toJSONString(${sql}), ${quoted(key)}, ${quoted(toJsonType(z.nullable(value)))})`
    return { ...toColumn([...path, key], extracted), schema: value, isNullable: true }
  })
}

const toColumn = (path: readonly string[], sql: string) => ({ name: path.join('_'), path, sql })

function flatten(schema: z.ZodType, path: readonly string[], sql: string, shape: Shape): Column[] {
  const { schema: inner, isNullable } = bare(schema)
  if (inner instanceof z.ZodObject) {
    if (isNullable) return flattenNullable(inner, path, sql)
    return Object.entries(inner.shape as z.ZodRawShape).flatMap(([key, one]) =>
      flatten(one as z.ZodType, [...path, key], member(sql, key), shape),
    )
  }
  const json = `toJSONString(${sql})`
  // Tables have no lists that may be unknown.
  const isMaybeList = inner instanceof z.ZodArray && isNullable
  if (inner instanceof z.ZodUnion || isMaybeList)
    return [{ ...toColumn(path, `if(isNull(${sql}), NULL, ${json})`), schema: inner, isNullable }]
  const isText = inner instanceof z.ZodArray && !shape.hasLists
  return [{ ...toColumn(path, isText ? json : sql), schema: inner, isNullable }]
}

/**
 * The columns of a format: a record's members. Flat formats have one column per value, named by the member path with
 * underscores (`financialData_price`), a name that needs no quotes in any tool.
 */
export function toColumns(record: z.ZodObject, fields: readonly string[], shape: Shape): readonly Column[] {
  return fields.flatMap((name) => {
    const sql = member('record', name)
    const schema = record.shape[name] as z.ZodType
    if (shape.shape === 'flat') return flatten(schema, [name], sql, shape)
    const { schema: inner, isNullable } = bare(schema)
    return [{ ...toColumn([name], sql), schema: inner, isNullable }]
  })
}

/** Formats columns for a SELECT. */
export const toSelectList = (columns: readonly Column[]) =>
  columns.map(({ name, sql }) => `${sql} AS \`${name}\``).join(',\n  ')
