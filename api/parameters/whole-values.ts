import type { z } from 'zod'

/** Parameters of several values whose values may hold commas: each stands in a parameter of its own and is never split. */
export const wholeValues = new WeakSet<z.ZodType>()
