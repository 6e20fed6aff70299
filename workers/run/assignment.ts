import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { JobPayload } from '../../shared/queue/queues.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { CheckedRows, Entity, Job, Peers } from '../job/define-job.ts'
import type { JobState } from '../job/job-state.ts'
import type { Assignment, Redact } from './collect.ts'
import { checkRows, withoutLater } from './rows.ts'

interface Given {
  readonly job: Job
  readonly payload: JobPayload
  readonly entities: readonly Entity[]
  readonly peers: Peers<Entity>
  readonly state: JobState
  readonly signal: AbortSignal
  /** The clock that bounds the times of rows, in Unix milliseconds. */
  readonly now: () => number
  readonly log: Logger
  readonly redact: Redact
  readonly onRejected?: (reason: string, count: number) => void
  readonly confirmation?: Assignment['confirmation']
  readonly onConfirmed?: NonNullable<Assignment['onConfirmed']>
  /** A further check of the rows. */
  checkAgain(provider: string, checked: CheckedRows): CheckedRows
}

/**
 * Earliest time of a slot's rows: they may carry times back to the previous slot. Computed rows may correct earlier
 * ones, so they have no limit.
 */
export const toAnswersFrom = (job: Job, payload: JobPayload): number | undefined =>
  payload.kind === 'slot' && !job.resumes && job.computedFrom.length === 0
    ? payload.slot - INTERVAL_SECONDS[job.cadence] * 1000
    : undefined

/** Returns what a run of a payload collects, and how its rows are checked. */
export function toAssignment({
  job,
  payload,
  entities,
  peers,
  now,
  log,
  onRejected,
  checkAgain,
  ...more
}: Given): Assignment {
  const slot = payload.kind === 'slot' ? payload.slot : payload.from
  return {
    ...more,
    ...(onRejected && { onRejected }),
    entities,
    peers,
    entityColumn: job.dataset.entity,
    slot,
    batch: payload.kind === 'slot' ? payload.piece : undefined,
    range: payload.kind === 'slot' ? undefined : payload,
    answersFrom: toAnswersFrom(job, payload),
    timeColumn: job.dataset.series.time,
    resumes: job.resumes,
    check: (provider, candidates) => {
      const all = checkRows(job.dataset, provider, candidates, { now: now(), log, ...(onRejected && { onRejected }) })
      const checked = payload.kind === 'slot' ? all : { ...all, rows: withoutLater(job.dataset, all.rows, entities) }
      return checkAgain(provider, checked)
    },
  }
}
