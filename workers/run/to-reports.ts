import {
  type Buckets,
  intersect,
  subtract,
  toBucket,
  toBuckets,
  toSettledEnd,
  toStepSeconds,
  union,
} from '../../shared/coverage/grid.ts'
import type { Report } from '../../shared/coverage/ledger.ts'
import { OPEN_END } from '../../shared/coverage/notes.ts'
import { type Cadence, INTERVAL_SECONDS, toStepStart } from '../../shared/intervals.ts'
import { toMs } from '../../shared/memo.ts'
import type { JobPayload, RangePayload } from '../../shared/queue/queues.ts'
import { untilEnd } from '../../shared/registry/ends.ts'
import { WHOLE_REGISTRY } from '../../shared/registry/entities.ts'
import type { Job } from '../job/define-job.ts'
import type { Collected, Given, Step } from './collect.ts'

/** Input of the coverage reports of a run. `now` is in Unix milliseconds. */
export interface Reported {
  readonly job: Job
  readonly payload: JobPayload
  readonly collected: Collected
  readonly now: number
  /**
   * Returns the first bucket covered by a provider's reading up to the slot; undefined means the slot's own bucket. Set
   * only for slots of resuming jobs.
   */
  readonly readSince?: (provider: string, entity: number) => number | undefined
}

/**
 * Returns the coverage of a run. Rows: their buckets, at the step of the provider. Ranges: also the buckets in which
 * the provider has no data, up to each entity's end. Resuming jobs: everything that the reading covers.
 */
export function toReports(reported: Reported): Report[] {
  const stored = reported.collected.given.flatMap((given) =>
    reported.job.resumes ? toReadReports(given, reported) : toRowReports(given, reported),
  )
  return [...stored, ...toEmptyReports(stored, reported)]
}

/** Rows are ordered by time, so a run usually extends the previous one. */
function add(runs: Buckets[], run: Buckets): void {
  const before = runs.at(-1)
  if (before !== undefined && before.first <= run.first && run.first <= before.last + 1)
    runs[runs.length - 1] = { first: before.first, last: Math.max(before.last, run.last) }
  else runs.push(run)
}

/** A retraction stores no data. */
const isRetracted = (row: object) => Reflect.get(row, 'is_retracted') === true

function toRowReports({ provider, rows, steps }: Given, { job, payload, collected, now }: Reported): Report[] {
  const { dataset } = job
  const cadence = INTERVAL_SECONDS[dataset.cadence]
  const asked = payload.kind === 'range' ? toStepSeconds(payload.interval, dataset.cadence) : cadence
  const end = payload.kind === 'range' ? Math.min(payload.to, now) : OPEN_END
  const entities = new Map(collected.answers.all().map(({ entity }) => [entity.key, entity]))
  const slot = payload.kind === 'slot' ? payload.slot : undefined
  const found = new Map<string, { entity: number; seconds: number; runs: Buckets[] }>()
  for (const row of rows) {
    if (isRetracted(row)) continue
    const at = toMs(String(Reflect.get(row, dataset.series.time)))
    // A lagging row, for example the time of a chain's block, fills only the bucket of the slot right after it.
    const isOfSlot = slot !== undefined && dataset.lagsBehindSlot === true && at < slot && at >= slot - cadence * 1000
    const time = isOfSlot ? slot : at
    const seconds = steps.find(({ from, to }) => from <= time && time < to)?.seconds ?? asked
    const entity = toEntityKey(job, row)
    const key = `${entity} ${seconds}`
    const own = found.get(key) ?? { entity, seconds, runs: [] }
    found.set(key, own)
    // The value of a slot begins at the slot's bucket. A history row covers the whole step that contains it.
    const step = payload.kind === 'slot' ? cadence : seconds
    const first = toBucket(toStepStart(time, step), dataset.cadence)
    const stop = Math.min(end, entities.get(entity)?.until ?? end)
    const last = Math.min(first + seconds / cadence - 1, Math.max(first, toBucket(stop - 1, dataset.cadence)))
    add(own.runs, { first, last })
  }
  return [...found.values()].flatMap(({ entity, seconds, runs }) =>
    union(runs).map((run) => ({ entity, state: 'stored' as const, provider, seconds, ...run })),
  )
}

const toEntityKey = ({ dataset }: Job, row: object): number =>
  dataset.entity === undefined ? WHOLE_REGISTRY.key : Number(Reflect.get(row, dataset.entity))

/** A slot covers everything that its reading goes back to; a range covers exactly itself. */
function toReadReports({ provider, read }: Given, { job, payload, collected, now, readSince }: Reported): Report[] {
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
    const last = toBucket(Math.min(payload.slot, now), cadence)
    return read.map((entity) => report(entity, { first: Math.min(readSince?.(provider, entity) ?? last, last), last }))
  }
  return collected.answers
    .all()
    .filter((answer) => answer.provider === provider && ['rows', 'nothing'].includes(answer.state))
    .flatMap(({ entity }) => {
      const buckets = toBuckets(untilEnd(payload, entity), cadence)
      return buckets === undefined ? [] : [report(entity.key, buckets)]
    })
}

/**
 * Returns the buckets of a range in which the answering provider has no data, at that provider's step. Excluded are the
 * newest buckets, which the provider may not have yet; entities for which an earlier provider failed; and computed
 * datasets, whose inputs may still arrive.
 */
function toEmptyReports(stored: readonly Report[], { job, payload, collected, now }: Reported): Report[] {
  if (payload.kind !== 'range' || job.resumes || job.computedFrom.length > 0) return []
  const { cadence } = job.dataset
  const stepsOf = new Map(collected.given.map(({ provider, steps }) => [provider, steps]))
  return collected.answers.all().flatMap(({ entity, state, provider, failure }) => {
    const asked = toBuckets(untilEnd(payload, entity), cadence)
    if (asked === undefined || failure !== undefined || (state !== 'rows' && state !== 'nothing')) return []
    const had = union(stored.filter((report) => report.entity === entity.key))
    const left = subtract(asked, had)
    return toStepped(payload, cadence, stepsOf.get(provider) ?? []).flatMap(({ from, to, seconds }) => {
      const settled = toBuckets({ from, to: Math.min(to, toSettledEnd(now, seconds)) }, cadence)
      return intersect(left, settled).map((run) => ({
        entity: entity.key,
        state: 'nothing' as const,
        provider,
        seconds,
        ...run,
      }))
    })
  })
}

/** Splits a range by the provider's step; parts without a reported step use the requested one. */
function toStepped(range: RangePayload, cadence: Cadence, steps: readonly Step[]): Step[] {
  const inside = steps
    .map((step) => ({ ...step, from: Math.max(step.from, range.from), to: Math.min(step.to, range.to) }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from)
  const seconds = toStepSeconds(range.interval, cadence)
  let at = range.from
  const parts: Step[] = []
  for (const step of inside) {
    if (at < step.from) parts.push({ from: at, to: step.from, seconds })
    parts.push(step)
    at = Math.max(at, step.to)
  }
  return at < range.to ? [...parts, { from: at, to: range.to, seconds }] : parts
}
