import { type JobsOptions, Queue, type QueueOptions } from 'bullmq'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { DataError, toReason } from '../errors.ts'
import { INTERVALS } from '../intervals.ts'
import type { QueueClass } from './queue-classes.ts'

const time = z.number().int().nonnegative()

/** The entities of a job (registry ids; absent: all of the dataset). With `again`, stored data is collected again. */
const about = { entities: z.array(z.string()).min(1).optional(), again: z.literal(true).optional() }

/**
 * A batch of a slot with many entities: those with `batchKey % of === index` (see `batchKey` of the job). The batch of
 * an entity therefore does not depend on other entities.
 */
export const slotBatch = z
  .strictObject({ index: z.int().nonnegative(), of: z.int().positive() })
  .refine(({ index, of }) => index < of)

export type SlotBatch = z.infer<typeof slotBatch>

/**
 * The payload of a queued job. A slot job collects the state as of its slot. A range job collects history, `from`
 * inclusive and `to` exclusive. Times are Unix milliseconds. `piece` is the batch of a slot: queues keep this older name,
 * so that workers and schedulers of two versions understand each other's jobs.
 */
export const jobPayload = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('slot'), slot: time, piece: slotBatch.optional(), ...about }),
  z.strictObject({ kind: z.literal('range'), from: time, to: time, interval: z.enum(INTERVALS), ...about }),
])

export type JobPayload = z.infer<typeof jobPayload>
export type SlotPayload = Extract<JobPayload, { kind: 'slot' }>
export type RangePayload = Extract<JobPayload, { kind: 'range' }>

/**
 * The report of a finished job. `uncovered` counts entities for which no provider had data. `postponed` is the reason
 * why a range ended early; its remainder is planned again.
 */
export interface JobReport {
  rows: number
  rejected: number
  uncovered: number
  providers: string[]
  postponed?: string
}

export type DatasetQueue = Queue<JobPayload, JobReport>

const DAY_SECONDS = 86_400

/**
 * Finished jobs are stored for two days, so that their ids prevent a second job for a slot. Failed jobs are the dead
 * letters, stored for 14 days. The runner decides about retries by the remaining value of the job; no job reaches this
 * number of attempts.
 */
const DEFAULT_OPTIONS: JobsOptions = {
  attempts: 1_000_000,
  backoff: { type: 'provider' },
  removeOnComplete: { age: 2 * DAY_SECONDS, count: 100_000 },
  removeOnFail: { age: 14 * DAY_SECONDS },
}

const HISTORY = '-history'

/** The live queue has the dataset's name. */
export const toQueueName = (dataset: string, queueClass: QueueClass): string =>
  queueClass === 'live' ? dataset : `${dataset}${HISTORY}`

/** Splits a queue's name into dataset and queue class. */
export function readQueueName(name: string): { dataset: string; queueClass: QueueClass } {
  return name.endsWith(HISTORY)
    ? { dataset: name.slice(0, -HISTORY.length), queueClass: 'history' }
    : { dataset: name, queueClass: 'live' }
}

/**
 * The prefix of a queue's keys. On a cluster, whose configured prefix is a hash tag in braces, each queue has its own
 * hash tag. So the keys of a queue are on one node, as its scripts need, and queues are spread over the nodes.
 */
export const toQueuePrefix = (prefix: string, queue: string): string =>
  prefix.startsWith('{') ? `{${prefix.slice(1, -1)}:${queue}}` : prefix

/** The queue of one queue class of a dataset, under the configured key prefix. */
export function createQueue(
  dataset: string,
  connection: Redis,
  prefix: string,
  queueClass: QueueClass = 'live',
): DatasetQueue {
  return openQueue(toQueueName(dataset, queueClass), connection, prefix, { defaultJobOptions: DEFAULT_OPTIONS })
}

/** Opens a queue under the configured key prefix. */
export function openQueue(
  name: string,
  connection: Redis,
  prefix: string,
  options: Pick<QueueOptions, 'defaultJobOptions'> = {},
): Queue {
  const queue = new Queue(name, { ...options, connection, prefix: toQueuePrefix(prefix, name) })
  // The connection logs its own errors. Without a listener the queue would print each of them a second time.
  queue.on('error', () => undefined)
  return queue
}

export type DatasetQueues = Readonly<Record<QueueClass, DatasetQueue>>

export function createQueues(dataset: string, connection: Redis, prefix: string): DatasetQueues {
  return {
    live: createQueue(dataset, connection, prefix, 'live'),
    history: createQueue(dataset, connection, prefix, 'history'),
  }
}

/** `20240101T000500Z`: job ids must not contain colons. */
export function toSlotName(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

export const toSlotJobId = (dataset: string, slot: number, batch?: SlotBatch): string =>
  [dataset, toSlotName(slot), ...(batch === undefined ? [] : [batch.index])].join('.')

/** Whether a dataset's slot, or its first chunk, is in its queue: waiting, active or completed. */
export async function isSlotEnqueued(redis: Redis, prefix: string, dataset: string, slot: number): Promise<boolean> {
  const ids = [toSlotJobId(dataset, slot), toSlotJobId(dataset, slot, { index: 0, of: 1 })]
  return (await redis.exists(...ids.map((id) => `${toQueuePrefix(prefix, dataset)}:${dataset}:${id}`))) > 0
}

/** Planned ranges wait behind computations on newly stored rows, which have no priority and run first. */
const RANGE_PRIORITY = 10

/** Enqueues ranges on a history queue under ids derived from their payloads. An existing job is unchanged. */
export async function enqueueRanges(
  queue: DatasetQueue,
  ranges: readonly { readonly id: string; readonly payload: RangePayload }[],
): Promise<void> {
  const opts = { priority: RANGE_PRIORITY }
  const { dataset } = readQueueName(queue.name)
  await queue.addBulk(ranges.map(({ id, payload }) => ({ name: dataset, data: payload, opts: { ...opts, jobId: id } })))
}

/**
 * Sends a command to Redis whose result a job requires.
 * @throws DataError `storage` if Redis rejects the command or is unavailable; the job is then retried.
 */
export async function callRedis<T>(what: string, command: () => Promise<T>): Promise<T> {
  try {
    return await command()
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', `Redis, ${what}: ${toReason(cause)}`, { cause })
  }
}
