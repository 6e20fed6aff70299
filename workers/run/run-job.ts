import type { Redis } from 'ioredis'
import { toBuckets, toStepSeconds } from '../../shared/buckets.ts'
import type { Config } from '../../shared/config/config.ts'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { DataError, findShortestWait } from '../../shared/errors.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { type Answer, openLedger } from '../../shared/ledger/ledger.ts'
import { callRedis, type JobPayload, type JobReport } from '../../shared/queue/queues.ts'
import { groupByEnd, snapshot } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { readEngineTime } from '../../shared/store/clickhouse.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import {
  type Collector,
  type Entity,
  isOfPresent,
  type Job,
  type Peers,
  parsePayload,
  type Recomputation,
  toEntities,
  toPeers,
  toSlotEnd,
} from '../job/define-job.ts'
import { openState } from '../job/state.ts'
import type { WorkerMetrics } from '../watch/worker-metrics.ts'
import { announce, noteChange, reportFailing, toTimeRange } from './changes.ts'
import type { Redact } from './collect.ts'
import { type Collected, collect } from './collect.ts'
import { PartialFailureError } from './retries.ts'
import { checkRows, withoutLater } from './rows.ts'

/** Dependencies of a job run. `now` is the wall clock in Unix milliseconds; tests replace it. */
export interface JobContext {
  readonly config: Config
  readonly db: Database
  readonly redis: Redis
  readonly recomputation: Recomputation
  readonly registry: Registry
  /** Reads the active registry. If undefined, `registry` never changes. */
  readonly readRegistry?: () => Promise<Registry>
  readonly log: Logger
  readonly now: () => number
  /** Synchronizes the clock with the stores; if undefined, `now` is used unchanged. */
  readonly sync?: () => Promise<void>
  readonly metrics?: WorkerMetrics
  /** Removes the secrets of the settings from logged and stored text. */
  readonly redact: Redact
  /** Aborted when the worker stops and running jobs must be returned to their queues. */
  readonly handBack?: AbortSignal
}

const JOB_TIMEOUT_MS = 10 * 60_000

/** State of one running job. */
interface Running {
  readonly job: Job
  readonly payload: JobPayload
  readonly slot: number
  readonly peers: Peers<Entity>
  readonly state: ReturnType<typeof openState>
  readonly signal: AbortSignal
}

/**
 * Runs one job: collects, stores rows and coverage, and repeats while its run reports more data. All results are stored
 * before a failure is thrown. Each step is idempotent, so the job may restart from the beginning after any failure.
 * @throws PartialFailureError if entities have no answer yet but may get one, another DataError for an invalid payload or a
 *   storage failure.
 */
export async function runJob(
  job: Job,
  collectors: readonly Collector[],
  surroundings: JobContext,
  data: unknown,
): Promise<JobReport> {
  const { registry, readRegistry = async () => registry } = surroundings
  // The active registry may change during the run, so the job works with a snapshot. Computed results are stored
  // permanently, and a new registry often is the reason for the computation. They therefore read the newest version,
  // which this process may not have received yet.
  const context = { ...surroundings, registry: snapshot(job.computedFrom.length > 0 ? await readRegistry() : registry) }
  const payload = parsePayload(job, data)
  const running: Running = {
    job,
    payload,
    slot: payload.kind === 'slot' ? payload.slot : payload.from,
    peers: toPeers(job, context, payload),
    state: openState(context.db, job.name, context.now, (name, reason) =>
      context.log.warn({ dataset: job.name, name, reason }, 'unreadable job state is replaced'),
    ),
    signal: openSignal(job, payload, context),
  }
  const isComputed = job.computedFrom.length > 0 && payload.kind === 'range'
  const readAt = isComputed ? await readEngineTime(context.db) : 0
  const all = toEntities(job, context, payload)
  const report: JobReport = { rows: 0, rejected: 0, uncovered: 0, providers: [] }
  const answers = new Map<number, Answer>()
  const uncovered = await skipCovered(context.db, job, payload, all)
  let remaining: readonly Entity[] = uncovered
  let isStateMoved = false
  while (remaining.length > 0 && !running.signal.aborted) {
    const isComplete = answers.size === 0 && remaining.length === running.peers.own.length
    const { collected, rows, hasMoved } = await collectAndStore(
      running,
      collectors,
      { entities: remaining, isComplete },
      context,
    )
    report.rows += rows
    isStateMoved ||= hasMoved
    report.rejected += collected.rejected
    report.providers = [...new Set([...report.providers, ...collected.results.map(({ provider }) => provider)])]
    for (const answer of collected.answers.all()) answers.set(answer.entity.key, answer)
    remaining = collected.more ? toPutOff(collected) : []
  }
  const lacking = [...answers.values()].filter(({ state }) => state === 'failed' || state === 'unserved')
  report.uncovered = lacking.length
  // If inputs could not be read, nothing is recorded as computed. The inputs stay newer than the result, so the
  // computation is planned again.
  const isFinished = remaining.length === 0 && lacking.length === 0
  if (isComputed && isFinished) {
    if ((await readRegistry()).version !== context.registry.version) {
      // Another worker may have computed it with the new registry, and this run has overwritten that result.
      await openLedger(context.db, job.dataset).noteStored([payload])
      context.log.info({ dataset: job.name }, 'recomputing: the active registry changed during the computation')
      return runJob(job, collectors, surroundings, data)
    }
    await openLedger(context.db, job.dataset).noteComputed(payload, readAt)
  }
  const partly = [...answers.values()].filter(({ state, failure }) => state === 'rows' && failure !== undefined)
  const stillOpen = payload.kind === 'slot' ? [] : partly.map(({ entity }) => entity)
  const open =
    stillOpen.length === 0 ? [] : await skipCovered(context.db, job, { ...payload, again: undefined }, stillOpen)
  throwIfIncomplete([...answers.values()], [...remaining, ...open], {
    report,
    // Rows are no evidence of progress: each attempt may return the same rows.
    isFurther: (waiting) => isStateMoved || waiting < uncovered.length,
  })
  return report
}

