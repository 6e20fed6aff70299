import type { Job as QueuedJob } from 'bullmq'
import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { isMain } from '../../shared/process.ts'
import { createProgress } from '../../shared/progress-bar.ts'
import { noteDropped } from '../../shared/queue/dropped.ts'
import { QUEUE_CLASSES, type QueueClass } from '../../shared/queue/queue-classes.ts'
import {
  createQueues,
  type DatasetQueue,
  type JobPayload,
  type JobReport,
  readQueueName,
} from '../../shared/queue/queues.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { jobs } from '../jobs/list.ts'
import { toShortTime, toTable } from '../terminal/text-table.ts'

const ACTIONS = ['list', 'retry', 'drop'] as const
type Action = (typeof ACTIONS)[number]

const STATES = ['failed', 'waiting', 'prioritized', 'delayed', 'active', 'completed'] as const
type State = (typeof STATES)[number]

/**
 * Job states that each action accepts. Active jobs belong to their worker. Only failed jobs, and delayed ones that wait
 * for a retry, can be retried.
 */
const ALLOWED: Readonly<Record<Action, readonly State[]>> = {
  list: STATES,
  retry: ['failed', 'delayed'],
  drop: STATES.filter((state) => state !== 'active'),
}

const HELP = `npm run jobs -- list|retry|drop [options]

Lists or changes jobs of the queues: by default the dead letters, which are jobs that failed permanently, for 14 days.

  list              prints them
  retry             enqueues failed jobs again, with all their attempts; with --state delayed, jobs that wait for their
                    next attempt run now
  drop              removes them. A command that waits for one of them stops waiting. Their ranges are still expected:
                    the scheduler collects them from history, if there is any

  --dataset NAME    only jobs of this dataset: ${jobs.map(({ name }) => name).join(', ')}
  --reason TEXT     only jobs with this text in their reason
  --state STATE     ${STATES.join(', ')} (default: failed)
  --dry-run         prints what would be done and does nothing
  --json
  --help`

/**
 * A job in the output. `at` is the time at which the job failed or finished, or else became active, or else was
 * enqueued, in Unix milliseconds.
 */
export interface ListedJob {
  readonly dataset: string
  readonly queueClass: QueueClass
  readonly id: string
  readonly state: State
  readonly attempts: number
  readonly at: number
  readonly reason: string | null
  readonly payload: JobPayload
}

interface Selection {
  readonly state: State
  readonly reason: string | undefined
}

interface Found {
  readonly job: QueuedJob<JobPayload, JobReport>
  readonly listed: ListedJob
}

export interface Request extends Selection {
  readonly action: Action
  readonly dataset: string | undefined
}

/**
 * Validates the command line.
 * @throws DataError `payload` that lists every mistake.
 */
export function toRequest(
  options: Readonly<Record<'action' | 'dataset' | 'state' | 'reason', string | undefined>> & {
    readonly more?: readonly string[]
  },
): Request {
  const mistakes: string[] = []
  const action = ACTIONS.find((candidate) => candidate === options.action)
  if (action === undefined) mistakes.push(`the action must be one of ${ACTIONS.join(', ')}`)
  // A dataset named without its option must not select, and drop, the jobs of all datasets.
  const { more = [] } = options
  if (more.length > 0) mistakes.push(`${more.join(' ')}: select jobs with --dataset, --state and --reason`)
  const state = STATES.find((candidate) => candidate === (options.state ?? 'failed'))
  if (state === undefined) mistakes.push(`--state ${options.state}: there are ${STATES.join(', ')}`)
  if (options.dataset !== undefined && !jobs.some(({ name }) => name === options.dataset))
    mistakes.push(`--dataset ${options.dataset}: there are ${jobs.map(({ name }) => name).join(', ')}`)
  if (action !== undefined && state !== undefined && !ALLOWED[action].includes(state))
    mistakes.push(`${action} is for jobs that are ${ALLOWED[action].join(', ')}, not ${state}`)
  if (mistakes.length > 0 || action === undefined || state === undefined)
    throw new DataError('payload', mistakes.join('\n'))
  return { action, state, dataset: options.dataset, reason: options.reason }
}

const PAGE = 200

