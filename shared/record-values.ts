import { z } from 'zod'

/** The kinds of members of public records. `.describe()` on them gives a member its meaning. */

/** The ClickHouse types of values that cannot be derived from their schemas. */
export const columnTypes = z.registry<{ readonly type: string }>()

/** The units of values; texts, times and plain counts have none. */
export const units = z.registry<{ readonly unit: string }>()

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
export const usd = z.number().register(units, { unit: 'USD' })
export const usdOrNull = z.number().nullable().register(units, { unit: 'USD' })
export const percent = z.number().register(units, { unit: 'percent' })
export const percentOrNull = z.number().nullable().register(units, { unit: 'percent' })
/** From 0 to 1. */
export const shareOfOne = z.number().register(units, { unit: 'share' })