/**
 * Returns the entities that a run still has to collect: those with missing buckets in the range at its step, or without
 * data for the slot.
 * Three kinds of run keep all entities:
 * - computed datasets, because their inputs may have changed;
 * - resuming jobs, because they fetch new data;
 * - slots whose rows carry the sources' own times, because the bucket is not known in advance.
 */
async function skipCovered(
  db: Database,
  job: Job,
  payload: JobPayload,
  entities: readonly Entity[],
): Promise<readonly Entity[]> {
  const { cadence } = job.dataset
  const isOpen = job.computedFrom.length > 0 || (payload.kind === 'slot' && (job.resumes || job.dataset.hasOwnTimes))
  if (isOpen || payload.again) return entities
  const range = payload.kind === 'range' ? payload : { from: payload.slot, to: payload.slot + 1 }
  const seconds = payload.kind === 'range' ? toStepSeconds(payload.interval, cadence) : INTERVAL_SECONDS[cadence]
  const ledger = openLedger(db, job.dataset)
  const open = new Set<number>()
  for (const part of groupByEnd(entities, range)) {
    const expected = toBuckets(part.range, cadence)
    const keys = part.entities.map(({ key }) => key)
    const lacking = expected && (await ledger.missing(keys, { expected: [expected], seconds }))
    for (const key of lacking?.keys() ?? keys) open.add(key)
  }
  return entities.filter(({ key }) => open.has(key))
}

/** Collects once, and stores the rows before their coverage and change events are published. */
async function collectAndStore(
  running: Running,
  collectors: readonly Collector[],
  { entities, isComplete }: { readonly entities: readonly Entity[]; readonly isComplete: boolean },
  context: JobContext,
): Promise<{ collected: Collected; rows: number; hasMoved: boolean }> {
  const { job, payload, slot, state } = running
  // The slot has begun, even if this machine's clock is behind that of the scheduler.
  const startedAt = Math.max(context.now(), slot)
  const collected = await collectChecked(running, collectors, entities, context)
  if (payload.kind === 'slot') await reportFailing(job, { ...payload, isComplete }, collected, context)
  const rows = await insert(running, collected, startedAt, context)
  // The change is recorded before the state: after the state is stored, a resuming job does not read these rows again.
  if (payload.kind === 'range') await noteChange(context, job, rowsOf(collected))
  const hasMoved = await state.store()
  const { results, answers } = collected
  const run = { payload, results, answers: answers.all(), now: context.now() }
  await openLedger(context.db, job.dataset).record(run)
  // Published last, because API responses also include the job state and the coarser ranges.
  const isRead = collected.results.some(({ read }) => read.length > 0)
  if (rows > 0 || isRead) await announce(job.dataset, context, rowsOf(collected))
  return { collected, rows, hasMoved }
}

const rowsOf = (collected: Collected) => collected.results.flatMap(({ rows }) => rows)

/** Returns the entities of the next piece: those put off or read only in part. */
function toPutOff(collected: Collected): Entity[] {
  return collected.answers
    .all()
    .filter(({ state }) => state === 'put-off')
    .map(({ entity }) => entity)
}

