import { setTimeout as wait } from 'node:timers/promises'
import { DelayedError, UnrecoverableError, WaitingError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { DataError, isTransient, toReason } from '../../shared/errors.ts'
import { askRedis } from '../../shared/queue/ask-redis.ts'
import type { Queued } from '../../shared/queue/job-notes.ts'
import type { Lane } from '../../shared/queue/lanes.ts'
import {
  createQueue,
  type DatasetQueue,
  type JobPayload,
  type JobReport,
  toQueueName,
  toQueuePrefix,
} from '../../shared/queue/queues.ts'
import { createOutageLog } from '../../shared/telemetry/outage-log.ts'
import type { LaneClients } from '../http/client.ts'
import type { Collector, Job, ProviderContext } from '../job/define-job.ts'
import { isLate } from '../job/late-slots.ts'
import { inJobSpan, notePayload, toJobLogFields } from '../watch/job-span.ts'
import { announce } from './announce.ts'
import { toClean } from './clean.ts'
import { type CrashWatch, createCrashWatch } from './crashes.ts'
import { moveToHistory } from './move-to-history.ts'
import { parsePayload } from './payload.ts'
import { PendingError } from './pending.ts'
import { isPostponed, TryAgain, toNextTry } from './retries.ts'
import { type JobContext, runJob } from './run-job.ts'

/** Dependencies shared by all runners of a process. */
export interface RunnerContext extends JobContext, Omit<ProviderContext, 'now'> {
  readonly http: LaneClients
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
const OTHER_PAUSE_MS = 1_000

/**
 * Creates the worker for one queue class (`lane`) of a dataset; jobs are consumed nowhere else in the code. A job is
 * complete when its rows are stored. Transient failures are retried until `toLastTry`; any other failure makes the job
 * a dead letter immediately.
 */
export function createRunner(job: Job, context: RunnerContext, lane: Lane = 'live'): Worker<JobPayload, JobReport> {
  const http = lane === 'history' ? context.http.history : context.http
  const collectors = job.connect({ ...context, http })
  const { prefix } = context.config.redis
  const { lockMs, checkMs } = context.takeover ?? TAKEOVER
  const name = toQueueName(job.name, lane)
  const history = createQueue(job.name, context.redis, prefix, 'history')
  const serve = (queued: Queued, token?: string) => serveJob(serving, queued, token)
  const worker = new Worker<JobPayload, JobReport>(name, serve, {
    connection: context.blocking,
    prefix: toQueuePrefix(prefix, name),
    concurrency: context.config.worker.concurrency[lane],
    // Jobs of a killed worker are taken over without limit. The crash watch decides when a job is blamed.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    lockDuration: lockMs,
    stalledInterval: checkMs,
    settings: {
      backoffStrategy: (_attempts, _type, error) => (error instanceof TryAgain ? error.pauseMs : OTHER_PAUSE_MS),
    },
  })
  const log = context.log.child({ dataset: job.name, lane })
  const crashes = createCrashWatch(worker, { redis: context.redis, prefix, log, lane })
  const serving: Serving = { job, lane, collectors, context, history, crashes }
  context.metrics?.observe(job.name, worker)
  worker.on('completed', (queued, report) => {
    const told = { job: queued.id, ...report, ...toJobLogFields(queued) }
    log.info(told, report.postponed === undefined ? 'done' : 'the rest is left for later')
  })
  worker.on('failed', (queued, error) => {
    const final = queued === undefined || queued.finishedOn !== undefined
    const told = { job: queued?.id, attempt: queued?.attemptsMade, reason: error.message, ...toJobLogFields(queued) }
    log[final ? 'error' : 'warn'](told, final ? 'failed for good' : 'will be tried again')
  })
  const outage = createOutageLog(log, 'warn')
  worker.on('error', ({ message }) => outage.failed(message, { reason: message }, 'queue connection'))
  for (const event of ['active', 'drained'] as const) worker.on(event, () => outage.works())
  return worker
}

interface Serving {
  job: Job
  lane: Lane
  collectors: readonly Collector[]
  context: RunnerContext
  /** The dataset's history queue. */
  history: DatasetQueue
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
    if (error instanceof NotBegun) {
      await delayUntilBegun(queued, error, context, token)
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
class NotBegun extends Error {
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
async function delayUntilBegun(queued: Queued, { slot }: NotBegun, context: RunnerContext, token: string | undefined) {
  const aheadMs = slot - context.now()
  const told = { job: queued.id, slot: new Date(slot).toISOString(), aheadMs }
  const isNews = queued.attemptsStarted === 1 && aheadMs > HOLD_MS
  context.log[isNews ? 'warn' : 'debug'](
    told,
    'a slot came before its time and waits: check the clocks of the schedulers',
  )
  await wait(Math.min(Math.max(0, aheadMs), HOLD_MS), undefined, { signal: context.handBack, ref: false }).catch(
    () => undefined,
  )
  await queued.moveToDelayed(slot, token)
}

async function attempt(serving: Serving, queued: Queued): Promise<JobReport> {
  const { job, lane, collectors, context, history, crashes } = serving
  // A returned job may reach this worker again before its queue is closed.
  context.handBack?.throwIfAborted()
  // An earlier attempt may have stored rows and died before it published the change event.
  if (queued.attemptsStarted > 1) await announce(job.dataset, context)
  const payload = parsePayload(job, queued.data)
  notePayload(payload)
  await context.sync?.()
  if (payload.kind === 'slot' && payload.slot > context.now()) throw new NotBegun(payload.slot)
  if (isOver(serving, payload)) return NOTHING
  if (payload.kind === 'range' && lane === 'live') {
    await moveToHistory(history, queued, payload)
    return NOTHING
  }
  try {
    const run = async () => {
      // While the job waited for its turn, the worker may have stopped or the slot may have ended.
      context.handBack?.throwIfAborted()
      return isOver(serving, payload) ? NOTHING : runJob(job, collectors, context, payload)
    }
    return await crashes.run(queued, run)
  } catch (error) {
    // The answered entities are stored, so the next attempt is limited to the remaining ones.
    if (error instanceof PendingError) {
      const left = { ...payload, entities: [...error.entities] }
      await askRedis('who is left of a job', () => queued.updateData(left))
    }
    throw toClean(error, context.redact)
  }
}

/** Returns whether the payload's slot is too late to be collected, and logs it. */
function isOver({ job, context }: Serving, payload: JobPayload): boolean {
  if (payload.kind === 'range' || !isLate(job, payload.slot, context.now())) return false
  const told = { dataset: job.name, slot: new Date(payload.slot).toISOString() }
  context.log.warn(told, 'a slot came too late: it is collected from history where there is any')
  return true
}
