import { DataError } from '../../shared/errors.ts'
import { CADENCES } from '../../shared/intervals.ts'
import { LANES, type Lane } from '../../shared/queue/lanes.ts'
import type { RegistryPart } from '../../shared/registry/source.ts'
import type { Job } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'

/** One lane of a dataset. */
export interface JobLane {
  readonly job: Job
  readonly lane: Lane
}

/** The lanes of a dataset. One whose sources have no history has no such lane: nothing would ever be in it. */
export const toLanes = ({ history }: Job): readonly Lane[] =>
  LANES.filter((lane) => lane === 'live' || history !== undefined)

/**
 * The lanes that WORKER_QUEUES names: `all`, datasets (`prices`) and cadences (`5m`), separated by commas; with `:live` or
 * `:history` behind it a name means only that lane.
 * @throws DataError `config` for what names no lane.
 */
export function selectLanes(queues: readonly string[]): readonly JobLane[] {
  const names = ['all', ...CADENCES, ...jobs.map(({ name }) => name)]
  const wanted = queues.map((queue) => {
    const [name = '', lane, ...rest] = queue.split(':')
    const isKnown =
      names.includes(name) && rest.length === 0 && (lane === undefined || LANES.some((one) => one === lane))
    return { queue, name, lane, isKnown }
  })
  const unknown = wanted.filter(({ isKnown }) => !isKnown).map(({ queue }) => queue)
  if (unknown.length > 0) {
    const known = `${names.join(', ')}, each alone or with ${LANES.map((lane) => `:${lane}`).join(' or ')}`
    throw new DataError('config', `WORKER_QUEUES: no queue is called ${unknown.join(', ')}; there are ${known}`)
  }
  const isWanted = ({ job, lane }: JobLane) =>
    wanted.some(
      (one) => ['all', job.name, job.cadence].includes(one.name) && (one.lane === undefined || one.lane === lane),
    )
  return jobs.flatMap((job) => toLanes(job).map((lane) => ({ job, lane }))).filter(isWanted)
}

/** What a worker that serves these lanes has to know of the registry. */
export const toRegistryPart = (lanes: readonly JobLane[]): RegistryPart =>
  lanes.some(({ job }) => job.dataset.needsDaos) ? 'whole' : 'tokens'
