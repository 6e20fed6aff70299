import { z } from 'zod'

/** The kinds of members of public records. `.describe()` on them gives a member its meaning. */

/** The ClickHouse types of values that cannot be derived from their schemas. */
export const columnTypes = z.registry<{ readonly type: string }>()

/** The units of values; texts, times and plain counts have none. */
const units = z.registry<{ readonly unit: string }>()

/** A record's id (docs/contract.md, section 3). */
export const idValue = z
  .string()
  .regex(/^[0-9a-f]{24}$/)
  .describe('Id of the record: 24 lower-case hexadecimal characters, the same for ever.')

/** A time: ISO 8601 UTC with milliseconds. */
export const timeValue = z.iso.datetime({ precision: 3 }).register(columnTypes, { type: "DateTime64(3, 'UTC')" })

/** A number that may be unknown: then null, never 0 (docs/contract.md, section 4). */
export const numberOrNull = z.number().nullable()

/** Counts. The integer width is visible in Parquet and Arrow files, so it must never change. */
export const uint8 = z.int().register(columnTypes, { type: 'UInt8' })
export const uint32 = z.int().register(columnTypes, { type: 'UInt32' })
export const uint64 = z.int().register(columnTypes, { type: 'UInt64' })

/** A count that may be unknown. */
export const countOrNull = z.number().register(columnTypes, { type: 'UInt64' }).nullable()

/** Numbers with a unit. */
export const numberIn = (unit: string) => z.number().register(units, { unit })
export const usd = numberIn('USD')
export const usdOrNull = usd.nullable()
export const percent = numberIn('percent')
export const percentOrNull = percent.nullable()
/** From 0 to 1. */
export const shareOfOne = numberIn('share')

/** The description of the provider of an observation, in files. */
export const SOURCE_TEXT = 'Provider of the observation; null for observations of versions that did not store it.'
const SOURCE = `${SOURCE_TEXT} With \`include=source\`.`

/** The provider of an observation, which `include=source` adds. */
export const observationSource = z.string().nullable().describe(SOURCE)
/** The same in the documentation of a record that may be without it. */
export const optionalSource = observationSource.optional().describe(SOURCE)

/** The unit of a member's values. */
export function unitOf(schema: z.ZodType): string | undefined {
  const unit = units.get(schema)?.unit
  if (unit !== undefined) return unit
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return unitOf(schema.unwrap() as z.ZodType)
  return schema instanceof z.ZodArray ? unitOf(schema.element as z.ZodType) : undefined
}
