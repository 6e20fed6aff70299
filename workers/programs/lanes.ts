import { DataError } from '../../shared/errors.ts'
import { CADENCES } from '../../shared/intervals.ts'
import { LANES, type Lane } from '../../shared/queue/lanes.ts'
import type { RegistryPart } from '../../shared/registry/source.ts'
import type { Job } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'

/** The name of the alerts' queues in WORKER_QUEUES. */
const ALERTS = 'alerts'

/** One queue class of a dataset. */
export interface JobLane {
  readonly job: Job
  readonly lane: Lane
}

/**
 * Returns the queue classes of a dataset. Datasets without history have no history queue, because it would always be
 * empty.
 */
export const toLanes = ({ history }: Job): readonly Lane[] =>
  LANES.filter((lane) => lane === 'live' || history !== undefined)

/**
 * Parses WORKER_QUEUES: `all`, datasets (`prices`), cadences (`5m`) and `alerts`, separated by commas. With the suffix
 * `:live` or `:history`, a name selects only that queue class.
 * @throws DataError `config` for a name that matches no queue.
 */
export function selectLanes(queues: readonly string[]): readonly JobLane[] {
  const names = ['all', ALERTS, ...CADENCES, ...jobs.map(({ name }) => name)]
  const parsed = queues.map((queue) => {
    const [name = '', lane, ...rest] = queue.split(':')
    const isValid =
      names.includes(name) && rest.length === 0 && (lane === undefined || LANES.some((one) => one === lane))
    return { queue, name, lane, isValid }
  })
  const unknown = parsed.filter(({ isValid }) => !isValid).map(({ queue }) => queue)
  if (unknown.length > 0) {
    const allowed = `${names.join(', ')}, each alone or with ${LANES.map((lane) => `:${lane}`).join(' or ')}`
    throw new DataError('config', `WORKER_QUEUES: no queue is called ${unknown.join(', ')}; there are ${allowed}`)
  }
  const isSelected = ({ job, lane }: JobLane) =>
    parsed.some(
      (one) => ['all', job.name, job.cadence].includes(one.name) && (one.lane === undefined || one.lane === lane),
    )
  return jobs.flatMap((job) => toLanes(job).map((lane) => ({ job, lane }))).filter(isSelected)
}

/** Whether a worker for these queues evaluates the rules of alerts and sends their messages. */
export const servesAlerts = (queues: readonly string[]): boolean =>
  queues.some((queue) => queue === 'all' || queue === ALERTS)

/** Returns the part of the registry that a worker for these queues needs. */
export const toRegistryPart = (lanes: readonly JobLane[]): RegistryPart =>
  lanes.some(({ job }) => job.dataset.needsDaos) ? 'whole' : 'tokens'
