import { z } from 'zod'

export const ruleRow = z.object({
  rule: z.string(),
  revision: z.string(),
  state: z.enum(['active', 'paused', 'removed']),
  beganAt: z.int(),
})
export type StoredRule = z.infer<typeof ruleRow>

/** Whether a condition holds for a subject of a rule, as of the last evaluation that changed it. */
export const stateRow = z.object({
  rule: z.string(),
  revision: z.string(),
  subject: z.string(),
  holds: z.boolean(),
  value: z.number().nullable(),
  firings: z.int(),
  firedAt: z.int().nullable(),
})
export type SubjectState = z.infer<typeof stateRow>

export const firingRow = z.object({
  rule: z.string(),
  id: z.string(),
  kind: z.string(),
  firedAt: z.int(),
  title: z.string(),
  text: z.string(),
  entityType: z.string(),
  entityId: z.string(),
  entityName: z.string(),
  observedAt: z.int().nullable(),
  value: z.number().nullable(),
  before: z.number().nullable(),
  threshold: z.number().nullable(),
  unit: z.string(),
  page: z.string().nullable(),
  request: z.string().nullable(),
  channels: z.array(z.string()),
  dueAt: z.int(),
  isDigest: z.boolean(),
})
/** A stored firing. Times are Unix milliseconds, `page` and `request` are paths. */
export type StoredFiring = z.infer<typeof firingRow>

/** A new firing, with the state that it leaves behind. */
export interface Firing extends StoredFiring {
  readonly revision: string
  readonly subject: string
  readonly firings: number
  readonly holds: boolean
}

export const deliveryRow = z.object({
  rule: z.string(),
  channel: z.string(),
  firing: z.string(),
  message: z.string(),
  dueAt: z.int(),
  state: z.enum(['pending', 'delivered', 'dead']),
  attempts: z.int(),
  firstTryAt: z.int().nullable(),
  nextTryAt: z.int(),
  reason: z.string(),
  version: z.int(),
})
/** The delivery of a firing to a channel. */
export type Delivery = z.infer<typeof deliveryRow>

/** A message: all firings that are sent together. */
export interface MessageKey {
  readonly rule: string
  readonly channel: string
  readonly message: string
}

export const idRow = z.object({ id: z.string() })

export const recordedRow = firingRow.extend({ revision: z.string(), subject: z.string(), holds: z.boolean() })
/** A stored firing with the subject that it is about. */
export type RecordedFiring = z.infer<typeof recordedRow>
