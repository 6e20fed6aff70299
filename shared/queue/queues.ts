import { type JobsOptions, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { DataError, toReason } from '../errors.ts'
import { INTERVALS } from '../intervals.ts'
import type { Lane } from './lanes.ts'

const time = z.number().int().nonnegative()

/** Whom a job is about (registry ids; absent: all that it collects for), and whether it also asks for what is known. */
const about = { entities: z.array(z.string()).min(1).optional(), again: z.literal(true).optional() }

/**
 * One of the pieces into which a slot of many entities is cut: those whose key (or the one that their job gives), divided
 * by `of`, leaves `index`. So who is in a piece does not change with who else there is.
 */
export const slotPiece = z
  .strictObject({ index: z.int().nonnegative(), of: z.int().positive() })
  .refine(({ index, of }) => index < of)

export type SlotPiece = z.infer<typeof slotPiece>

/**
 * What a queued job says. A slot job collects the state as of its slot; a range job collects history, `from` inclusive
 * and `to` exclusive. Times are Unix milliseconds.
 */
export const jobPayload = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('slot'), slot: time, piece: slotPiece.optional(), ...about }),
  z.strictObject({ kind: z.literal('range'), from: time, to: time, interval: z.enum(INTERVALS), ...about }),
])

export type JobPayload = z.infer<typeof jobPayload>
export type SlotPayload = Extract<JobPayload, { kind: 'slot' }>
export type RangePayload = Extract<JobPayload, { kind: 'range' }>

/**
 * What a finished job reports. `uncovered` counts entities for which no provider had an answer. `postponed` says why a range
 * ended before it was done; what is left is planned anew.
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
 * Finished jobs stay long enough for their ids to keep a slot from being enqueued twice; failed ones are the dead
 * letters, kept 14 days. How often a job is tried is the runner's to say, by what the job is still worth: the number
 * here is only one that no job reaches.
 */
const DEFAULT_OPTIONS: JobsOptions = {
  attempts: 1_000_000,
  backoff: { type: 'provider' },
  removeOnComplete: { age: 2 * DAY_SECONDS, count: 100_000 },
  removeOnFail: { age: 14 * DAY_SECONDS },
}

const HISTORY = '-history'

/** The live queue has the dataset's own name. */
export const toQueueName = (dataset: string, lane: Lane): string => (lane === 'live' ? dataset : `${dataset}${HISTORY}`)

/** Which dataset and lane a queue is of. */
export function readQueueName(name: string): { dataset: string; lane: Lane } {
  return name.endsWith(HISTORY)
    ? { dataset: name.slice(0, -HISTORY.length), lane: 'history' }
    : { dataset: name, lane: 'live' }
}

/**
 * The prefix of a queue's own keys. On a cluster, where the configured prefix stands in braces, each queue has a word
 * of its own in them: its keys are on one node, as its scripts need, and queues are spread over the nodes.
 */
export const toQueuePrefix = (prefix: string, queue: string): string =>
  prefix.startsWith('{') ? `{${prefix.slice(1, -1)}:${queue}}` : prefix

/** The queue of one lane of a dataset, under the configured key prefix. */
export function createQueue(dataset: string, connection: Redis, prefix: string, lane: Lane = 'live'): DatasetQueue {
  const name = toQueueName(dataset, lane)
  const options = { connection, prefix: toQueuePrefix(prefix, name), defaultJobOptions: DEFAULT_OPTIONS }
  const queue: DatasetQueue = new Queue(name, options)
  // The connection logs its own errors. Without a listener here the queue would print each of them a second time.
  queue.on('error', () => undefined)
  return queue
}

/** Both queues of a dataset. */
export type DatasetQueues = Readonly<Record<Lane, DatasetQueue>>

export function createQueues(dataset: string, connection: Redis, prefix: string): DatasetQueues {
  return {
    live: createQueue(dataset, connection, prefix, 'live'),
    history: createQueue(dataset, connection, prefix, 'history'),
  }
}

/** `20240101T000500Z`: job ids may not hold colons. */
export function toSlotName(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

export const toSlotJobId = (dataset: string, slot: number, piece?: SlotPiece): string =>
  [dataset, toSlotName(slot), ...(piece === undefined ? [] : [piece.index])].join('.')

/** Whether a dataset's slot, or its first piece, is in its queue: waiting, worked on or done. */
export async function isSlotEnqueued(redis: Redis, prefix: string, dataset: string, slot: number): Promise<boolean> {
  const ids = [toSlotJobId(dataset, slot), toSlotJobId(dataset, slot, { index: 0, of: 1 })]
  return (await redis.exists(...ids.map((id) => `${toQueuePrefix(prefix, dataset)}:${dataset}:${id}`))) > 0
}

/** Planned ranges wait behind the computations that follow rows just stored, which have no priority and go first. */
const RANGE_PRIORITY = 10

/** Enqueues ranges on a history queue, each under the id that its payload has; one that is there already stays as it is. */
export async function enqueueRanges(
  queue: DatasetQueue,
  ranges: readonly { readonly id: string; readonly payload: RangePayload }[],
): Promise<void> {
  const opts = { priority: RANGE_PRIORITY }
  const { dataset } = readQueueName(queue.name)
  await queue.addBulk(ranges.map(({ id, payload }) => ({ name: dataset, data: payload, opts: { ...opts, jobId: id } })))
}

/**
 * Asks Redis for something that a job cannot do without.
 * @throws DataError `storage` when it refuses or is away; the job is then tried again.
 */
export async function askRedis<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', `Redis, ${what}: ${toReason(cause)}`, { cause })
  }
}
