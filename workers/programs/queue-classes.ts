import { DataError } from '../../shared/errors.ts'
import { CADENCES } from '../../shared/intervals.ts'
import { QUEUE_CLASSES, type QueueClass } from '../../shared/queue/queue-classes.ts'
import type { RegistryPart } from '../../shared/registry/source.ts'
import type { Job } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'

/** The name of the alerts' queues in WORKER_QUEUES. */
const ALERTS = 'alerts'

/** One queue class of a dataset. */
export interface JobQueue {
  readonly job: Job
  readonly queueClass: QueueClass
}

/**
 * Returns the queue classes of a dataset. Datasets without history have no history queue, because it would always be
 * empty.
 */
export const toQueueClasses = ({ history }: Job): readonly QueueClass[] =>
  QUEUE_CLASSES.filter((queueClass) => queueClass === 'live' || history !== undefined)

/**
 * Parses WORKER_QUEUES: `all`, datasets (`prices`), cadences (`5m`) and `alerts`, separated by commas. With the suffix
 * `:live` or `:history`, a name selects only that queue class.
 * @throws DataError `config` for a name that matches no queue.
 */
export function selectQueues(queues: readonly string[]): readonly JobQueue[] {
  const names = ['all', ALERTS, ...CADENCES, ...jobs.map(({ name }) => name)]
  const parsed = queues.map((queue) => {
    const [name = '', queueClass, ...rest] = queue.split(':')
    const isValid =
      names.includes(name) &&
      rest.length === 0 &&
      (queueClass === undefined || QUEUE_CLASSES.some((one) => one === queueClass))
    return { queue, name, queueClass, isValid }
  })
  const unknown = parsed.filter(({ isValid }) => !isValid).map(({ queue }) => queue)
  if (unknown.length > 0) {
    const allowed = `${names.join(', ')}, each alone or with ${QUEUE_CLASSES.map((queueClass) => `:${queueClass}`).join(' or ')}`
    throw new DataError('config', `WORKER_QUEUES: no queue is called ${unknown.join(', ')}; there are ${allowed}`)
  }
  const isSelected = ({ job, queueClass }: JobQueue) =>
    parsed.some(
      (one) =>
        ['all', job.name, job.cadence].includes(one.name) &&
        (one.queueClass === undefined || one.queueClass === queueClass),
    )
  return jobs.flatMap((job) => toQueueClasses(job).map((queueClass) => ({ job, queueClass }))).filter(isSelected)
}

/** Whether a worker for these queues evaluates the rules of alerts and sends their messages. */
export const servesAlerts = (queues: readonly string[]): boolean =>
  queues.some((queue) => queue === 'all' || queue === ALERTS)

/** Returns the part of the registry that a worker for these queues needs. */
export const toRegistryPart = (queues: readonly JobQueue[]): RegistryPart =>
  queues.some(({ job }) => job.dataset.needsDaos) ? 'whole' : 'tokens'
