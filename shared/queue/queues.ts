import { type JobsOptions, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { INTERVALS } from '../intervals.ts'

const time = z.number().int().nonnegative()

/**
 * What a queued job says. A slot job collects the state as of its slot; a range job collects history, `from` inclusive
 * and `to` exclusive, `again` also what is known already. Times are Unix milliseconds, `entities` registry ids (absent:
 * all that the job collects for).
 */
export const jobPayload = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('slot'), slot: time, entities: z.array(z.string()).min(1).optional() }),
  z.strictObject({
    kind: z.literal('range'),
    from: time,
    to: time,
    interval: z.enum(INTERVALS),
    entities: z.array(z.string()).min(1).optional(),
    again: z.literal(true).optional(),
  }),
])

export type JobPayload = z.infer<typeof jobPayload>
export type RangePayload = Extract<JobPayload, { kind: 'range' }>

/** What a finished job reports. `uncovered` counts entities for which no provider had an answer. */
export interface JobReport {
  rows: number
  rejected: number
  uncovered: number
  providers: string[]
}

export type DatasetQueue = Queue<JobPayload, JobReport>

const DAY_SECONDS = 86_400

/**
 * Finished jobs stay long enough for their ids to keep a slot from being enqueued twice; failed ones are the dead
 * letters, kept 14 days. Waiting between attempts is the runner's backoff, of at most five minutes: a job outlives an
 * outage of over an hour.
 */
const DEFAULT_OPTIONS: JobsOptions = {
  attempts: 20,
  backoff: { type: 'provider' },
  removeOnComplete: { age: 2 * DAY_SECONDS, count: 100_000 },
  removeOnFail: { age: 14 * DAY_SECONDS },
}

/**
 * The prefix of a queue's own keys. On a cluster, where the configured prefix stands in braces, each queue has a word
 * of its own in them: its keys are on one node, as its scripts need, and queues are spread over the nodes.
 */
export const toQueuePrefix = (prefix: string, dataset: string): string =>
  prefix.startsWith('{') ? `{${prefix.slice(1, -1)}:${dataset}}` : prefix

/** One queue per dataset, under the configured key prefix. */
export function createQueue(dataset: string, connection: Redis, prefix: string): DatasetQueue {
  const options = { connection, prefix: toQueuePrefix(prefix, dataset), defaultJobOptions: DEFAULT_OPTIONS }
  const queue: DatasetQueue = new Queue(dataset, options)
  // The connection logs its own errors. Without a listener here the queue would print each of them a second time.
  queue.on('error', () => undefined)
  return queue
}

/** `20240101T000500Z`: job ids may not hold colons. */
export function toSlotName(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

export const toSlotJobId = (dataset: string, slot: number): string => `${dataset}.${toSlotName(slot)}`

/** Whether a dataset's slot is in its queue: waiting, worked on or done. */
export async function isSlotEnqueued(redis: Redis, prefix: string, dataset: string, slot: number): Promise<boolean> {
  return (await redis.exists(`${toQueuePrefix(prefix, dataset)}:${dataset}:${toSlotJobId(dataset, slot)}`)) > 0
}

/** Ranges wait behind slots: a back-fill never delays the newest data. */
const RANGE_PRIORITY = 10

/** Enqueues ranges, each under the id that its payload has; one that is there already stays as it is. */
export async function enqueueRanges(
  queue: DatasetQueue,
  ranges: readonly { readonly id: string; readonly payload: RangePayload }[],
): Promise<void> {
  const opts = { priority: RANGE_PRIORITY }
  await queue.addBulk(
    ranges.map(({ id, payload }) => ({ name: queue.name, data: payload, opts: { ...opts, jobId: id } })),
  )
}
