import type { Redis } from 'ioredis'
import { toBucket, toBuckets, toStepSeconds } from '../../shared/buckets.ts'
import type { Config } from '../../shared/config/config.ts'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { DataError, findShortestWait } from '../../shared/errors.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { type Answer, type Ledger, openLedger } from '../../shared/ledger/ledger.ts'
import { callRedis, type JobPayload, type JobReport } from '../../shared/queue/queues.ts'
import { groupByEnd, snapshot } from '../../shared/registry/ends.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { type Database, readEngineTime } from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import {
  type CheckedRows,
  type Collector,
  type Confirmation,
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
import type { WorkerMetrics } from '../monitoring/worker-metrics.ts'
import { toAnswersFrom, toAssignment } from './assignment.ts'
import { announce, noteChange, reportFailing, toTimeRange } from './changes.ts'
import { type Collected, collect, type Redact } from './collect.ts'
import { openRawRun, type RawRun } from './raw-answers.ts'
import { PartialFailureError } from './retries.ts'

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

/** The inputs of storing rows. */
interface Storing {
  readonly job: Pick<Job, 'dataset'>
  readonly slot: number
  readonly context: Pick<JobContext, 'db' | 'recomputation'>
}

/** State of one running job. `slot` is the start of the range for a range. */
interface Running {
  readonly job: Job
  readonly collectors: readonly Collector[]
  readonly context: JobContext
  readonly payload: JobPayload
  readonly slot: number
  readonly peers: Peers<Entity>
  readonly state: ReturnType<typeof openState>
  readonly signal: AbortSignal
  readonly ledger: Ledger
  /** ClickHouse's time before a computation reads its inputs; undefined if the job collects from providers. */
  readonly readAt: number | undefined
}

/**
 * Runs one job: validates its payload, selects the entities, collects and stores rows and coverage while there is more
 * to read. All results are stored before a failure is thrown. Each step is idempotent, so the job may restart from the
 * beginning after any failure.
 * @throws PartialFailureError if entities have no answer yet but may get one, another DataError for an invalid payload or a
 *   storage failure.
 */
export async function runJob(
  job: Job,
  collectors: readonly Collector[],
  jobContext: JobContext,
  data: unknown,
): Promise<JobReport> {
  const payload = parsePayload(job, data)
  const { registry, readRegistry = async () => registry } = jobContext
  const isComputed = job.computedFrom.length > 0
  // The active registry may change during the run, so the job works with a snapshot. Computed results are stored
  // permanently, and a new registry often is the reason for the computation. A computation therefore reads the newest
  // version, which this process may not have received yet.
  const context = { ...jobContext, registry: snapshot(isComputed ? await readRegistry() : registry) }
  const running: Running = {
    job,
    collectors,
    context,
    payload,
    slot: payload.kind === 'slot' ? payload.slot : payload.from,
    peers: toPeers(job, context, payload),
    state: openState(context.db, job.name, context.now, (name, reason) =>
      context.log.warn({ dataset: job.name, name, reason }, 'unreadable job state is replaced'),
    ),
    signal: openSignal(job, payload, context),
    ledger: openLedger(context.db, job.dataset),
    readAt: isComputed && payload.kind === 'range' ? await readEngineTime(context.db) : undefined,
  }
  const requested = await withoutCovered(running, toEntities(job, context, payload), payload)
  const progress = await collectAll(running, requested)
  if ((await recordComputed(running, progress, readRegistry)) === 'outdated')
    return runJob(job, collectors, jobContext, data)
  await throwIfIncomplete(running, requested, progress)
  return progress.report
}

/**
 * Returns the entities that a run still has to collect: those with missing buckets in the range at its step, or without
 * data for the slot.
 * Three kinds of run keep all entities:
 * - computed datasets, because their inputs may have changed;
 * - resuming jobs, because they fetch new data;
 * - slots whose rows carry the sources' own times, because the bucket is not known in advance.
 */
async function withoutCovered(
  { job, ledger }: Running,
  entities: readonly Entity[],
  payload: JobPayload,
): Promise<readonly Entity[]> {
  const { cadence } = job.dataset
  const isOpen = job.computedFrom.length > 0 || (payload.kind === 'slot' && (job.resumes || job.dataset.hasOwnTimes))
  if (isOpen || payload.again) return entities
  const range = payload.kind === 'range' ? payload : { from: payload.slot, to: payload.slot + 1 }
  const seconds = payload.kind === 'range' ? toStepSeconds(payload.interval, cadence) : INTERVAL_SECONDS[cadence]
  const open = new Set<number>()
  for (const part of groupByEnd(entities, range)) {
    const expected = toBuckets(part.range, cadence)
    const keys = part.entities.map(({ key }) => key)
    const lacking = expected && (await ledger.missing(keys, { expected: [expected], seconds }))
    for (const key of lacking?.keys() ?? keys) open.add(key)
  }
  return entities.filter(({ key }) => open.has(key))
}

