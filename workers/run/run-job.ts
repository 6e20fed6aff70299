import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import { noteComputed, noteStored, readEngineTime } from '../../shared/coverage/computations.ts'
import { DataError, toSoonest } from '../../shared/errors.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { JobPayload, JobReport, SlotPayload } from '../../shared/queue/queues.ts'
import { toFixed } from '../../shared/registry/living.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { withDeadline } from '../http/deadline.ts'
import type { Collector, Entity, Job, Peers } from '../job/define-job.ts'
import { isOfPresent, toSlotEnd } from '../job/late-slots.ts'
import type { Recomputation } from '../job/recomputation.ts'
import { openState } from '../job/state.ts'
import type { WorkerMetrics } from '../watch/worker-metrics.ts'
import { announce } from './announce.ts'
import type { Answer } from './answers.ts'
import type { Redact } from './clean.ts'
import { type Collected, collect } from './collect.ts'
import { cover } from './cover.ts'
import { narrow } from './narrow.ts'
import { noteChange } from './note-change.ts'
import { parsePayload, toEntities, toPeers } from './payload.ts'
import { PendingError } from './pending.ts'
import { rememberFailing } from './remember-failing.ts'
import { checkRows, withoutLater } from './rows.ts'
import { store } from './store.ts'

/** What running a job needs. `now` is the wall clock in Unix milliseconds; tests give their own. */
export interface JobContext {
  readonly config: Config
  readonly db: Database
  readonly redis: Redis
  readonly recomputation: Recomputation
  readonly registry: Registry
  /** The one that is in force at this moment; without it the registry is the same for good. */
  readonly readRegistry?: () => Promise<Registry>
  readonly log: Logger
  readonly now: () => number
  /** Corrects the clock by those of the stores; without it `now` is right. */
  readonly sync?: () => Promise<void>
  readonly metrics?: WorkerMetrics
  /** Takes the settings' secrets out of what is said and stored. */
  readonly redact: Redact
  /** Aborted when running jobs must be handed back to their queues, because the worker has to end. */
  readonly handBack?: AbortSignal
}

const JOB_TIMEOUT_MS = 10 * 60_000

/** One job under way. */
interface Running {
  readonly job: Job
  readonly payload: JobPayload
  readonly slot: number
  readonly peers: Peers<Entity>
  readonly state: ReturnType<typeof openState>
  readonly signal: AbortSignal
}

/**
 * One job from payload to stored rows and their coverage, piece by piece where its run says that there is more. Whatever
 * came is stored before a failure is thrown. The steps may be repeated from the start after any of them failed.
 * @throws PendingError when entities are without an answer that may still come, another DataError for a payload that makes
 *   no sense or for the storage.
 */
export async function runJob(
  job: Job,
  collectors: readonly Collector[],
  surroundings: JobContext,
  data: unknown,
): Promise<JobReport> {
  const { registry, readRegistry = async () => registry } = surroundings
  // Another registry may come into force meanwhile: a job works with one. What is computed is stored for good, and often
  // because there is a new one, which this process may not have heard of yet.
  const context = { ...surroundings, registry: toFixed(job.computedFrom.length > 0 ? await readRegistry() : registry) }
  const payload = parsePayload(job, data)
  const running: Running = {
    job,
    payload,
    slot: payload.kind === 'slot' ? payload.slot : payload.from,
    peers: toPeers(job, context, payload),
    state: openState(context.db, job.name, context.now, (name, reason) =>
      context.log.warn({ dataset: job.name, name, reason }, 'a remembered value is unreadable and is replaced'),
    ),
    signal: openSignal(job, payload, context),
  }
  const isComputed = job.computedFrom.length > 0 && payload.kind === 'range'
  const readAt = isComputed ? await readEngineTime(context.db) : 0
  const all = toEntities(job, context, payload)
  const report: JobReport = { rows: 0, rejected: 0, uncovered: 0, providers: [] }
  const answers = new Map<number, Answer>()
  const wanted = await narrow(context.db, job, payload, all)
  let left: readonly Entity[] = wanted
  let isStateMoved = false
  while (left.length > 0 && !running.signal.aborted) {
    const isWhole = answers.size === 0 && left.length === running.peers.own.length
    const { collected, rows, hasMoved } = await runPiece(running, collectors, { entities: left, isWhole }, context)
    report.rows += rows
    isStateMoved ||= hasMoved
    report.rejected += collected.rejected
    report.providers = [...new Set([...report.providers, ...collected.given.map(({ provider }) => provider)])]
    for (const answer of collected.answers.all()) answers.set(answer.entity.key, answer)
    left = collected.more ? toLeft(collected) : []
  }
  const lacking = [...answers.values()].filter(({ state }) => state === 'failed' || state === 'unserved')
  report.uncovered = lacking.length
  // What could not be read was not computed: the inputs stay newer, and the computation is found again.
  const isWhole = left.length === 0 && lacking.length === 0
  if (isComputed && isWhole) {
    if ((await readRegistry()).version !== context.registry.version) {
      // Somebody may have computed it by the new one already, which this run has overwritten.
      await noteStored(context.db, job.dataset, [payload])
      context.log.info({ dataset: job.name }, 'computed again: another registry came into force meanwhile')
      return runJob(job, collectors, surroundings, data)
    }
    await noteComputed(context.db, job.dataset, payload, readAt)
  }
  const partly = [...answers.values()].filter(({ state, failure }) => state === 'rows' && failure !== undefined)
  const stillOpen = payload.kind === 'slot' ? [] : partly.map(({ entity }) => entity)
  const open = stillOpen.length === 0 ? [] : await narrow(context.db, job, { ...payload, again: undefined }, stillOpen)
  refusePending([...answers.values()], [...left, ...open], {
    report,
    // Not that rows came: they may be the same with every try.
    isFurther: (waiting) => isStateMoved || waiting < wanted.length,
  })
  return report
}

