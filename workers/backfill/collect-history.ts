import { totalBuckets } from '../../shared/buckets.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { createProgress, type Progress } from '../../shared/progress-bar.ts'
import { createQueue, type DatasetQueue, enqueueRanges } from '../../shared/queue/queues.ts'
import type { Chunk } from '../schedule/chunks.ts'
import { type ChunkJobs, enqueueChunks, readChunkJobs } from './chunk-jobs.ts'
import { collectComputed } from './computed.ts'
import { createFailureReporter } from './failure-reporter.ts'
import { type Ended, type Outcome, readOutcome } from './outcome.ts'
import {
  type BackfillRequest,
  recordExpectedHistory,
  toDue,
  toMissingChunks,
  toRepeated,
  toSeconds,
} from './request.ts'
import { type Collecting, type Stores, untilDone } from './until-done.ts'

export interface CollectOptions {
  /** Also collects data that is already covered. */
  readonly again?: boolean
  readonly out?: NodeJS.WriteStream
  /** Stops the watching; the jobs continue. */
  readonly signal?: AbortSignal
}

/**
 * Collects histories in sequence. Watches the coverage of each until it is complete or no job is left. Waits while a
 * store is unavailable, and enqueues jobs again that the queue lost.
 */
export async function collectHistories(
  requests: readonly BackfillRequest[],
  stores: Stores,
  options: CollectOptions = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const request of requests) {
    if (options.signal?.aborted) break
    const queue = createQueue(request.job.name, stores.redis, stores.prefix, 'history')
    try {
      outcomes.push(await collectHistory(request, queue, stores, options))
    } finally {
      await queue.close()
    }
  }
  return outcomes
}

async function collectHistory(
  request: BackfillRequest,
  queue: DatasetQueue,
  stores: Stores,
  options: CollectOptions,
): Promise<Outcome> {
  const { db, now } = stores
  const isComputed = request.job.computedFrom.length > 0
  await recordExpectedHistory(db, request)
  const chunks = options.again
    ? toRepeated(request.chunks)
    : isComputed
      ? []
      : await toMissingChunks(db, request, now())
  const total = options.again ? chunks.length : toTotal(request, now())
  const progress = createProgress(request.title, total, options.out, options.again ? 'parts' : 'buckets')
  const collecting: Collecting = { request, queue, stores, signal: options.signal, say: progress.say }
  if ((await queue.getWorkersCount()) === 0)
    progress.say(`${request.title}: no worker serves the queue ${queue.name} yet; start one with: npm run worker`)
  const isRepeated = options.again ?? false
  const ended = isComputed
    ? await collectComputed(collecting, progress)
    : await watchChunks(collecting, chunks, isRepeated, total, progress)
  // Computed datasets are always computed again.
  const outcome = await readOutcome(db, request, { ended, isRenewal: isRepeated || isComputed, now: now() })
  const covered = outcome.parts.filter(({ standing }) => standing === 'covered' || standing === 'nothing')
  progress.stop(
    `${covered.reduce((sum, { buckets }) => sum + buckets, 0)} of ${toTotal(request, now())} buckets are known`,
  )
  return outcome
}

function toTotal(request: BackfillRequest, now: number): number {
  return toDue(request, now).reduce((sum, { within, entities }) => sum + totalBuckets([within]) * entities.length, 0)
}

/** @returns the jobs that ended without storing a result or a reason. */
async function watchChunks(
  collecting: Collecting,
  chunks: readonly Chunk[],
  isRepeated: boolean,
  total: number,
  progress: Progress,
): Promise<readonly Ended[]> {
  const { request, queue, stores } = collecting
  const { db, redis } = stores
  if (chunks.length === 0) return []
  const failures = await createFailureReporter(db, request, collecting.say)
  // Queues keep a limited number of finished jobs, for two days. A job that was seen done is not lost when the queue
  // removes it.
  const done = new Set<string>()
  let isEnqueued = false
  let ended: readonly Ended[] = []
  await untilDone(collecting, async () => {
    if (!isEnqueued) await enqueueChunks(redis, queue, chunks)
    isEnqueued = true
    const jobs = await readChunkJobs(redis, queue, chunks)
    for (const { id } of jobs.done) done.add(id)
    const lost = jobs.lost.filter(({ id }) => !done.has(id))
    const covered = await countCoveredBuckets(collecting)
    progress.set(isRepeated ? done.size : covered)
    await failures.report()
    if (!isRepeated && covered >= total) return true
    await enqueueRanges(queue, lost)
    if (lost.length > 0) collecting.say(`${request.title}: ${lost.length} jobs were lost and are enqueued again`)
    ended = await toEnded(queue, jobs)
    return jobs.open.length + lost.length === 0
  })
  return ended
}

async function countCoveredBuckets({ request, stores }: Collecting): Promise<number> {
  const counts = toDue(request, stores.now()).map(({ within, entities }) => {
    const keys = entities.map(({ key }) => key)
    return openLedger(stores.db, request.job.dataset).count(keys, { within, seconds: toSeconds(request) })
  })
  return (await Promise.all(counts)).flat().reduce((sum, { stored, nothing }) => sum + stored + nothing, 0)
}

async function toEnded(queue: DatasetQueue, { dead, dropped }: ChunkJobs): Promise<Ended[]> {
  const failed = dead.map(async (chunk) => {
    const job = await queue.getJob(chunk.id)
    // The job's current payload lists only the entities without an answer.
    const entities = job?.data.entities ?? chunk.payload.entities
    return {
      chunk: { ...chunk, payload: { ...chunk.payload, entities } },
      reason: job?.failedReason ?? 'its job failed',
    }
  })
  const removed = dropped.map((chunk) => ({ chunk, reason: `its job ${chunk.id} was dropped` }))
  return [...(await Promise.all(failed)), ...removed]
}
