import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { type JobPayload, type JobReport, jobPayload } from '../../shared/queue/queues.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { publishCommit } from '../../shared/store/commits.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Collector, Entity, Job } from '../job/define.ts'
import { openState } from '../job/state.ts'
import type { Recomputation } from '../schedule/recompute.ts'
import type { WorkerMetrics } from '../watch/worker-metrics.ts'
import { type Collected, collect } from './collect.ts'
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
 * One job from payload to stored rows.
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
  const range = payload.kind === 'slot' ? undefined : payload
  const timeout = AbortSignal.timeout(JOB_TIMEOUT_MS)
  const signal = context.handBack === undefined ? timeout : AbortSignal.any([timeout, context.handBack])
  const state = openState(context.db, job.name, context.now)
  const log = context.log.child({ dataset: job.name })
  const failed: string[] = []
  const wanted = {
    entities: toEntities(job, context.registry, payload),
    entityColumn: job.dataset.entity,
    slot,
    range,
    resumes: job.resumes,
    state,
    signal,
    onFailed: (provider: string) => void failed.push(provider),
    check: (provider: string, candidates: readonly object[]) =>
      checkRows(job.dataset, provider, candidates, {
        now: context.now(),
        log,
        onRejected: (reason, count) => context.metrics?.rejected(job.name, reason, count),
      }),
  }
  let collected: Collected
  try {
    collected = await collect(collectors, wanted, log)
  } finally {
    // A back-fill says nothing of now, and who stops here has not failed.
    const isTold = range === undefined && context.handBack?.aborted !== true
    if (isTold) await tellFailing(job, failed, slot, context)
  }
  const { rows, read, rejected, uncovered, providers, pending } = collected
  if (rows.length > 0 || read.length > 0) await store(job.dataset, { rows, read, slot }, context)
  await state.store()
  if (pending !== undefined) throw pending
  return { rows: rows.length, rejected, uncovered, providers }
}

/** What becomes of the job does not hang on it: a provider's refusal must not look like a storage that is away. */
async function tellFailing(job: Job, failed: readonly string[], slot: number, context: JobContext): Promise<void> {
  try {
    await rememberFailing(openState(context.db, job.name, context.now), failed, slot)
  } catch (error) {
    context.log.warn({ dataset: job.name, failed, err: error }, 'failing providers cannot be remembered')
  }
}

/** @throws DataError `payload` that names the job and what is wrong. */
export function parsePayload(job: Job, data: unknown): JobPayload {
  const payload = jobPayload.safeParse(data)
  if (payload.success) return payload.data
  throw new DataError('payload', `${job.name}: ${payload.error.message}`)
}

/** The one insert, what is computed from it, and the word to everybody who must know that the dataset changed. */
async function store(
  dataset: Dataset,
  { rows, read, slot }: { rows: readonly object[]; read: readonly number[]; slot: number },
  context: JobContext,
): Promise<void> {
  if (rows.length > 0) await context.db.insert({ table: dataset.table, rows })
  const { entity } = dataset
  const entities = entity === undefined ? [] : [...new Set(rows.map((row) => Number(Reflect.get(row, entity))))]
  const params = { entities, read, slot: new Date(slot).toISOString().slice(0, -1) }
  for (const { name, sql } of dataset.derive ?? []) await context.db.command({ name, sql, params })
  await announce(dataset, context, rows)
  try {
    await context.recomputation.enqueue(dataset, rows)
  } catch (cause) {
    // The rows are stored, but not everybody knows: the job is tried again, and storing them again changes nothing.
    throw new DataError('storage', `Redis, what is computed from ${dataset.name}: ${toReason(cause)}`, { cause })
  }
}

/**
 * Tells readers that a dataset changed; `rows` are those that changed, absent where nobody knows.
 * @throws DataError `storage` when it could not be told; the job is tried again then.
 */
export async function announce(
  dataset: Dataset,
  context: Pick<JobContext, 'db' | 'redis' | 'config'>,
  rows: readonly object[] = [],
): Promise<void> {
  const { db, redis, config } = context
  try {
    const change = { dataset: dataset.name, ...toTimeRange(dataset, rows) }
    await publishCommit({ db, redis, prefix: config.redis.prefix }, change)
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', `Redis, commit of ${dataset.name}: ${toReason(cause)}`, { cause })
  }
}

/** The times that the rows are about, in Unix milliseconds; nothing where the rows do not say. */
function toTimeRange(dataset: Dataset, rows: readonly object[]): { from?: number; to?: number } {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const row of rows) {
    const time = Date.parse(String(Reflect.get(row, dataset.series.time)))
    if (Number.isNaN(time)) return {}
    from = Math.min(from, time)
    to = Math.max(to, time)
  }
  return rows.length === 0 ? {} : { from, to }
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
