import { z } from 'zod'

/** The ClickHouse types of values whose schemas do not tell them. */
export const columnTypes = z.registry<{ readonly type: string }>()

/** A record's id (docs/contract.md, section 3). */
export const idValue = z
  .string()
  .regex(/^[0-9a-f]{24}$/)
  .describe('Id of the record: 24 lower-case hexadecimal characters, the same for ever.')

/** A time: ISO 8601 UTC with milliseconds. */
export const timeValue = z.iso.datetime({ precision: 3 }).register(columnTypes, { type: "DateTime64(3, 'UTC')" })

/** A number that no source may have given: null then, never 0 (docs/contract.md, section 4). */
export const numberOrNull = z.number().nullable()

/** Numbers of things. Readers of Parquet and Arrow see how wide each is, so that a width never changes. */
export const uint8 = z.int().register(columnTypes, { type: 'UInt8' })
export const uint32 = z.int().register(columnTypes, { type: 'UInt32' })
export const uint64 = z.int().register(columnTypes, { type: 'UInt64' })

/** A number of things that no source may have given. */
export const countOrNull = z.number().register(columnTypes, { type: 'UInt64' }).nullable()
