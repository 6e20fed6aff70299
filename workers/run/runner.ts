import { setTimeout as wait } from 'node:timers/promises'
import { DelayedError, UnrecoverableError, WaitingError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { DataError, isTransient, toReason } from '../../shared/errors.ts'
import { addNotes, MOST_BLAMED, MOST_JUDGED, type Queued, readNotes } from '../../shared/queue/job-notes.ts'
import type { QueueClass } from '../../shared/queue/queue-classes.ts'
import { callRedis, type JobPayload, type JobReport, toQueueName, toQueuePrefix } from '../../shared/queue/queues.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'
import type { QueueClassClients } from '../http/client.ts'
import { type Collector, isLate, type Job, type ProviderContext, parsePayload } from '../job/define-job.ts'
import { inJobSpan, notePayload, toJobLogFields } from '../monitoring/job-span.ts'
import { announce } from './changes.ts'
import { redactError } from './collect.ts'
import { isPostponed, PartialFailureError, RetryLater, toNextTry } from './retries.ts'
import { type JobContext, runJob } from './run-job.ts'

/**
 * Jobs, from a queue to stored rows. Other modules import only this file.
 *
 * - `createRunner` takes jobs from a queue, retries transient failures and makes other failures dead letters.
 * - `runJob` runs one job: selects entities, collects, checks rows, inserts, records coverage, publishes the change event,
 *   in this order. Repeating a job changes nothing. If entities are left, it throws `PartialFailureError` after it stored the
 *   rows of the others.
 * - `checkRows` is the check that the rows of every job pass.
 * - `replay` decodes stored answers again, `checkRecordings` recorded ones in files.
 */
export { announce, noteChange, rememberFailing } from './changes.ts'
export { type ReplayOptions, type ReplayResult, replay } from './replay.ts'
export { type CheckedRecording, type CheckResult, checkRecordings, type RowDifference } from './replay-check.ts'
export type { Difference } from './replay-compare.ts'
export { PartialFailureError } from './retries.ts'
export { checkRows } from './rows.ts'
export { type JobContext, runJob } from './run-job.ts'

/** Dependencies shared by all runners of a process. */
export interface RunnerContext extends JobContext, Omit<ProviderContext, 'now'> {
  readonly http: QueueClassClients
  /** Redis connection for blocking reads of the queues. */
  readonly blocking: Redis
  /** Timing of the takeover of a killed worker's jobs; default `TAKEOVER`. */
  readonly takeover?: Takeover
}

/**
 * A worker renews the locks of its jobs. A lock that is not renewed expires after `lockMs`. Expired locks are searched
 * every `checkMs`.
 */
export interface Takeover {
  readonly lockMs: number
  readonly checkMs: number
}

/** The sum is less than a sixth of the shortest cadence, so a killed worker costs no slot. */
const TAKEOVER: Takeover = { lockMs: 30_000, checkMs: 15_000 }

/** Delay after errors that are not job failures, such as Redis rejecting the result. */
const ERROR_PAUSE_MS = 1_000

/**
 * Creates the worker for one queue class of a dataset. No other code consumes jobs. A job is
 * complete when its rows are stored. Transient failures are retried until `toLastTry`; any other failure makes the job
 * a dead letter immediately.
 */
export function createRunner(
  job: Job,
  context: RunnerContext,
  queueClass: QueueClass = 'live',
): Worker<JobPayload, JobReport> {
  const http = queueClass === 'history' ? context.http.history : context.http
  const collectors = job.connect({ ...context, http })
  const { prefix } = context.config.redis
  const { lockMs, checkMs } = context.takeover ?? TAKEOVER
  const name = toQueueName(job.name, queueClass)
  const serve = (queued: Queued, token?: string) => serveJob(serving, queued, token)
  const worker = new Worker<JobPayload, JobReport>(name, serve, {
    connection: context.blocking,
    prefix: toQueuePrefix(prefix, name),
    concurrency: context.config.worker.concurrency[queueClass],
    // Jobs of a killed worker are taken over without limit. The crash watch decides when a job is blamed.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    lockDuration: lockMs,
    stalledInterval: checkMs,
    settings: {
      backoffStrategy: (_attempts, _type, error) => (error instanceof RetryLater ? error.pauseMs : ERROR_PAUSE_MS),
    },
  })
  const log = context.log.child({ dataset: job.name, queueClass })
  const crashes = createCrashWatch(worker, { redis: context.redis, prefix, log, queueClass })
  const serving: Serving = { job, collectors, context, crashes }
  context.metrics?.observe(job.name, worker)
  worker.on('completed', (queued, report) => {
    const fields = { job: queued.id, ...report, ...toJobLogFields(queued) }
    log.info(fields, report.postponed === undefined ? 'done' : 'remaining entities are postponed')
  })
  worker.on('failed', (queued, error) => {
    const final = queued === undefined || queued.finishedOn !== undefined
    const fields = { job: queued?.id, attempt: queued?.attemptsMade, reason: error.message, ...toJobLogFields(queued) }
    log[final ? 'error' : 'warn'](fields, final ? 'failed for good' : 'will be tried again')
  })
  const outage = createOutageLog(log, 'warn')
  const works = () => outage.works()
  worker.on('error', ({ message }) => {
    outage.failed(message, { reason: message }, 'queue connection')
    for (const event of ['active', 'drained'] as const) worker.off(event, works).once(event, works)
  })
  return worker
}

interface Serving {
  job: Job
  collectors: readonly Collector[]
  context: RunnerContext
  crashes: CrashWatch
}

const NOTHING: JobReport = { rows: 0, rejected: 0, uncovered: 0, providers: [] }

async function serveJob(serving: Serving, queued: Queued, token: string | undefined): Promise<JobReport> {
  const { job, context } = serving
  const isHandedBack = () => context.handBack?.aborted ?? false
  try {
    return await inJobSpan(queued, isHandedBack, () => attempt(serving, queued))
  } catch (error) {
    if (isHandedBack()) {
      await queued.moveToWait(token)
      context.metrics?.returned(job.name, queued)
      context.log.info({ dataset: job.name, job: queued.id }, 'handed back')
      throw new WaitingError()
    }
    if (error instanceof NotStarted) {
      await delayUntilStarted(queued, error, context, token)
      throw new DelayedError()
    }
    if (error instanceof DataError && error.code === 'storage') context.metrics?.storageFailed(job.name)
    if (isTransient(error)) {
      const next = await toNextTry(job.cadence, queued, error, context.now())
      if (next instanceof UnrecoverableError && isPostponed(queued, error))
        return { ...error.report, postponed: next.message }
      throw next
    }
    throw new UnrecoverableError(toReason(error))
  }
}

/** Thrown for a slot that has not begun. */
class NotStarted extends Error {
  readonly slot: number

  constructor(slot: number) {
    super(`the slot ${new Date(slot).toISOString()} has not begun`)
    this.name = 'NotBegun'
    this.slot = slot
  }
}

/**
 * Maximum wait in this process. If the clock of this process is ahead, the queue would return the delayed job
 * immediately.
 */
const HOLD_MS = 1_000

/**
 * Delays the job until its slot begins. Run now, it would store the present as the future. Its id is the slot's id, so
 * no other job would collect the slot later.
 */
async function delayUntilStarted(
  queued: Queued,
  { slot }: NotStarted,
  context: RunnerContext,
  token: string | undefined,
) {
  const aheadMs = slot - context.now()
  const fields = { job: queued.id, slot: new Date(slot).toISOString(), aheadMs }
  const isNews = queued.attemptsStarted === 1 && aheadMs > HOLD_MS
  context.log[isNews ? 'warn' : 'debug'](
    fields,
    'a slot is in the future and waits: check the clocks of the schedulers',
  )
  await wait(Math.min(Math.max(0, aheadMs), HOLD_MS), undefined, { signal: context.handBack, ref: false }).catch(
    () => undefined,
  )
  await queued.moveToDelayed(slot, token)
}

async function attempt(serving: Serving, queued: Queued): Promise<JobReport> {
  const { job, collectors, context, crashes } = serving
  // A returned job may reach this worker again before its queue is closed.
  context.handBack?.throwIfAborted()
  // An earlier attempt may have stored rows and died before it published the change event.
  if (queued.attemptsStarted > 1) await announce(job.dataset, context)
  const payload = parsePayload(job, queued.data)
  notePayload(payload)
  await context.sync?.()
  if (payload.kind === 'slot' && payload.slot > context.now()) throw new NotStarted(payload.slot)
  if (isOver(serving, payload)) return NOTHING
  try {
    const run = async () => {
      // While the job waited for its turn, the worker may have stopped or the slot may have ended.
      context.handBack?.throwIfAborted()
      return isOver(serving, payload) ? NOTHING : runJob(job, collectors, context, payload)
    }
    return await crashes.run(queued, run)
  } catch (error) {
    // The answered entities are stored, so the next attempt is limited to the remaining ones.
    if (error instanceof PartialFailureError) {
      const remaining = { ...payload, entities: [...error.entities] }
      await callRedis('remaining entities of a job', () => queued.updateData(remaining))
    }
    throw redactError(error, context.redact)
  }
}

/** Returns whether the payload's slot is too late to be collected, and logs it. */
function isOver({ job, context }: Serving, payload: JobPayload): boolean {
  if (payload.kind === 'range' || !isLate(job, payload.slot, context.now())) return false
  const fields = { dataset: job.name, slot: new Date(payload.slot).toISOString() }
  context.log.warn(fields, 'slot has ended: it is collected from history if the providers have any')
  return true
}

interface CrashContext {
  readonly redis: Redis
  readonly prefix: string
  readonly log: Logger
  /** Queue class of the jobs. */
  readonly queueClass: QueueClass
}

/** Detects jobs that crash their process. */
export interface CrashWatch {
  /**
   * Runs a job immediately. If its worker died or hung before, runs it when no other suspect job runs in this process.
   * @throws UnrecoverableError for a job that has crashed its workers, DataError `storage` if Redis is unavailable.
   */
  run<T>(queued: Queued, work: () => Promise<T>): Promise<T>
}

/** Suspect jobs of this process (they were running during a crash), waiting for the running suspect to finish. */
const suspects: Record<QueueClass, (() => Promise<void>)[]> = { live: [], history: [] }
let isServed = false

/** Live jobs run first: a slot expires soon, a range does not. */
async function serveLine(): Promise<void> {
  if (isServed) return
  isServed = true
  for (let next = toNext(); next !== undefined; next = toNext()) await next()
  isServed = false
}

const toNext = () => suspects.live.shift() ?? suspects.history.shift()

function inLine<T>(queueClass: QueueClass, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    suspects[queueClass].push(() => work().then(resolve, reject))
    void serveLine()
  })
}

