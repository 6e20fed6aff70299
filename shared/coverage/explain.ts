import type { Dataset } from '../datasets/define-dataset.ts'
import { INTERVAL_SECONDS } from '../intervals.ts'
import { type Buckets, toBucket, toBuckets } from './grid.ts'
import type { Report } from './ledger.ts'
import { type Note, OPEN_END } from './ledger.ts'
import { NOT_DUE } from './not-due.ts'

export const COVERAGE_STATES = ['covered', 'coarser', 'pending', 'failed', 'unserved'] as const
export type CoverageState = (typeof COVERAGE_STATES)[number]

/** A run of buckets with the same state (docs/contract.md, section 10). `seconds` is the step of the stored rows. */
export interface Explained extends Buckets {
  readonly state: CoverageState
  readonly provider: string | null
  readonly seconds: number | null
  readonly reason: string | null
}

/** Input about one entity. */
export interface EntityCoverage {
  readonly expected: readonly Buckets[]
  readonly reports: readonly Report[]
  /** Newest first, by time of writing. */
  readonly notes: readonly Note[]
  /** The entity's end in Unix milliseconds (exclusive). */
  readonly until?: number | undefined
}

/**
 * Returns the state of every bucket of `within`, as runs without gaps or overlaps. `due` is the first bucket that need
 * not be stored yet. Stored data has precedence over notes, and the finest of several reports wins. The newest note
 * explains a missing bucket. After the entity's end nothing is collected, regardless of notes.
 */
export function explain(
  dataset: Pick<Dataset, 'cadence' | 'hasHistory' | 'resumes'>,
  coverage: EntityCoverage,
  within: Buckets,
  due: number,
): Explained[] {
  const { cadence } = dataset
  const step = INTERVAL_SECONDS[cadence]
  const unasked = toUnasked(dataset)
  const notes = coverage.notes.flatMap((note) => {
    const buckets = toBuckets(note, cadence)
    return buckets === undefined ? [] : [{ note, ...buckets }]
  })
  const { until = OPEN_END } = coverage
  const end = toBucket(until, cadence)
  const edges = [
    ...[...coverage.reports, ...coverage.expected, ...notes].flatMap(({ first, last }) => [first, last + 1]),
    within.first,
    within.last + 1,
    due,
    end,
  ].filter((edge) => edge >= within.first && edge <= within.last + 1)
  const sorted = [...new Set(edges)].sort((a, b) => a - b)
  const stretches: Explained[] = []
  const has = (at: number) => (one: Buckets) => one.first <= at && one.last >= at
  const reports = [...coverage.reports].sort((a, b) => a.first - b.first)
  let [here, next] = [[] as Report[], 0]
  for (const [index, first] of sorted.slice(0, -1).entries()) {
    here = here.filter(({ last }) => last >= first)
    for (let report = reports[next]; report !== undefined && report.first <= first; report = reports[++next])
      if (report.last >= first) here.push(report)
    const own = notes.filter(has(first)).map(({ note }) => note)
    const isExpected = coverage.expected.some(has(first))
    const explained = toState(here, own, {
      step,
      isExpected,
      unasked,
      isDue: first < due,
      endedAt: first < end ? undefined : until,
    })
    const last = (sorted[index + 1] ?? first) - 1
    const before = stretches.at(-1)
    if (before !== undefined && isSame(before, explained)) stretches[stretches.length - 1] = { ...before, last }
    else stretches.push({ first, last, ...explained })
  }
  return stretches
}

/** Reason for missing data of a time without any request for it, and the possible remedy. */
function toUnasked({ hasHistory, resumes }: Pick<Dataset, 'hasHistory' | 'resumes'>): string {
  if (hasHistory) return 'it was not requested: a back-fill collects it'
  if (resumes) return 'before the first slot, whose reading covers the time before it'
  return 'it was not collected at its time, and no provider has its history'
}

/** State of a run apart from its reports and notes. */
interface RunFacts {
  readonly step: number
  readonly isExpected: boolean
  readonly unasked: string
  readonly isDue: boolean
  readonly endedAt: number | undefined
}

type RunState = Omit<Explained, 'first' | 'last'>

function toState(
  reports: readonly Report[],
  notes: readonly Note[],
  { step, isExpected, unasked, isDue, endedAt }: RunFacts,
): RunState {
  const [note] = notes
  const finest = (state: Report['state']) =>
    reports.filter((report) => report.state === state).reduce<Report | undefined>(toFiner, undefined)
  const [stored, nothing] = [finest('stored'), finest('nothing')]
  if (stored !== undefined) {
    const isCoarser = stored.seconds > step
    const { provider, seconds } = stored
    if (isCoarser) return { state: 'coarser', provider, seconds, reason: note?.reason || null }
    const partial = notes.find(({ lane, state }) => lane === 'live' && state === 'coarser')
    return { state: 'covered', provider, seconds, reason: partial?.reason ?? null }
  }
  if (nothing !== undefined) {
    const { provider, seconds } = nothing
    return { state: 'covered', provider, seconds, reason: `${provider} has nothing there` }
  }
  if (endedAt !== undefined) {
    const reason = `ended on ${new Date(endedAt).toISOString().slice(0, 10)}`
    return { state: 'unserved', provider: null, seconds: null, reason }
  }
  if (note?.state === 'failed' || note?.state === 'unserved') {
    const reason = `${note.reason} (since ${new Date(note.since).toISOString()})`
    return { state: note.state, provider: note.provider || null, seconds: null, reason }
  }
  const pending = (reason: string): RunState => ({ state: 'pending', provider: null, seconds: null, reason })
  if (!isDue) return pending(NOT_DUE)
  if (note?.state === 'pending') return pending(note.reason)
  if (isExpected) return pending('it is going to be collected')
  return { state: 'unserved', provider: null, seconds: null, reason: unasked }
}

const toFiner = (a: Report | undefined, b: Report) => (a === undefined || b.seconds < a.seconds ? b : a)

const isSame = (a: RunState, b: RunState) =>
  a.state === b.state && a.provider === b.provider && a.seconds === b.seconds && a.reason === b.reason
