import { z } from 'zod'

/** A record's id (contract section 3). */
export const idValue = z.string().regex(/^[0-9a-f]{24}$/)

/** A time: ISO 8601 UTC with milliseconds. */
export const timeValue = z.iso.datetime({ precision: 3 })

/** A number that no source may have given: null then, never 0 (contract section 4). */
export const numberOrNull = z.number().nullable()
