import { type Job as QueuedJob, UnrecoverableError, WaitingError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import type { Database } from '../shared/clickhouse.ts'
import { publishCommit } from '../shared/commits.ts'
import type { Config } from '../shared/config.ts'
import type { Dataset } from '../shared/datasets/define.ts'
import { DataError, isTransient, toReason } from '../shared/errors.ts'
import { INTERVAL_SECONDS, toBucketStart } from '../shared/intervals.ts'
import type { Logger } from '../shared/log.ts'
import { type JobPayload, type JobReport, jobPayload } from '../shared/queues.ts'
import type { Registry } from '../shared/registry/registry.ts'
import { collect } from './collect.ts'
import type { Collector, Entity, Job, ProviderContext, Range } from './define.ts'
import type { WorkerMetrics } from './metrics.ts'
import { checkRows } from './rows.ts'
import { openState } from './state.ts'

/** What every job of a process shares. `now` is the wall clock in Unix milliseconds; tests give their own. */
export interface RunnerContext extends ProviderContext {
  readonly config: Config
  readonly db: Database
  /** For commands; the queue's own blocking connection is `blocking`. */
  readonly redis: Redis
  readonly blocking: Redis
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
  readonly metrics?: WorkerMetrics
  /** Aborted when running jobs must be handed back to their queues, because the worker has to end. */
  readonly handBack?: AbortSignal
}

const BACKOFF_FIRST_MS = 1_000
const BACKOFF_MOST_MS = 5 * 60_000

/** The wait before attempt `attempts + 1`: what the provider asked for, else exponential with full jitter. */
function toBackoff(attempts: number, error: Error | undefined): number {
  if (error instanceof DataError && error.retryAfterMs !== undefined) return error.retryAfterMs
  const ceiling = Math.min(BACKOFF_MOST_MS, BACKOFF_FIRST_MS * 2 ** attempts)
  return Math.round(ceiling / 2 + (Math.random() * ceiling) / 2)
}

/**
 * Serves one dataset's queue: the only place that takes jobs, stores rows and says so. A job is complete when its rows
 * are stored; a transient failure is tried again, any other ends among the failed jobs at once.
 */
export function createRunner(job: Job, context: RunnerContext): Worker<JobPayload, JobReport> {
  const collectors = job.connect(context)
  const worker = new Worker<JobPayload, JobReport>(
    job.name,
    (queued, token) => process(job, collectors, context, queued, token),
    {
      connection: context.blocking,
      prefix: context.config.redis.prefix,
      concurrency: context.config.worker.concurrency,
      // A killed process leaves its jobs behind; another worker takes them over however often that happens.
      maxStalledCount: 100,
      stalledInterval: 15_000,
      settings: { backoffStrategy: (attempts, _type, error) => toBackoff(attempts, error) },
    },
  )
  context.metrics?.follow(job.name, worker)
  const log = context.log.child({ dataset: job.name })
  worker.on('completed', (queued, report) => log.info({ job: queued.id, ...report }, 'stored'))
  worker.on('failed', (queued, error) => {
    const final = queued === undefined || queued.finishedOn !== undefined
    log[final ? 'error' : 'warn'](
      { job: queued?.id, attempt: queued?.attemptsMade, reason: error.message },
      final ? 'failed for good' : 'will be tried again',
    )
  })
  worker.on('error', (error) => log.warn({ reason: error.message }, 'queue connection'))
  return worker
}

async function process(
  job: Job,
  collectors: readonly Collector[],
  context: RunnerContext,
  queued: QueuedJob<JobPayload, JobReport>,
  token: string | undefined,
): Promise<JobReport> {
  try {
    return await runJob(job, collectors, context, queued.data)
  } catch (error) {
    if (context.handBack?.aborted) {
      await queued.moveToWait(token)
      context.metrics?.returned(job.name, queued)
      context.log.info({ dataset: job.name, job: queued.id }, 'handed back')
      throw new WaitingError()
    }
    if (isTransient(error)) throw error
    throw new UnrecoverableError(toReason(error))
  }
}

/** One job from payload to stored rows. */
export async function runJob(
  job: Job,
  collectors: readonly Collector[],
  context: Omit<RunnerContext, 'http' | 'blocking'>,
  data: unknown,
): Promise<JobReport> {
  const payload = jobPayload.safeParse(data)
  if (!payload.success) throw new DataError('payload', `${job.name}: ${payload.error.message}`)
  const { slot, range } = toTimes(job, payload.data, context.now())
  const entities = toEntities(job, context.registry, payload.data)
  const timeout = AbortSignal.timeout(JOB_TIMEOUT_MS)
  const signal = context.handBack === undefined ? timeout : AbortSignal.any([timeout, context.handBack])
  const state = openState(context.db, job.name, context.now)
  const wanted = { entities, entityColumn: job.dataset.entity, slot, range, state, signal }
  const collected = await collect(collectors, wanted, context.log.child({ dataset: job.name }))
  const { rows, rejected } = checkRows(job.dataset, collected.rows, context.log, (reason, count) =>
    context.metrics?.rejected(job.name, reason, count),
  )
  if (rows.length > 0) await store(job.dataset, rows, slot, context, signal)
  await state.store()
  if (collected.pending !== undefined) throw collected.pending
  return { rows: rows.length, rejected, uncovered: collected.uncovered, providers: collected.providers }
}

/** The one insert, what is computed from it, and the word to every reader that the dataset changed. */
async function store(
  dataset: Dataset,
  rows: readonly object[],
  slot: number,
  context: Pick<RunnerContext, 'config' | 'db' | 'redis'>,
  signal: AbortSignal,
): Promise<void> {
  await context.db.insert({ table: dataset.table, rows, signal })
  const entities = [...new Set(rows.map((row) => Number(Reflect.get(row, dataset.entity))))]
  for (const { name, sql } of dataset.derive ?? []) {
    await context.db.command({
      name,
      sql,
      params: { entities, slot: new Date(slot).toISOString().slice(0, -1) },
      signal,
    })
  }
  await publishCommit(context.redis, context.config.redis.prefix, dataset.name)
}

const JOB_TIMEOUT_MS = 10 * 60_000

/**
 * What is true now must not be stored under another time: a slot whose cadence has passed is collected as history, or,
 * where the sources have none at that step, as the slot it has become.
 */
function toTimes(job: Job, payload: JobPayload, now: number): { slot: number; range: Range | undefined } {
  if (payload.kind === 'range') return { slot: payload.from, range: payload }
  const end = payload.slot + INTERVAL_SECONDS[job.cadence] * 1000
  if (now < end) return { slot: payload.slot, range: undefined }
  const hasHistory = job.history?.intervals.includes(job.cadence) ?? false
  if (hasHistory) return { slot: payload.slot, range: { from: payload.slot, to: end, interval: job.cadence } }
  return { slot: toBucketStart(now, job.cadence), range: undefined }
}

function toEntities(job: Job, registry: Registry, payload: JobPayload): readonly Entity[] {
  const all = job.entities(registry)
  if (payload.kind === 'slot' || payload.entities === undefined) return all
  const byId = new Map(all.map((entity) => [entity.id, entity]))
  return payload.entities.map((id) => {
    const entity = byId.get(id)
    if (entity === undefined) throw new DataError('payload', `${job.name}: no live entity has the id ${id}`)
    return entity
  })
}
