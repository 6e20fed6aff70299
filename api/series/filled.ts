import { z } from 'zod'

/** Members of a record that are the same in every row of a series, with their SQL. */
export type Constants = Readonly<Record<string, string>>

/** The series for which rows are filled in. */
export interface Filled {
  readonly record: z.ZodObject
  /** The member with the time. */
  readonly time: string
  readonly constants?: Constants
}

const bare = (schema: z.ZodType): z.ZodType =>
  schema instanceof z.ZodNullable || schema instanceof z.ZodOptional ? bare(schema.unwrap() as z.ZodType) : schema

/** Makes all values of a schema nullable, and adds that to their descriptions. */
function toNullable(schema: z.ZodType): z.ZodType {
  const inner = bare(schema)
  const description = schema.description ?? ''
  if (!(inner instanceof z.ZodObject)) {
    const value = z.nullable(inner).describe(`${description} Null in a bucket without an observation.`.trim())
    return schema instanceof z.ZodOptional ? value.optional().describe(description) : value
  }
  const members = Object.entries(inner.shape as z.ZodRawShape)
  const nullable = members.map(([name, one]) => [name, toNullable(one as z.ZodType)])
  return z.strictObject(Object.fromEntries(nullable)).describe(description)
}

/** A point, or a row for a bucket without one: there everything except time and constants may be null. */
export function toFilledSchema({ record, time, constants = {} }: Filled): z.ZodObject {
  const members = Object.entries(record.shape as z.ZodRawShape)
  const isAlwaysSet = (name: string) => name === time || name in constants
  return z.strictObject(
    Object.fromEntries(members.map(([name, one]) => [name, isAlwaysSet(name) ? one : toNullable(one as z.ZodType)])),
  )
}

/** The points of a series, or with `fill=null` a row for every bucket. */
export const toPoints = (filled: Filled) => {
  const { id, description } = filled.record.meta() ?? {}
  const row = toFilledSchema(filled).meta({ id: `Filled${id}`, description: `${description} With \`fill=null\`.` })
  return z.union([z.array(filled.record), z.array(row)]).meta({
    description: 'With `fill=null` every due bucket has a row, with null values if nothing was observed.',
  })
}

/** SQL for a row's value, null if there is no row; recursive for the members of objects. */
function toValue(schema: z.ZodType, sql: string, isThere: string): string {
  const inner = bare(schema)
  if (!(inner instanceof z.ZodObject)) return `if(${isThere}, toNullable(${sql}), NULL)`
  const members = Object.entries(inner.shape as z.ZodRawShape)
  return `tuple(${members.map(([name, one]) => toValue(one as z.ZodType, `tupleElement(${sql}, '${name}')`, isThere)).join(', ')})`
}

/** SQL for the members of `toFilledSchema`, from a row's record if `isThere`; `bucket` is the time. */
export function toFilledValues(
  { record, time, constants = {} }: Filled,
  sql: string,
  isThere: string,
  bucket: string,
): string {
  const members = Object.entries(record.shape as z.ZodRawShape)
  return members
    .map(([name, one]) => {
      if (name === time) return bucket
      return constants[name] ?? toValue(one as z.ZodType, `tupleElement(${sql}, '${name}')`, isThere)
    })
    .join(', ')
}