/** Returns the matching jobs of a queue, oldest first. */
export async function findJobs(queue: DatasetQueue, { state, reason }: Selection): Promise<Found[]> {
  const found: Found[] = []
  for (let at = 0; ; at += PAGE) {
    const page = await queue.getJobs([state], at, at + PAGE - 1, true)
    for (const job of page) {
      const listed = toListed(queue, state, job)
      if (reason === undefined || (listed.reason ?? '').includes(reason)) found.push({ job, listed })
    }
    // A short page is not the last one: other processes may have finished or dropped some of its jobs.
    if (page.length === 0) return found
  }
}

function toListed(queue: DatasetQueue, state: State, job: Found['job']): ListedJob {
  return {
    ...readQueueName(queue.name),
    id: String(job.id),
    state,
    attempts: job.attemptsMade,
    at: (state === 'active' ? job.processedOn : job.finishedOn) ?? job.timestamp,
    reason: job.failedReason ?? null,
    payload: job.data,
  }
}

/**
 * Retries or drops jobs one by one.
 * @returns the jobs that failed, with the reason, because a worker or another operator was faster.
 */
export async function applyTo(
  found: readonly Found[],
  action: 'retry' | 'drop',
  onStep: () => void,
): Promise<{ id: string; why: string }[]> {
  const missed: { id: string; why: string }[] = []
  for (const { job, listed } of found) {
    try {
      if (action === 'drop') await job.remove()
      // A delayed job keeps its attempts; only its next attempt starts earlier.
      else if (listed.state === 'delayed') await job.promote()
      else await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
    } catch (error) {
      missed.push({ id: listed.id, why: toReason(error) })
    }
    onStep()
  }
  return missed
}

/** Formats the jobs as a table. */
export function toJobsTable(listed: readonly ListedJob[]): string {
  return toTable(
    ['dataset', 'queue class', 'job', 'state', 'attempts', 'since (UTC)', 'reason'],
    listed.map(({ dataset, queueClass, id, state, attempts, at, reason }) => [
      dataset,
      queueClass,
      id,
      state,
      String(attempts),
      toShortTime(at),
      reason?.split('\n')[0] ?? '',
    ]),
  )
}

/** Returns the ids of the jobs that belong to the queue. */
const toIds = (queue: DatasetQueue, listed: readonly ListedJob[]) => {
  const { dataset, queueClass } = readQueueName(queue.name)
  return listed.filter((job) => job.dataset === dataset && job.queueClass === queueClass).map(({ id }) => id)
}

async function run(request: Request, options: { dryRun: boolean; json: boolean }): Promise<void> {
  const config = loadCommandConfig()
  const redis = createRedis(config.redis.url, createLog('jobs', 'error'))
  await requireRedis(redis)
  const selected = jobs.filter(({ name }) => request.dataset === undefined || name === request.dataset)
  const queues = selected.flatMap(({ name }) => {
    const own = createQueues(name, redis, config.redis.prefix)
    return QUEUE_CLASSES.map((queueClass) => own[queueClass])
  })
  const found = (await Promise.all(queues.map((queue) => findJobs(queue, request)))).flat()
  const listed = found.map((one) => one.listed)
  const { action } = request
  let missed: { id: string; why: string }[] = []
  if (action === 'drop' && !options.dryRun)
    for (const queue of queues) await noteDropped(redis, queue, toIds(queue, listed))
  if (action !== 'list' && !options.dryRun && found.length > 0) {
    const progress = createProgress(action, found.length, process.stderr)
    missed = await applyTo(found, action, () => progress.step())
    progress.stop(`${found.length - missed.length} of ${found.length} jobs`)
  }
  if (options.json) console.log(JSON.stringify({ ...request, dryRun: options.dryRun, jobs: listed, missed }, null, 2))
  else if (listed.length === 0) console.log('none')
  else if (action === 'list' || options.dryRun) console.log(toJobsTable(listed))
  for (const { id, why } of missed) console.error(`${id}: ${why}`)
  await Promise.all(queues.map((queue) => queue.close()))
  redis.disconnect()
  if (missed.length > 0) process.exitCode = 1
}

async function main(): Promise<void> {
  const { values, positionals } = readCommandLine({
    allowPositionals: true,
    options: {
      dataset: { type: 'string' },
      reason: { type: 'string' },
      state: { type: 'string' },
      json: { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const { dataset, reason, state } = values
  await run(toRequest({ action: positionals[0], more: positionals.slice(1), dataset, reason, state }), {
    dryRun: values['dry-run'],
    json: values.json,
  })
}

if (isMain(import.meta.url)) runCommand(main)
