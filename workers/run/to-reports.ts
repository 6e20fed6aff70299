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

/** What the coverage is told about a run: what its answers were, for what, and when (Unix milliseconds). */
export interface Reported {
  readonly job: Job
  readonly payload: JobPayload
  readonly collected: Collected
  readonly now: number
  /**
   * The bucket since which a provider's reading up to the slot covers an entity; undefined where that is the slot's own.
   * Only of a slot of a job that resumes.
   */
  readonly readSince?: (provider: string, entity: number) => number | undefined
}

/**
 * What a run makes known: the buckets of its rows, each at the step at which it was given; of a range also those in which
 * the provider has nothing, of each entity up to its end; of a job that resumes, everything that its reading goes back to.
 */
export function toReports(reported: Reported): Report[] {
  const stored = reported.collected.given.flatMap((given) =>
    reported.job.resumes ? toReadReports(given, reported) : toRowReports(given, reported),
  )
  return [...stored, ...toEmptyReports(stored, reported)]
}

/** Rows come in the order of their times: mostly a run goes on where the last one ended. */
function add(runs: Buckets[], run: Buckets): void {
  const before = runs.at(-1)
  if (before !== undefined && before.first <= run.first && run.first <= before.last + 1)
    runs[runs.length - 1] = { first: before.first, last: Math.max(before.last, run.last) }
  else runs.push(run)
}

/** Of a row that takes another one back nothing is stored. */
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
    // A row that lags, as of a chain's block, fills the bucket of the slot right after it, and of no other.
    const isOfSlot = slot !== undefined && dataset.lagsBehindSlot === true && at < slot && at >= slot - cadence * 1000
    const time = isOfSlot ? slot : at
    const seconds = steps.find(({ from, to }) => from <= time && time < to)?.seconds ?? asked
    const entity = toEntityKey(job, row)
    const key = `${entity} ${seconds}`
    const own = found.get(key) ?? { entity, seconds, runs: [] }
    found.set(key, own)
    // What a slot gives for a while begins with it; a row of history stands for the whole step that it is in.
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

/** A slot covers everything that its reading goes back to; a range covers itself. */
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
 * The buckets of a range in which the provider that answered has nothing, at the step at which it has that time. Not so the
 * newest ones, which it may not have yet, not where an earlier provider failed that may have more, and not of what is
 * computed, whose inputs may come.
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

/** The parts of a range with the step at which a provider has each: where it says nothing, the one that is asked for. */
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
