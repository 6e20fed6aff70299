import type { z } from 'zod'

/** Array parameters with values that may contain commas: each value is a separate parameter and never split. */
export const wholeValues = new WeakSet<z.ZodType>()
