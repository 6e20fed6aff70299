import type { Dataset } from './datasets/define-dataset.ts'
import {
  type Cadence,
  HOUR_MS,
  INTERVAL_SECONDS,
  type Interval,
  type TimeRange,
  toBucketStart,
  toStepStart,
} from './intervals.ts'

/**
 * Buckets of a dataset's coverage by number, both inclusive. Bucket 0 starts at 1970-01-01, and each is a cadence long.
 */
export interface Buckets {
  readonly first: number
  readonly last: number
}

const toStep = (cadence: Cadence) => INTERVAL_SECONDS[cadence] * 1000

export const toBucket = (ms: number, cadence: Cadence): number => Math.floor(ms / toStep(cadence))

/** The start of a bucket, in Unix milliseconds. */
export const toBucketTime = (bucket: number, cadence: Cadence): number => bucket * toStep(cadence)

/** The step in seconds at which a bucket must be known for `interval`: at least the dataset's cadence. */
export const toStepSeconds = (interval: Interval, cadence: Cadence): number =>
  Math.max(INTERVAL_SECONDS[interval], INTERVAL_SECONDS[cadence])

/** Longer than any step, for buckets known at any step. In seconds. */
export const ANY_STEP = 4_294_967_295

/**
 * The time up to which a provider's points at a step of `seconds` are final: a multiple of the step, in Unix
 * milliseconds.
 */
export function toSettledEnd(now: number, seconds: number): number {
  return toStepStart(now - Math.max(HOUR_MS, 2 * seconds * 1000), seconds)
}

/** The year in which a bucket starts; coverage is stored by year. */
export const toYear = (bucket: number, cadence: Cadence): number =>
  new Date(toBucketTime(bucket, cadence)).getUTCFullYear()

/** The buckets that start in a range; undefined if none does. */
export function toBuckets({ from, to }: TimeRange, cadence: Cadence): Buckets | undefined {
  const step = toStep(cadence)
  const [first, last] = [Math.ceil(from / step), Math.ceil(to / step) - 1]
  return first > last ? undefined : { first, last }
}

/** From the first bucket's start to the last one's end. */
export const toTimes = ({ first, last }: Buckets, cadence: Cadence): TimeRange => ({
  from: toBucketTime(first, cadence),
  to: toBucketTime(last + 1, cadence),
})

/** The parts of `minuend` outside the runs, which are sorted and do not overlap. */
export function subtract(minuend: Buckets, runs: readonly Buckets[]): Buckets[] {
  const remaining: Buckets[] = []
  let first = minuend.first
  for (const run of runs) {
    if (run.last < first) continue
    if (run.first > minuend.last) break
    if (run.first > first) remaining.push({ first, last: run.first - 1 })
    first = Math.max(first, run.last + 1)
  }
  return first > minuend.last ? remaining : [...remaining, { first, last: minuend.last }]
}

/** The parts of the runs outside all `removed` ones, which may overlap. */
export function subtractAll(runs: readonly Buckets[], removed: readonly Buckets[]): Buckets[] {
  const joined = union(removed)
  return runs.flatMap((run) => subtract(run, joined))
}

/** The parts of the runs inside `within`. */
export function intersect(runs: readonly Buckets[], within: Buckets | undefined): Buckets[] {
  if (within === undefined) return []
  return runs
    .map(({ first, last }) => ({ first: Math.max(first, within.first), last: Math.min(last, within.last) }))
    .filter(({ first, last }) => first <= last)
}

/** Merges runs that overlap or touch; the result is sorted. */
export function union(runs: readonly Buckets[]): Buckets[] {
  const joined: { first: number; last: number }[] = []
  for (const run of [...runs].sort((a, b) => a.first - b.first)) {
    const before = joined.at(-1)
    if (before !== undefined && run.first <= before.last + 1) before.last = Math.max(before.last, run.last)
    else joined.push({ ...run })
  }
  return joined
}

export const totalBuckets = (runs: readonly Buckets[]): number =>
  runs.reduce((sum, { first, last }) => sum + last - first + 1, 0)

/** SQL that turns sorted numbers into tuples of the first and last number of each run. */
export const RUNS = (numbers: string) =>
  `arrayMap(run -> (run[1], run[-1]), arraySplit((number, step) -> step > 1, ${numbers}, arrayDifference(${numbers})))`

/** The members of a dataset that decide when a bucket is due. */
type Due = Pick<Dataset, 'cadence' | 'hasOwnTimes' | 'computedFrom' | 'resumes' | 'hasHistory'>

/** Slots of jobs that resume are hourly, and a source's newest final data is up to an hour old. */
const READ_DELAY_MS = 2 * HOUR_MS

/**
 * The time before which a slot (Unix milliseconds) has read everything: the slot itself, or for jobs that resume and
 * have history, two hours before it. Their coverage has only buckets that were read to their end.
 */
export const toReadEnd = ({ resumes, hasHistory }: Pick<Due, 'resumes' | 'hasHistory'>, slot: number): number =>
  resumes && hasHistory ? slot - READ_DELAY_MS : slot

/**
 * The end of a dataset's due buckets, in Unix milliseconds. A slot is collected until the next slot begins. The
 * slot fills its own bucket; with `hasOwnTimes` it fills the previous bucket. A computed bucket is due once its inputs are.
 */
export function toDueEnd(dataset: Due, now: number): number {
  return toSlotDueEnd(dataset, toReadEnd(dataset, now))
}

/** The end of the buckets whose slots are over. */
function toSlotDueEnd({ cadence, hasOwnTimes, computedFrom = [] }: Due, now: number): number {
  const current = toBucketStart(now, cadence)
  const own = hasOwnTimes ? current - INTERVAL_SECONDS[cadence] * 1000 : current
  return toBucketStart(Math.min(own, ...computedFrom.map((input) => toDueEnd(input, now))), cadence)
}

/**
 * The end of a series' due buckets, in Unix milliseconds. A bucket is missing if it ends by then and has no
 * observation. A job that resumes reads the events of a slot when the next slot begins, so its buckets are due a slot
 * later.
 */
export function toSeriesDueEnd(dataset: Due, interval: Interval, now: number): number {
  const readUpTo = dataset.resumes ? now - INTERVAL_SECONDS[dataset.cadence] * 1000 : now
  return toBucketStart(toSlotDueEnd(dataset, readUpTo), interval)
}

/** Length of the units in which a computed dataset is recomputed, in milliseconds: an hour, or a longer cadence. */
export const toUnitMs = (cadence: Cadence): number => Math.max(HOUR_MS, INTERVAL_SECONDS[cadence] * 1000)

/** The starts of the units that overlap a range, in Unix milliseconds. */
export function toUnitTimes({ from, to }: TimeRange, cadence: Cadence): number[] {
  const unit = toUnitMs(cadence)
  const first = Math.floor(from / unit)
  return Array.from({ length: Math.max(0, Math.ceil(to / unit) - first) }, (_, at) => (first + at) * unit)
}