/**
 * BullMQ counts how often a job's worker died or hung while the job ran. The count cannot distinguish a job that
 * crashes its worker from a job that ran next to it, or from a machine failure. Two rules distinguish them:
 * - Suspect jobs run one at a time per process, and are judged when their turn starts. A job that crashes its worker
 *   then does so alone, and waiting jobs are not blamed.
 * - An external cause also ends workers that do not run the job. Redis therefore counts, per queue, the workers that
 *   started and did not close on purpose. The job is blamed if at most one worker ended since its last judgement. If
 *   more ended, the blame count restarts at 1.
 *
 * If Redis was emptied or a worker's end was not recorded, the error is on the safe side: a job to blame may be
 * cleared, and needs some more crashes before it is blamed.
 */
export function createCrashWatch(worker: Worker, { redis, prefix, log, queueClass }: CrashContext): CrashWatch {
  const key = `${prefix}:workers`
  const count = async (by: number) => {
    try {
      await redis.hincrby(key, worker.name, by)
    } catch (error) {
      log.debug({ queue: worker.name, reason: toReason(error) }, 'worker could not be registered')
    }
  }
  void count(1)
  // If Redis is unavailable, a closing worker cannot return its jobs. Other workers take the jobs over, as after a
  // crash.
  worker.on('closed', () => void (redis.status === 'ready' && count(-1)))
  const judge = async (queued: Queued) => {
    const seen = queued.stalledCounter
    const before = readNotes(queued).crashes
    if (seen === before?.seen) return
    const ended = Number((await callRedis('workers that ended', () => redis.hget(key, worker.name))) ?? 0)
    const isAlone = before === undefined || ended - before.ended <= 1
    const judged = (before?.judged ?? 0) + 1
    const blamed = isAlone ? (before?.blamed ?? 0) + 1 : 1
    await addNotes(queued, { crashes: { seen, judged, blamed, ended } })
    if (blamed < MOST_BLAMED && judged < MOST_JUDGED) return
    const blame = blamed < MOST_BLAMED ? 'whoever is to blame' : 'while no other worker did'
    throw new UnrecoverableError(
      `the worker that ran this job died or hung ${judged} times, ${blame}: see the last output of the workers; a retry gives the job one more try`,
    )
  }
  return {
    run: (queued, work) => {
      if (queued.stalledCounter === 0) return work()
      return inLine(queueClass, async () => {
        await judge(queued)
        return work()
      })
    },
  }
}
