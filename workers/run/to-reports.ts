import {
  type Buckets,
  subtract,
  toBucket,
  toBuckets,
  toSettledEnd,
  toStepSeconds,
  union,
} from '../../shared/coverage/grid.ts'
import type { Report } from '../../shared/coverage/ledger.ts'
import { OPEN_END } from '../../shared/coverage/notes.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { JobPayload } from '../../shared/queue/queues.ts'
import { WHOLE_REGISTRY } from '../../shared/registry/entities.ts'
import type { Job } from '../job/define-job.ts'
import type { Collected, Given } from './collect.ts'

/** What the coverage is told about a run: what its answers were, for what, and when (Unix milliseconds). */
export interface Reported {
  readonly job: Job
  readonly payload: JobPayload
  readonly collected: Collected
  readonly now: number
  /** The newest bucket that was stored of each entity before; only where a job resumes. */
  readonly newest?: ReadonlyMap<number, number>
}

/**
 * What a run makes known: the buckets of its rows, each at the step at which it was given; of a range also those in which
 * the provider has nothing; of a job that resumes, everything since the entity was read before.
 */
export function toReports(reported: Reported): Report[] {
  const stored = reported.collected.given.flatMap((given) =>
    reported.job.resumes ? toReadReports(given, reported) : toRowReports(given, reported),
  )
  return [...stored, ...toEmptyReports(stored, reported)]
}

/** Of a row that takes another one back nothing is stored. */
const isRetracted = (row: object) => Reflect.get(row, 'is_retracted') === true

function toRowReports({ provider, rows, steps }: Given, { job, payload, now }: Reported): Report[] {
  const { dataset } = job
  const cadence = INTERVAL_SECONDS[dataset.cadence]
  const asked = payload.kind === 'range' ? toStepSeconds(payload.interval, dataset.cadence) : cadence
  const end = payload.kind === 'range' ? Math.min(payload.to, now) : OPEN_END
  // Without history only slots fill buckets, each its own: a row may carry a time from just before it, as of a chain's block.
  const slot = payload.kind === 'slot' && job.history === undefined ? payload.slot : undefined
  const found = new Map<string, { entity: number; seconds: number; runs: Buckets[] }>()
  for (const row of rows) {
    if (isRetracted(row)) continue
    const time = slot ?? Date.parse(String(Reflect.get(row, dataset.series.time)))
    const seconds = steps.find(({ from, to }) => from <= time && time < to)?.seconds ?? asked
    const entity = toEntityKey(job, row)
    const key = `${entity} ${seconds}`
    const own = found.get(key) ?? { entity, seconds, runs: [] }
    found.set(key, own)
    // What a slot gives for a while begins with it; a row of history stands for the whole step that it is in.
    const step = payload.kind === 'slot' ? cadence : seconds
    const first = toBucket(Math.floor(time / (step * 1000)) * step * 1000, dataset.cadence)
    const last = Math.min(first + seconds / cadence - 1, Math.max(first, toBucket(end - 1, dataset.cadence)))
    own.runs.push({ first, last })
  }
  return [...found.values()].flatMap(({ entity, seconds, runs }) =>
    union(runs).map((run) => ({ entity, state: 'stored' as const, provider, seconds, ...run })),
  )
}

const toEntityKey = ({ dataset }: Job, row: object): number =>
  dataset.entity === undefined ? WHOLE_REGISTRY.key : Number(Reflect.get(row, dataset.entity))

/** A slot covers everything since the last reading; a range itself. */
function toReadReports({ provider, read }: Given, { job, payload, collected, newest }: Reported): Report[] {
  const { cadence } = job.dataset
  const seconds = INTERVAL_SECONDS[cadence]
  const report = (entity: number, buckets: Buckets): Report => ({
    entity,
    state: 'stored',
    provider,
    seconds,
    ...buckets,
  })
  if (payload.kind === 'slot') {
    const last = toBucket(payload.slot, cadence)
    return read.map((entity) => report(entity, { first: Math.min(newest?.get(entity) ?? last, last), last }))
  }
  const buckets = toBuckets(payload, cadence)
  if (buckets === undefined) return []
  return collected.answers
    .all()
    .filter((answer) => answer.provider === provider && ['rows', 'nothing'].includes(answer.state))
    .map(({ entity }) => report(entity.key, buckets))
}

/**
 * The buckets of a range in which the provider that answered has nothing. Not so the newest ones, which it may not have
 * yet, not where an earlier provider failed that may have more, and not of what is computed, whose inputs may come.
 */
function toEmptyReports(stored: readonly Report[], { job, payload, collected, now }: Reported): Report[] {
  if (payload.kind !== 'range' || job.resumes || job.computedFrom.length > 0) return []
  const { cadence } = job.dataset
  const seconds = toStepSeconds(payload.interval, cadence)
  const asked = toBuckets({ from: payload.from, to: Math.min(payload.to, toSettledEnd(now, cadence)) }, cadence)
  if (asked === undefined) return []
  return collected.answers.all().flatMap(({ entity, state, provider, failure }) => {
    if (failure !== undefined || (state !== 'rows' && state !== 'nothing')) return []
    const had = union(stored.filter((report) => report.entity === entity.key))
    return subtract(asked, had).map((run) => ({
      entity: entity.key,
      state: 'nothing' as const,
      provider,
      seconds,
      ...run,
    }))
  })
}