/** The progress of a run. */
interface Progress {
  readonly report: JobReport
  /** The last answer for each entity. */
  readonly answers: readonly Answer[]
  /** The entities that were put off or read only in part. */
  readonly remaining: readonly Entity[]
  /** Whether the cursors of the job have moved. */
  readonly isStateMoved: boolean
}

/** Collects and stores while the providers report that more can be read immediately and the job has time. */
async function collectAll(running: Running, requested: readonly Entity[]): Promise<Progress> {
  const report: JobReport = { rows: 0, rejected: 0, uncovered: 0, providers: [] }
  const answers = new Map<number, Answer>()
  let remaining = requested
  let isStateMoved = false
  while (remaining.length > 0 && !running.signal.aborted) {
    const isComplete = answers.size === 0 && remaining.length === running.peers.own.length
    const { collected, rows, hasMoved } = await collectAndStore(running, remaining, isComplete)
    report.rows += rows
    isStateMoved ||= hasMoved
    report.rejected += collected.rejected
    report.providers = [...new Set([...report.providers, ...collected.results.map(({ provider }) => provider)])]
    const last = collected.answers.all()
    for (const answer of last) answers.set(answer.entity.key, answer)
    const putOff = last.filter(({ state }) => state === 'put-off')
    remaining = collected.more ? putOff.map(({ entity }) => entity) : []
  }
  report.uncovered = [...answers.values()].filter(hasNone).length
  return { report, answers: [...answers.values()], remaining, isStateMoved }
}

const hasNone = ({ state }: Answer): boolean => state === 'failed' || state === 'unserved'

/** Collects once, and stores the rows before their coverage and change events are published. */
async function collectAndStore(
  running: Running,
  entities: readonly Entity[],
  isComplete: boolean,
): Promise<{ collected: Collected; rows: number; hasMoved: boolean }> {
  const { job, payload, slot, state, context } = running
  // The slot has begun, even if this machine's clock is behind that of the scheduler.
  const startedAt = Math.max(context.now(), slot)
  const confirmation = await openConfirmation(running, entities)
  const raw = openRawRun({ job, payload, entities, db: context.db, config: context.config, state })
  const collected = await raw.collect(() => collectChecked(running, entities, raw, confirmation))
  if (payload.kind === 'slot') await reportFailing(job, { ...payload, isComplete }, collected, context)
  await raw.store(collected, startedAt)
  const removed = await takeOut(running, confirmation)
  const rows = await storeRows(running, collected, startedAt)
  await confirmation?.store()
  // The change and the coverage are recorded before the state: after the state is stored, a resuming job does not read
  // these rows again, and its next reading covers only later data.
  if (payload.kind === 'range') await noteChange(context, job, rowsOf(collected))
  const { results, answers } = collected
  await running.ledger.record({ payload, results, answers: answers.all(), now: context.now() })
  const hasMoved = await state.store()
  // Published last, because API responses also include the job state and the coarser ranges.
  const isRead = results.some(({ read }) => read.length > 0)
  if (rows > 0 || isRead || removed.length > 0) await announce(job.dataset, context, [...removed, ...rowsOf(collected)])
  return { collected, rows, hasMoved }
}

const rowsOf = (collected: Collected) => collected.results.flatMap(({ rows }) => rows)

/** Opens the confirmation of a slot's values; undefined for a range and for a job without one. */
async function openConfirmation(running: Running, entities: readonly Entity[]): Promise<Confirmation | undefined> {
  const { job, collectors, context, payload, slot } = running
  if (payload.kind !== 'slot') return undefined
  return job.openConfirmation?.(context.db, {
    entities,
    slot,
    sources: collectors.map(({ provider, isWitness = false, covers }) => ({ provider, isWitness, covers })),
    answersFrom: toAnswersFrom(running.job, payload) ?? Number.NEGATIVE_INFINITY,
    log: context.log.child({ dataset: job.name }),
  })
}

/**
 * Removes stored values that the slot has found wrong, with their coverage. Datasets computed from these values are
 * computed again, and alerts compare their sent messages with the corrected series.
 * @returns rows with the entity and the time of each.
 */
async function takeOut(
  { job, context, ledger }: Running,
  confirmation: Confirmation | undefined,
): Promise<readonly object[]> {
  const removed = (await confirmation?.takeOut()) ?? []
  if (removed.length === 0) return []
  const { entity: column = '', series, cadence } = job.dataset
  const rows = removed.map(({ entity, at }) => ({ [column]: entity, [series.time]: new Date(at).toISOString() }))
  const seconds = INTERVAL_SECONDS[cadence]
  const reports = removed.map(({ entity, provider, at }) => {
    const bucket = toBucket(at, cadence)
    return { entity, provider, seconds, state: 'stored' as const, first: bucket, last: bucket }
  })
  await ledger.removeUnfounded(reports)
  await noteChange(context, job, rows)
  await callRedis(`what is computed from ${job.name}`, () => context.recomputation.enqueue(job.dataset, rows))
  return rows
}