/** Collects from the providers and checks each row. */
async function collectChecked(
  { job, payload, slot, peers, state, signal }: Running,
  collectors: readonly Collector[],
  entities: readonly Entity[],
  context: JobContext,
): Promise<Collected> {
  const log = context.log.child({ dataset: job.name })
  const keys = entities.map(({ key }) => key)
  const checkPlausibility = payload.kind === 'slot' ? await job.openPlausibilityCheck?.(context.db, keys) : undefined
  const onRejected = (reason: string, count: number) => context.metrics?.rejected(job.name, reason, count)
  const assignment = {
    entities,
    peers,
    entityColumn: job.dataset.entity,
    slot,
    piece: payload.kind === 'slot' ? payload.piece : undefined,
    range: payload.kind === 'slot' ? undefined : payload,
    // Rows of a slot may carry times back to the previous slot. Computed rows may correct earlier ones, so they have no
    // limit.
    answersFrom:
      payload.kind === 'slot' && !job.resumes && job.computedFrom.length === 0
        ? slot - INTERVAL_SECONDS[job.cadence] * 1000
        : undefined,
    timeColumn: job.dataset.series.time,
    resumes: job.resumes,
    state,
    signal,
    redact: context.redact,
    onRejected,
    check: (provider: string, candidates: readonly object[]) => {
      const all = checkRows(job.dataset, provider, candidates, { now: context.now(), log, onRejected })
      const checked = payload.kind === 'slot' ? all : { ...all, rows: withoutLater(job.dataset, all.rows, entities) }
      return checkPlausibility === undefined ? checked : checkPlausibility(provider, checked, { log, onRejected })
    },
  }
  const collected = await collect(collectors, assignment, log)
  context.handBack?.throwIfAborted()
  return collected
}

/**
 * Stores the providers' rows in one insert, then runs or enqueues the computations that depend on them. Each step is
 * idempotent.
 * @returns the number of rows.
 */
async function insert(
  { job: { dataset }, slot }: Running,
  { results }: Collected,
  startedAt: number,
  { db, recomputation }: JobContext,
): Promise<number> {
  const rows = results.flatMap((one) => one.rows)
  const read = results.flatMap((one) => one.read)
  if (rows.length === 0 && read.length === 0) return 0
  const every = dataset.isCollected ? { collected_at: new Date(startedAt).toISOString() } : {}
  if (rows.length > 0) await db.insert({ table: dataset.table, rows, every })
  if (dataset.derive !== undefined) {
    const { entity } = dataset
    const entities = entity === undefined ? [] : [...new Set(rows.map((row) => Number(Reflect.get(row, entity))))]
    const params = toDeriveParams({ entities, read, slot, ...toTimeRange(dataset, rows) })
    for (const { name, sql } of dataset.derive) await db.command({ name, sql, params })
  }
  await callRedis(`what is computed from ${dataset.name}`, () => recomputation.enqueue(dataset, rows))
  return rows.length
}

/**
 * Throws if a retry is needed. This includes transient failures and the remaining entities: the job's time was over, or
 * an earlier provider failed and the range is incomplete or coarser. The delay of the retry is that of the entity that
 * can be retried soonest.
 * @throws PartialFailureError with the entities to retry.
 */
function throwIfIncomplete(
  answers: readonly Answer[],
  remaining: readonly Entity[],
  { report, isFurther }: { report: JobReport; isFurther(waiting: number): boolean },
): void {
  const failed = answers.filter(({ state, failure }) => state === 'failed' && failure !== undefined)
  const waiting = [...remaining, ...failed.map(({ entity }) => entity)]
  if (waiting.length === 0) return
  const failures = new Map(answers.map(({ entity, failure }) => [entity.key, failure]))
  const unfinished = new DataError('provider_unavailable', TOO_LONG, { retryAfterMs: 1 })
  const shortestWait = findShortestWait(waiting.map(({ key }) => failures.get(key) ?? unfinished))
  const entities = [...new Set(waiting.map(({ id }) => id))]
  throw new PartialFailureError(shortestWait ?? unfinished, {
    entities,
    report,
    hasProgressed: isFurther(entities.length),
  })
}

const TOO_LONG = 'there is more to read than the time of a job'

/**
 * Creates the abort signal of a run. A slot that collects the present state accepts no answer after its end: stored
 * under the slot's time, it would be the value of the next slot. Earlier answers are stored even if late.
 */
function openSignal(job: Job, payload: JobPayload, { handBack, now }: JobContext): AbortSignal {
  const timeout = AbortSignal.timeout(JOB_TIMEOUT_MS)
  const signal = handBack === undefined ? timeout : AbortSignal.any([timeout, handBack])
  if (payload.kind === 'range' || !isOfPresent(job)) return signal
  return withDeadline(signal, { endsAt: toSlotEnd(job, payload.slot), now })
}

/**
 * Returns a signal that is aborted with its parent, and when the clock `now` reaches `endsAt` (both in Unix
 * milliseconds). The timer alone is not enough: in a process that was frozen it fires late, possibly after a response
 * is read. `throwIfAborted`, which the HTTP client calls after each response, therefore reads the clock.
 */
function withDeadline(
  parent: AbortSignal,
  { endsAt, now }: { readonly endsAt: number; readonly now: () => number },
): AbortSignal {
  const over = new AbortController()
  const check = () => {
    if (over.signal.aborted || now() < endsAt) return
    const reason = `no answer before the slot ended at ${new Date(endsAt).toISOString()}: a later one is of the next slot`
    over.abort(new DataError('provider_unavailable', reason))
  }
  const signal = AbortSignal.any([parent, over.signal])
  setTimeout(check, Math.max(0, endsAt - now())).unref()
  return Object.assign(signal, {
    throwIfAborted: () => {
      check()
      AbortSignal.prototype.throwIfAborted.call(signal)
    },
  })
}
