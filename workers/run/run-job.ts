import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import { type Dataset, toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import type { JobPayload, JobReport } from '../../shared/queue/queues.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Collector, Job } from '../job/define-job.ts'
import { type JobState, openState } from '../job/state.ts'
import type { Recomputation } from '../schedule/recompute.ts'
import type { WorkerMetrics } from '../watch/worker-metrics.ts'
import { announce, toTimeRange } from './announce.ts'
import { type Collected, collect } from './collect.ts'
import { parsePayload, toEntities } from './payload.ts'
import { rememberFailing } from './remember-failing.ts'
import { checkRows } from './rows.ts'

/** What running a job needs. `now` is the wall clock in Unix milliseconds; tests give their own. */
export interface JobContext {
  readonly config: Config
  readonly db: Database
  readonly redis: Redis
  readonly recomputation: Recomputation
  readonly registry: Registry
  readonly log: Logger
  readonly now: () => number
  readonly metrics?: WorkerMetrics
  /** Aborted when running jobs must be handed back to their queues, because the worker has to end. */
  readonly handBack?: AbortSignal
}

const JOB_TIMEOUT_MS = 10 * 60_000

/**
 * One job from payload to stored rows, step by step. The steps may be repeated from the start after any of them failed:
 * what is stored twice changes nothing.
 * @throws DataError `payload` for a payload that makes no sense, a provider's or the storage's failure otherwise.
 */
export async function runJob(
  job: Job,
  collectors: readonly Collector[],
  context: JobContext,
  data: unknown,
): Promise<JobReport> {
  const payload = parsePayload(job, data)
  const slot = payload.kind === 'slot' ? payload.slot : payload.from
  const state = openState(context.db, job.name, context.now)
  const startedAt = context.now()
  const collected = await collectChecked(job, collectors, { payload, slot, state }, context)
  const { rows, read, rejected, uncovered, providers, pending } = collected
  if (rows.length > 0 || read.length > 0) await store(job.dataset, { rows, read, slot, startedAt }, context)
  await state.store()
  // What came is stored. The job is tried again for what has not come.
  if (pending !== undefined) throw pending
  return { rows: rows.length, rejected, uncovered, providers }
}

/** What the providers answer, row by row checked; which of them failed is told where `/data/status` reads it. */
async function collectChecked(
  job: Job,
  collectors: readonly Collector[],
  { payload, slot, state }: { payload: JobPayload; slot: number; state: JobState },
  context: JobContext,
): Promise<Collected> {
  const timeout = AbortSignal.timeout(JOB_TIMEOUT_MS)
  const log = context.log.child({ dataset: job.name })
  const failed: string[] = []
  const assignment = {
    entities: toEntities(job, context.registry, payload),
    entityColumn: job.dataset.entity,
    slot,
    range: payload.kind === 'slot' ? undefined : payload,
    resumes: job.resumes,
    state,
    signal: context.handBack === undefined ? timeout : AbortSignal.any([timeout, context.handBack]),
    onFailed: (provider: string) => void failed.push(provider),
    check: (provider: string, candidates: readonly object[]) =>
      checkRows(job.dataset, provider, candidates, {
        now: context.now(),
        log,
        onRejected: (reason, count) => context.metrics?.rejected(job.name, reason, count),
      }),
  }
  try {
    return await collect(collectors, assignment, log)
  } finally {
    // A back-fill says nothing of now, and who stops here has not failed.
    const isTold = payload.kind === 'slot' && context.handBack?.aborted !== true
    if (isTold) await tellFailing(job, failed, slot, context)
  }
}

/** A failure of this note is only logged: the job must end with the provider's failure, not with the storage's. */
async function tellFailing(job: Job, failed: readonly string[], slot: number, context: JobContext): Promise<void> {
  try {
    await rememberFailing(openState(context.db, job.name, context.now), failed, slot)
  } catch (error) {
    context.log.warn({ dataset: job.name, failed, err: error }, 'failing providers cannot be remembered')
  }
}

/** The one insert, what is computed from it, and the word to everybody who must know that the dataset changed. */
async function store(
  dataset: Dataset,
  run: { rows: readonly object[]; read: readonly number[]; slot: number; startedAt: number },
  context: JobContext,
): Promise<void> {
  const { rows, read, slot } = run
  const collected = { collected_at: new Date(run.startedAt).toISOString() }
  const stored = dataset.isCollected ? rows.map((row) => ({ ...row, ...collected })) : rows
  if (stored.length > 0) await context.db.insert({ table: dataset.table, rows: stored })
  const { entity } = dataset
  const entities = entity === undefined ? [] : [...new Set(rows.map((row) => Number(Reflect.get(row, entity))))]
  const params = toDeriveParams({ entities, read, slot, ...toTimeRange(dataset, rows) })
  for (const { name, sql } of dataset.derive ?? []) await context.db.command({ name, sql, params })
  await announce(dataset, context, rows)
  await enqueueComputed(dataset, rows, context)
}

/** Has the datasets that are computed from this one computed again. */
async function enqueueComputed(dataset: Dataset, rows: readonly object[], context: JobContext): Promise<void> {
  try {
    await context.recomputation.enqueue(dataset, rows)
  } catch (cause) {
    // The rows are stored, but what is computed from them is not enqueued. The job is tried again, and storing the rows
    // again changes nothing.
    throw new DataError('storage', `Redis, what is computed from ${dataset.name}: ${toReason(cause)}`, { cause })
  }
}