/** Collects from the providers and checks each row. */
async function collectChecked(
  running: Running,
  entities: readonly Entity[],
  { state, noteImplausible }: RawRun,
  confirmation: Confirmation | undefined,
): Promise<Collected> {
  const { job, collectors, context, payload, peers, signal } = running
  const log = context.log.child({ dataset: job.name })
  const keys = entities.map(({ key }) => key)
  const checkPlausibility =
    payload.kind === 'slot'
      ? await job.openPlausibilityCheck?.(context.db, keys)
      : await job.openHistoryCheck?.(context.db, keys, payload)
  const onRejected = (reason: string, count: number) => context.metrics?.rejected(job.name, reason, count)
  const onConfirmed = (withheld: number, excluded: ReadonlyMap<string, number>) =>
    context.metrics?.confirmed(job.name, withheld, excluded)
  const { now, redact } = context
  const checkAgain = (provider: string, checked: CheckedRows) => {
    if (checkPlausibility === undefined) return checked
    const plausible = checkPlausibility(provider, checked, { log, onRejected })
    noteImplausible(
      provider,
      [...plausible.refused.keys()].filter((key) => !checked.refused.has(key)),
    )
    return plausible
  }
  const checks = { onRejected, checkAgain, confirmation, onConfirmed }
  const given = { job, payload, entities, peers, state, signal, now, log, redact, ...checks }
  const collected = await collect(collectors, toAssignment(given), log)
  context.handBack?.throwIfAborted()
  return collected
}

/**
 * Stores the providers' rows in one insert, then runs or enqueues the computations that depend on them. Each step is
 * idempotent.
 * @returns the number of rows.
 */
export async function storeRows(
  { job: { dataset }, slot, context: { db, recomputation } }: Storing,
  { results }: Pick<Collected, 'results'>,
  startedAt: number,
): Promise<number> {
  const rows = results.flatMap(({ provider, rows: own }) =>
    dataset.isAttributed === true ? own.map((row) => ({ ...row, provider })) : own,
  )
  const read = results.flatMap((one) => one.read.map(({ entity }) => entity))
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
 * Records that a range is computed from all inputs stored so far. If an input could not be read, nothing is recorded:
 * the inputs stay newer than the result, so the computation is planned again.
 * @returns `outdated` if the active registry changed during the computation, so that the range must be computed again.
 */
async function recordComputed(
  { job, payload, context, ledger, readAt }: Running,
  { answers, remaining }: Progress,
  readRegistry: () => Promise<Registry>,
): Promise<'recorded' | 'outdated' | undefined> {
  if (readAt === undefined || payload.kind === 'slot' || remaining.length > 0 || answers.some(hasNone)) return undefined
  if ((await readRegistry()).version !== context.registry.version) {
    // Another worker may have computed it with the new registry, and this run has overwritten that result.
    await ledger.noteStored([payload])
    context.log.info({ dataset: job.name }, 'recomputing: the active registry changed during the computation')
    return 'outdated'
  }
  await ledger.noteComputed(payload, readAt)
  return 'recorded'
}

/**
 * Throws if a retry is needed: after a transient failure, and for remaining entities, because the job's time was over,
 * or an earlier provider failed and the range is incomplete or coarser. The delay of the retry is that of the entity
 * that can be retried soonest.
 * @throws PartialFailureError with the entities to retry.
 */
async function throwIfIncomplete(
  running: Running,
  requested: readonly Entity[],
  { report, answers, remaining, isStateMoved }: Progress,
): Promise<void> {
  const failed = answers.filter(({ state, failure }) => state === 'failed' && failure !== undefined)
  const waiting = [...remaining, ...(await findPartlyCovered(running, answers)), ...failed.map(({ entity }) => entity)]
  if (waiting.length === 0) return
  const failures = new Map(answers.map(({ entity, failure }) => [entity.key, failure]))
  const unfinished = new DataError('provider_unavailable', TOO_LONG, { retryAfterMs: 1 })
  const shortestWait = findShortestWait(waiting.map(({ key }) => failures.get(key) ?? unfinished))
  const entities = [...new Set(waiting.map(({ id }) => id))]
  // Rows are no evidence of progress: each attempt may return the same rows.
  const hasProgressed = isStateMoved || entities.length < requested.length
  throw new PartialFailureError(shortestWait ?? unfinished, { entities, report, hasProgressed })
}

/** Returns the entities of a range that a later provider answered after a failure, and that still have missing buckets. */
async function findPartlyCovered(running: Running, answers: readonly Answer[]): Promise<readonly Entity[]> {
  const { payload } = running
  const partly = answers.filter(({ state, failure }) => state === 'rows' && failure !== undefined)
  if (payload.kind === 'slot' || partly.length === 0) return []
  const entities = partly.map(({ entity }) => entity)
  return withoutCovered(running, entities, { ...payload, again: undefined })
}

const JOB_TIMEOUT_MS = 10 * 60_000

const TOO_LONG = 'there is more to read than the time of a job'

/**
 * Creates the abort signal of a run. A slot that collects the present state accepts no answer after its end: stored
 * under the slot's time, it would be the value of the next slot. Answers that arrived before its end are stored after it, too.
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
