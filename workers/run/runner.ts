import { type Job as QueuedJob, UnrecoverableError, WaitingError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { DataError, isTransient, toReason } from '../../shared/errors.ts'
import { type JobPayload, type JobReport, toQueuePrefix } from '../../shared/queue/queues.ts'
import type { Collector, Job, ProviderContext } from '../job/define-job.ts'
import { isLate } from '../schedule/late-slots.ts'
import { inJobSpan, notePayload, toJobLogFields } from '../watch/job-span.ts'
import { announce } from './announce.ts'
import { parsePayload } from './payload.ts'
import { PendingError } from './pending.ts'
import { type JobContext, runJob } from './run-job.ts'

/** What every runner of a process shares. */
export interface RunnerContext extends JobContext, Omit<ProviderContext, 'now'> {
  /** The connection on which queues wait for jobs. */
  readonly blocking: Redis
  /** How soon the jobs of a killed worker are taken over; `TAKEOVER` unless given. */
  readonly takeover?: Takeover
  /** Takes secrets out of the reasons of failures, which the queue keeps. */
  readonly redact?: (text: string) => string
}

/**
 * A worker renews the locks of its jobs. A lock that is not renewed runs out after `lockMs`; such locks are looked for
 * every `checkMs`.
 */
export interface Takeover {
  readonly lockMs: number
  readonly checkMs: number
}

/** Together less than a sixth of the shortest cadence, so that a killed worker costs no slot. */
const TAKEOVER: Takeover = { lockMs: 30_000, checkMs: 15_000 }

const BACKOFF_FIRST_MS = 1_000
const BACKOFF_MOST_MS = 5 * 60_000

/** The wait before attempt `attempts + 1`: what the provider asked for, else exponential with jitter. */
function toBackoff(attempts: number, error: Error | undefined): number {
  if (error instanceof DataError && error.retryAfterMs !== undefined) return error.retryAfterMs
  const ceiling = Math.min(BACKOFF_MOST_MS, BACKOFF_FIRST_MS * 2 ** attempts)
  return Math.round(ceiling / 2 + (Math.random() * ceiling) / 2)
}

/**
 * Serves one dataset's queue; nothing else takes jobs. A job is complete when its rows are stored. A transient failure
 * is tried again, any other makes the job a dead letter at once.
 */
export function createRunner(job: Job, context: RunnerContext): Worker<JobPayload, JobReport> {
  const collectors = job.connect(context)
  const { prefix } = context.config.redis
  const { lockMs, checkMs } = context.takeover ?? TAKEOVER
  const serve = (queued: QueuedJob<JobPayload, JobReport>, token?: string) =>
    serveJob({ job, collectors, context }, queued, token)
  const worker = new Worker<JobPayload, JobReport>(job.name, serve, {
    connection: context.blocking,
    prefix: toQueuePrefix(prefix, job.name),
    concurrency: context.config.worker.concurrency,
    // Another worker takes over the jobs of a killed one, however often that happens.
    maxStalledCount: 100,
    lockDuration: lockMs,
    stalledInterval: checkMs,
    settings: { backoffStrategy: (attempts, _type, error) => toBackoff(attempts, error) },
  })
  context.metrics?.observe(job.name, worker)
  const log = context.log.child({ dataset: job.name })
  worker.on('completed', (queued, report) => log.info({ job: queued.id, ...report, ...toJobLogFields(queued) }, 'done'))
  worker.on('failed', (queued, error) => {
    const final = queued === undefined || queued.finishedOn !== undefined
    const told = { job: queued?.id, attempt: queued?.attemptsMade, reason: error.message, ...toJobLogFields(queued) }
    log[final ? 'error' : 'warn'](told, final ? 'failed for good' : 'will be tried again')
  })
  worker.on('error', (error) => log.warn({ reason: error.message }, 'queue connection'))
  return worker
}

interface Serving {
  job: Job
  collectors: readonly Collector[]
  context: RunnerContext
}

const NOTHING: JobReport = { rows: 0, rejected: 0, uncovered: 0, providers: [] }

async function serveJob(
  serving: Serving,
  queued: QueuedJob<JobPayload, JobReport>,
  token: string | undefined,
): Promise<JobReport> {
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
    if (error instanceof DataError && error.code === 'storage') context.metrics?.storageFailed(job.name)
    if (isTransient(error)) throw error
    throw new UnrecoverableError(toReason(error))
  }
}

async function attempt(
  { job, collectors, context }: Serving,
  queued: QueuedJob<JobPayload, JobReport>,
): Promise<JobReport> {
  // A job that was handed back may come to this worker once more before its queue stops taking jobs.
  context.handBack?.throwIfAborted()
  // An earlier attempt may have stored rows and died before it published that.
  if (queued.attemptsStarted > 1) await announce(job.dataset, context)
  const payload = parsePayload(job, queued.data)
  notePayload(payload)
  if (payload.kind === 'slot' && isLate(job, payload.slot, context.now())) {
    const slot = new Date(payload.slot).toISOString()
    context.log.warn(
      { dataset: job.name, slot },
      'a slot came too late: it is collected from history where there is any',
    )
    return NOTHING
  }
  try {
    return await runJob(job, collectors, context, payload)
  } catch (error) {
    // What came is stored: the next attempt is only about those who are still without an answer.
    if (error instanceof PendingError) await queued.updateData({ ...payload, entities: [...error.entities] })
    throw toClean(error, context.redact)
  }
}

/** The same failure without secrets, which a provider may have repeated in its answer. */
function toClean(error: unknown, redact: (text: string) => string = (text) => text): unknown {
  if (!(error instanceof DataError) || redact(error.message) === error.message) return error
  return new DataError(error.code, redact(error.message), { retryAfterMs: error.retryAfterMs })
}
