import { countCovered } from '../../shared/coverage/count.ts'
import { totalBuckets } from '../../shared/coverage/grid.ts'
import { createProgress, type Progress } from '../../shared/progress-bar.ts'
import { createQueue, type DatasetQueue, enqueueRanges } from '../../shared/queue/queues.ts'
import type { Chunk } from '../schedule/chunks.ts'
import { type Ask, toAgain, toDue, toMissingChunks, toSeconds, wantAsked } from './ask.ts'
import { type ChunkJobs, enqueueChunks, readChunkJobs } from './chunk-jobs.ts'
import { collectComputed } from './computed.ts'
import { createFailureTeller } from './failure-teller.ts'
import { type Ended, type Outcome, readOutcome } from './outcome.ts'
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
export async function collectAsks(
  asks: readonly Ask[],
  stores: Stores,
  options: CollectOptions = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const ask of asks) {
    if (options.signal?.aborted) break
    const queue = createQueue(ask.job.name, stores.redis, stores.prefix, 'history')
    try {
      outcomes.push(await collectAsk(ask, queue, stores, options))
    } finally {
      await queue.close()
    }
  }
  return outcomes
}

async function collectAsk(ask: Ask, queue: DatasetQueue, stores: Stores, options: CollectOptions): Promise<Outcome> {
  const { db, now } = stores
  const isComputed = ask.job.computedFrom.length > 0
  await wantAsked(db, ask)
  const chunks = options.again ? toAgain(ask.chunks) : isComputed ? [] : await toMissingChunks(db, ask, now())
  const total = options.again ? chunks.length : toTotal(ask, now())
  const progress = createProgress(ask.title, total, options.out, options.again ? 'parts' : 'buckets')
  const collecting: Collecting = { ask, queue, stores, signal: options.signal, say: progress.say }
  if ((await queue.getWorkersCount()) === 0)
    progress.say(`${ask.title}: no worker serves the queue ${queue.name} yet; start one with: npm run worker`)
  const isAgain = options.again ?? false
  const ended = isComputed
    ? await collectComputed(collecting, progress)
    : await watchChunks(collecting, chunks, isAgain, total, progress)
  // Computed datasets are always computed again.
  const outcome = await readOutcome(db, ask, { ended, isRenewal: isAgain || isComputed, now: now() })
  const known = outcome.parts.filter(({ standing }) => standing === 'covered' || standing === 'nothing')
  progress.stop(`${known.reduce((sum, { buckets }) => sum + buckets, 0)} of ${toTotal(ask, now())} buckets are known`)
  return outcome
}

function toTotal(ask: Ask, now: number): number {
  return toDue(ask, now).reduce((sum, { within, entities }) => sum + totalBuckets([within]) * entities.length, 0)
}

/** @returns the jobs that ended without storing a result or a reason. */
async function watchChunks(
  collecting: Collecting,
  chunks: readonly Chunk[],
  isAgain: boolean,
  total: number,
  progress: Progress,
): Promise<readonly Ended[]> {
  const { ask, queue, stores } = collecting
  const { db, redis } = stores
  if (chunks.length === 0) return []
  const failures = await createFailureTeller(db, ask, collecting.say)
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
    const known = await countKnownBuckets(collecting)
    progress.set(isAgain ? done.size : known)
    await failures.tell()
    if (!isAgain && known >= total) return true
    await enqueueRanges(queue, lost)
    if (lost.length > 0) collecting.say(`${ask.title}: ${lost.length} jobs were lost and are enqueued again`)
    ended = await toEnded(queue, jobs)
    return jobs.open.length + lost.length === 0
  })
  return ended
}

async function countKnownBuckets({ ask, stores }: Collecting): Promise<number> {
  const counts = toDue(ask, stores.now()).map(({ within, entities }) => {
    const keys = entities.map(({ key }) => key)
    return countCovered(stores.db, ask.job.dataset, keys, { within, seconds: toSeconds(ask) })
  })
  return (await Promise.all(counts)).flat().reduce((sum, { stored, nothing }) => sum + stored + nothing, 0)
}

async function toEnded(queue: DatasetQueue, { dead, dropped }: ChunkJobs): Promise<Ended[]> {
  const told = dead.map(async (chunk) => {
    const job = await queue.getJob(chunk.id)
    // The job's current payload lists only the entities without an answer.
    const entities = job?.data.entities ?? chunk.payload.entities
    return {
      chunk: { ...chunk, payload: { ...chunk.payload, entities } },
      reason: job?.failedReason ?? 'its job failed',
    }
  })
  const away = dropped.map((chunk) => ({ chunk, reason: `its job ${chunk.id} was dropped` }))
  return [...(await Promise.all(told)), ...away]
}
