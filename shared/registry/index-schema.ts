import { z } from 'zod'
import { name, slug } from './schema.ts'

const DECIMAL = /^(0|[1-9]\d*)(\.\d+)?$/

/** An ISO date or date-time in UTC. */
const time = z.union([z.iso.date(), z.iso.datetime()], 'must be an ISO date or date-time in UTC')

const quantity = z
  .string()
  .regex(DECIMAL, 'must be a decimal number, written as a text')
  .refine((text) => /[1-9]/.test(text), 'must be more than 0')

/**
 * A member of the basket. `token` is its symbol, or `<chain>/<address>`; `quantity` is in whole tokens of one basket.
 */
export const elementRecord = z.strictObject({ token: name, quantity })

/** The members of the basket from `validFrom` until the next composition. */
export const compositionRecord = z.strictObject({
  validFrom: time,
  elements: z.array(elementRecord).min(1, 'must have at least one'),
})

/**
 * The content of index.json. `launch` is the first time with an index value. `token` is the contract of the Index
 * Token. Its `mode` selects the source of the value locked in it: `eth` is the ether and wrapped ether of the contract,
 * `setToken` the components that a Set Protocol contract reports (docs/providers.md, section 16).
 */
export const indexRecord = z.strictObject({
  slug,
  name,
  launch: time,
  token: z.strictObject({ chain: slug, contractAddress: name, mode: z.enum(['setToken', 'eth']) }),
  compositions: z.array(compositionRecord).min(1, 'must have at least one'),
})

export type ElementRecord = z.infer<typeof elementRecord>
export type IndexRecord = z.infer<typeof indexRecord>
