import { z } from 'zod'
import { name, slug } from './schema.ts'

const DECIMAL = /^(0|[1-9]\d*)(\.\d+)?$/

/** An ISO date or date-time in UTC. */
const time = z.union([z.iso.date(), z.iso.datetime()], 'must be an ISO date or date-time in UTC')

const quantity = z
  .string()
  .regex(DECIMAL, 'must be a decimal number, written as a text')
  .refine((text) => /[1-9]/.test(text), 'must be more than 0')

/** A member of the basket. `token` is its symbol, or `<chain>/<address>`; `quantity` is in whole tokens of one basket. */
export const elementRecord = z.strictObject({ token: name, quantity })

/** What the basket holds from `validFrom` on, until the next composition. */
export const compositionRecord = z.strictObject({
  validFrom: time,
  elements: z.array(elementRecord).min(1, 'must have at least one'),
})

/**
 * The whole of index.json. `launch` is the first moment that the index has a value. `token` is the contract of the Index
 * Token; its `mode` says where the value locked in it is read: `eth` is the ether and wrapped ether that the contract
 * holds, `setToken` the components that a Set Protocol contract tells of itself (docs/providers.md, section 16).
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