/**
 * Opens the signal of a run. A slot that gets the present state takes no answer after its end: stored under the slot's time it
 * would be the value of the next one. What came before is stored, however late.
 */
function openSignal(job: Job, payload: JobPayload, { handBack, now }: JobContext): AbortSignal {
  const timeout = AbortSignal.timeout(JOB_TIMEOUT_MS)
  const signal = handBack === undefined ? timeout : AbortSignal.any([timeout, handBack])
  if (payload.kind === 'range' || !isOfPresent(job)) return signal
  return withDeadline(signal, { endsAt: toSlotEnd(job, payload.slot), now })
}

/** Asks once, and stores what came before it is made known that it is there. */
async function runPiece(
  running: Running,
  collectors: readonly Collector[],
  { entities, isWhole }: { readonly entities: readonly Entity[]; readonly isWhole: boolean },
  context: JobContext,
): Promise<{ collected: Collected; rows: number; hasMoved: boolean }> {
  const { job, payload, slot, state } = running
  // A slot that has begun elsewhere has begun: this machine's clock may be behind that of the scheduler.
  const startedAt = Math.max(context.now(), slot)
  const collected = await collectChecked(running, collectors, entities, context)
  if (payload.kind === 'slot') await tellFailing(job, { ...payload, isWhole }, collected, context)
  const rows = await store(job.dataset, collected, { slot, startedAt }, context)
  // First what is only found in these rows: what resumes does not read them again once its state is stored.
  if (payload.kind === 'range') await noteChange(context, job, given(collected))
  const hasMoved = await state.store()
  await cover(context.db, { job, payload, collected, now: context.now() })
  // At the end: answers of the API also say what is remembered, and which data is coarser than asked for.
  const isRead = collected.given.some(({ read }) => read.length > 0)
  if (rows > 0 || isRead) await announce(job.dataset, context, given(collected))
  return { collected, rows, hasMoved }
}

const given = (collected: Collected) => collected.given.flatMap(({ rows }) => rows)

/** Whom the next piece is about: those whose turn has not come or is not over. */
function toLeft(collected: Collected): Entity[] {
  return collected.answers
    .all()
    .filter(({ state }) => state === 'put-off')
    .map(({ entity }) => entity)
}

/**
 * What failed in a way that may pass is tried again, as are those that are left: the job's time was over, or only a part
 * of a range came, or a coarser one, because an earlier provider failed. The next try is for whoever may have an answer first.
 * @throws PendingError that names them.
 */
function refusePending(
  answers: readonly Answer[],
  left: readonly Entity[],
  { report, isFurther }: { report: JobReport; isFurther(waiting: number): boolean },
): void {
  const failed = answers.filter(({ state, failure }) => state === 'failed' && failure !== undefined)
  const waiting = [...left, ...failed.map(({ entity }) => entity)]
  if (waiting.length === 0) return
  const failures = new Map(answers.map(({ entity, failure }) => [entity.key, failure]))
  const unfinished = new DataError('provider_unavailable', TOO_LONG, { retryAfterMs: 1 })
  const soonest = toSoonest(waiting.map(({ key }) => failures.get(key) ?? unfinished))
  const entities = [...new Set(waiting.map(({ id }) => id))]
  throw new PendingError(soonest ?? unfinished, { entities, report, cameFurther: isFurther(entities.length) })
}

const TOO_LONG = 'there is more to read than the time of a job'

/** What the providers answer, row by row checked. */
async function collectChecked(
  { job, payload, slot, peers, state, signal }: Running,
  collectors: readonly Collector[],
  entities: readonly Entity[],
  context: JobContext,
): Promise<Collected> {
  const log = context.log.child({ dataset: job.name })
  const keys = entities.map(({ key }) => key)
  const doubt = payload.kind === 'slot' ? await job.doubt?.(context.db, keys) : undefined
  const onRejected = (reason: string, count: number) => context.metrics?.rejected(job.name, reason, count)
  const assignment = {
    entities,
    peers,
    entityColumn: job.dataset.entity,
    slot,
    piece: payload.kind === 'slot' ? payload.piece : undefined,
    range: payload.kind === 'slot' ? undefined : payload,
    // Rows of one slot may tell of the time since the one before; what is computed may correct earlier ones.
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
      return doubt === undefined ? checked : doubt(provider, checked, { log, onRejected })
    },
  }
  const collected = await collect(collectors, assignment, log)
  context.handBack?.throwIfAborted()
  return collected
}

/**
 * Which providers of a slot failed is told where `/data/status` reads it; a back-fill says nothing of now. A failure of this
 * note is only logged: the job must end with the provider's failure, not with the storage's.
 */
async function tellFailing(
  job: Job,
  { slot, piece, isWhole }: SlotPayload & { readonly isWhole: boolean },
  { failures, given }: Collected,
  context: JobContext,
): Promise<void> {
  try {
    const answered = given.filter(({ rows, read }) => rows.length + read.length > 0).map(({ provider }) => provider)
    await rememberFailing(context, job.name, { slot, piece, isWhole, failures, answered })
  } catch (error) {
    const failed = failures.map(({ provider }) => provider)
    context.log.warn({ dataset: job.name, failed, err: error }, 'failing providers cannot be remembered')
  }
}
