import {
  type Buckets,
  intersect,
  subtract,
  toBucket,
  toBuckets,
  toBucketTime,
  toReadEnd,
  toSettledEnd,
  toStepSeconds,
  toTimes,
  union,
} from '../buckets.ts'
import { groupBy } from '../group-by.ts'
import {
  type Cadence,
  DAY_MS,
  END_OF_TIME,
  HOUR_MS,
  INTERVAL_SECONDS,
  type TimeRange,
  toBucketStart,
  toMs,
  toStepStart,
} from '../intervals.ts'
import type { RangePayload } from '../queue/queues.ts'
import { untilEnd } from '../registry/ends.ts'
import { ENTIRE_REGISTRY } from '../registry/entities.ts'
import type { Database } from '../store/store.ts'
import { readExpected } from './expected.ts'
import { addCoverage, readNotes, writeNotes } from './tables.ts'
import type { Answer, CollectedRun, LedgerDataset, Note, ProviderRows, ReadTime, Report, Step } from './types.ts'

/** See `Ledger.record`. */
export async function recordRun(db: Database, dataset: LedgerDataset, collected: CollectedRun): Promise<void> {
  const { payload } = collected
  const run = { ...collected, dataset, begins: await findBegin(db, dataset) }
  const reports = toReports(run)
  await addCoverage(db, dataset, reports)
  const keys = run.answers.map(({ entity }) => entity.key)
  // Includes the notes of the bucket before the slot's, which a note may continue.
  const twoSlots = 2000 * INTERVAL_SECONDS[dataset.cadence]
  const about = payload.kind === 'slot' ? { from: payload.slot - twoSlots, to: END_OF_TIME } : payload
  const before = keys.length === 0 ? [] : await readNotes(db, dataset, keys, about)
  await writeNotes(db, dataset, toNotes({ ...run, reports, before }))
}

/** Finds the first expected bucket of a dataset whose readings always begin at the source's first event. */
async function findBegin(db: Database, dataset: LedgerDataset): Promise<number | undefined> {
  if (!dataset.resumes || dataset.hasHistory) return undefined
  const [first] = await readExpected(db, dataset)
  return first && toBuckets({ from: first.from, to: END_OF_TIME }, dataset.cadence)?.first
}

/** A run, and the facts that decide its coverage. */
export interface RecordedRun extends CollectedRun {
  readonly dataset: LedgerDataset
  /** The first bucket of readings that begin at the source's first event; undefined means the newest bucket. */
  readonly begins?: number | undefined
}

/**
 * Returns the coverage of a run. Rows: their buckets, at the step of the provider. Ranges: also the buckets in which
 * the provider has no data, up to each entity's end. Resuming jobs: everything that the reading covers.
 */
export function toReports(run: RecordedRun): Report[] {
  const stored = run.results.flatMap((result) =>
    run.dataset.resumes ? toReadReports(result, run) : toRowReports(result, run),
  )
  return [...stored, ...toEmptyReports(stored, run)]
}

/** Rows are ordered by time, so a run usually extends the previous one. */
function add(runs: Buckets[], run: Buckets): void {
  const before = runs.at(-1)
  if (before !== undefined && before.first <= run.first && run.first <= before.last + 1)
    runs[runs.length - 1] = { first: before.first, last: Math.max(before.last, run.last) }
  else runs.push(run)
}

const isComputed = ({ computedFrom = [] }: LedgerDataset): boolean => computedFrom.length > 0

/** A retraction stores no data. */
const isRetracted = (row: object) => Reflect.get(row, 'is_retracted') === true

function toRowReports(
  { provider, rows, steps }: ProviderRows,
  { dataset, payload, answers, now }: RecordedRun,
): Report[] {
  const cadence = INTERVAL_SECONDS[dataset.cadence]
  const requestedSeconds = payload.kind === 'range' ? toStepSeconds(payload.interval, dataset.cadence) : cadence
  const end = payload.kind === 'range' ? Math.min(payload.to, now) : END_OF_TIME
  const entities = new Map(answers.map(({ entity }) => [entity.key, entity]))
  const slot = payload.kind === 'slot' ? payload.slot : undefined
  const found = new Map<string, { entity: number; seconds: number; runs: Buckets[] }>()
  for (const row of rows) {
    if (isRetracted(row)) continue
    const at = toMs(String(Reflect.get(row, dataset.series.time)))
    // A lagging row, for example the time of a chain's block, fills only the bucket of the slot right after it.
    const isOfSlot = slot !== undefined && dataset.lagsBehindSlot === true && at < slot && at >= slot - cadence * 1000
    const time = isOfSlot ? slot : at
    const seconds = steps.find(({ from, to }) => from <= time && time < to)?.seconds ?? requestedSeconds
    const entity = toEntityKey(dataset, row)
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

const toEntityKey = ({ entity }: LedgerDataset, row: object): number =>
  entity === undefined ? ENTIRE_REGISTRY.key : Number(Reflect.get(row, entity))

/** Returns the coverage of a resuming job: exactly the buckets that were read. */
function toReadReports({ provider, read }: ProviderRows, run: RecordedRun): Report[] {
  const { dataset, payload, answers } = run
  const seconds = INTERVAL_SECONDS[dataset.cadence]
  const report = (entity: number, buckets: Buckets | undefined): Report[] =>
    buckets === undefined ? [] : [{ entity, state: 'stored', provider, seconds, ...buckets }]
  if (payload.kind === 'slot') return read.flatMap((one) => report(one.entity, toReadBuckets(one, run)))
  const readUpTo = new Map(read.map(({ entity, to }) => [entity, to]))
  return answers
    .filter((answer) => answer.provider === provider && ['rows', 'nothing'].includes(answer.state))
    .flatMap(({ entity }) => {
      const range = untilEnd(payload, entity)
      const end = Math.min(readUpTo.get(entity.key) ?? payload.to, run.now)
      const to = end < range.to ? toBucketStart(end, dataset.cadence) : range.to
      return report(entity.key, toBuckets({ from: payload.from, to }, dataset.cadence))
    })
}

/**
 * Returns the buckets that a reading covers. A bucket that was read in part is not covered: if the cursor is lost or
 * another provider takes over, the next reading need not include the rest. Readings that always begin at the source's
 * first event include it, so they also cover their newest bucket.
 */
function toReadBuckets({ from, to }: ReadTime, { dataset, now, begins }: RecordedRun): Buckets | undefined {
  const end = Math.min(to, now)
  if (from !== undefined) return toBuckets({ from, to: toBucketStart(end, dataset.cadence) }, dataset.cadence)
  const last = toBucket(end, dataset.cadence)
  return { first: Math.min(begins ?? last, last), last }
}

/**
 * Returns the buckets of a range in which the answering provider has no data, at that provider's step. Excluded are the
 * newest buckets, which the provider may not have yet; entities for which an earlier provider failed; and computed
 * datasets, whose inputs may still arrive.
 */
function toEmptyReports(stored: readonly Report[], { dataset, payload, results, answers, now }: RecordedRun): Report[] {
  if (payload.kind !== 'range' || dataset.resumes || isComputed(dataset)) return []
  const { cadence } = dataset
  const stepsOf = new Map(results.map(({ provider, steps }) => [provider, steps]))
  return answers.flatMap(({ entity, state, provider, failure }) => {
    const requested = toBuckets(untilEnd(payload, entity), cadence)
    if (requested === undefined || failure !== undefined || (state !== 'rows' && state !== 'nothing')) return []
    const had = union(stored.filter((report) => report.entity === entity.key))
    const remaining = subtract(requested, had)
    return toStepped(payload, cadence, stepsOf.get(provider) ?? []).flatMap(({ from, to, seconds }) => {
      const settled = toBuckets({ from, to: Math.min(to, toSettledEnd(now, seconds)) }, cadence)
      return intersect(remaining, settled).map((run) => ({
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

/** A run with its coverage reports and the existing notes of its entities. */
interface NotedRun extends RecordedRun {
  readonly reports: readonly Report[]
  readonly before: readonly Note[]
}

/** State of one time range of an entity. */
type NotedRange = TimeRange & Pick<Note, 'state' | 'reason'> & { readonly failure: Answer['failure'] }

const NOT_COMPUTED = 'not all that it is computed from is stored'

const FIRST_PAUSE_MS = 5 * 60_000

/** Returns the notes that a run starts, continues or ends. */
export function toNotes(noted: NotedRun): Note[] {
  const { payload } = noted
  const notesOf = groupBy(noted.before, ({ entity }) => entity)
  return noted.answers.flatMap((answer) => {
    const before = notesOf.get(answer.entity.key) ?? []
    if (payload.kind === 'slot') return toLiveNote(answer, before, payload.slot, noted)
    const notes = toNotedRanges(answer, payload, noted).map((range) =>
      toRangeNote(answer, range, before, payload, noted),
    )
    return [...notes, ...toPartialRangeNote(answer, before, noted)]
  })
}

/**
 * Returns the note of left out elements. The note covers everything that a range stored, because the times of the
 * elements may be unknown.
 */
function toPartialRangeNote(answer: Answer, before: readonly Note[], noted: NotedRun): Note[] {
  const own = union(noted.reports.filter(({ entity, state }) => entity === answer.entity.key && state === 'stored'))
  const [first, last] = [own[0]?.first, own.at(-1)?.last]
  if (first === undefined || last === undefined) return []
  const { from, to } = toTimes({ first, last }, noted.dataset.cadence)
  // A note replaces the one that begins at the same time, which may explain more.
  const isReplacing = before.some((note) => note.queueClass === 'live' && note.from === from && note.to > to)
  return isReplacing ? [] : toPartialNote(answer, before, { first, last }, noted)
}

/**
 * A live note begins at the bucket that the slot fills, or at the bucket where a full reading would start. A note is
 * rewritten only if its reason changes, so an outage is one row. If the job has no history, failed buckets are
 * permanently missing, unless the job resumes from its cursors.
 */
function toLiveNote(answer: Answer, before: readonly Note[], slot: number, { dataset, now, begins }: NotedRun): Note[] {
  if (answer.state === 'put-off') return []
  const { cadence, hasOwnTimes, hasHistory, resumes } = dataset
  const filled = toBucket(hasOwnTimes ? slot - INTERVAL_SECONDS[cadence] * 1000 : toReadEnd(dataset, slot), cadence)
  const open = before.find(({ queueClass, to }) => queueClass === 'live' && to === END_OF_TIME)
  if (answer.state === 'rows' || answer.state === 'nothing') {
    const partial = toPartialNote(answer, before, { first: filled, last: filled }, { dataset, now })
    if (open === undefined) return partial
    const ended = { ...open, to: Math.max(toBucketTime(filled, cadence), open.from + 1) }
    const isMissed = !hasHistory && !resumes && open.state === 'failed'
    const end: Note = isMissed
      ? { ...ended, state: 'missed', tries: 0, reason: `${open.reason}; it has no history` }
      : ended
    // A partial note that begins in the same bucket replaces the open note: that bucket is stored now.
    return partial.some(({ from }) => from === end.from) ? partial : [end, ...partial]
  }
  const { state, provider, reason } = answer
  if (open?.state === state && open.reason === reason) return []
  const since = open?.state === state ? open.since : now
  const tries = (open?.tries ?? 0) + 1
  const { key } = answer.entity
  const from = toBucketTime(Math.min(begins ?? filled, filled), cadence)
  const times = { from: open?.from ?? from, to: END_OF_TIME, since, nextTry: now }
  return [{ entity: key, queueClass: 'live', state, provider, reason, tries, ...times }]
}

/**
 * Returns a note for stored buckets of which elements were left out. If the reason is the same, the note of the buckets
 * before them is continued.
 */
function toPartialNote(
  { entity, provider, omitted: reason }: Answer,
  before: readonly Note[],
  { first, last }: Buckets,
  { dataset, now }: Pick<RecordedRun, 'dataset' | 'now'>,
): Note[] {
  if (reason === '') return []
  const { from, to } = toTimes({ first, last }, dataset.cadence)
  const isContinued = ({ queueClass, state, ...note }: Note) =>
    queueClass === 'live' && state === 'coarser' && note.to === from && note.reason === reason
  const continued = before.find(isContinued)
  const times = { from: continued?.from ?? from, to, since: continued?.since ?? now, nextTry: now }
  return [{ entity: entity.key, queueClass: 'live', state: 'coarser', provider, reason, tries: 1, ...times }]
}

/**
 * Returns the parts of a range that need a note: all of it if no provider answered; otherwise the buckets with a
 * coarser step and the missing buckets. Unfinished buckets and buckets after the entity's end were not requested and
 * get no note.
 */
function toNotedRanges(answer: Answer, payload: RangePayload, { dataset, now, reports }: NotedRun): NotedRange[] {
  const { cadence } = dataset
  const { entity, state, provider, reason, failure } = answer
  const over = { from: payload.from, to: Math.min(payload.to, toBucketTime(toBucket(now, cadence), cadence)) }
  const requested = toBuckets(untilEnd(over, entity), cadence)
  if (requested === undefined || state === 'put-off') return []
  if (state === 'failed' || state === 'unserved') return [{ ...toTimes(requested, cadence), state, reason, failure }]
  const own = reports.filter((report) => report.entity === entity.key)
  const step = toStepSeconds(payload.interval, cadence)
  const coarse = intersect(union(own.filter(({ seconds }) => seconds > step)), requested)
  const remaining = subtract(requested, union(own))
  const gap = { first: remaining[0]?.first ?? 0, last: remaining.at(-1)?.last ?? -1 }
  const why = (fallback: string) => (reason === '' ? fallback : reason)
  return [
    ...coarse.map((run) => ({
      ...toTimes(run, cadence),
      state: 'coarser' as const,
      reason: why(`${provider} has only coarser data`),
      failure,
    })),
    ...(remaining.length === 0 ? [] : [{ ...toTimes(gap, cadence), ...toGapReason(), failure }]),
  ]
  function toGapReason(): Pick<NotedRange, 'state' | 'reason'> {
    if (isComputed(dataset)) return { state: 'unserved', reason: NOT_COMPUTED }
    if (failure !== undefined) return { state: 'failed', reason: why(provider) }
    return { state: 'pending', reason: `${provider} has nothing there yet` }
  }
}

function toRangeNote(
  { entity, provider }: Answer,
  { from, to, state, reason, failure }: NotedRange,
  before: readonly Note[],
  payload: RangePayload,
  { dataset, now }: NotedRun,
): Note {
  const last = before.find((note) => note.queueClass === 'history' && note.from === from && note.state === state)
  // All attempts of one job count as one.
  const tries = last === undefined ? 1 : last.nextTry > now ? last.tries : last.tries + 1
  const seconds = toStepSeconds(payload.interval, dataset.cadence)
  const nextTry = toNextTry({ state, failure }, { now, tries, seconds })
  return {
    entity: entity.key,
    queueClass: 'history',
    from,
    to,
    state,
    provider,
    reason,
    since: last?.since ?? now,
    tries,
    nextTry,
  }
}

/**
 * Returns the time of the next attempt. Failed: growing pauses. Unserved: after a week. Pending: three times until the
 * time is settled. Coarser without a failure: never, because only another provider could have a finer step.
 */
function toNextTry(
  { state, failure }: Pick<NotedRange, 'state' | 'failure'>,
  { now, tries, seconds }: { now: number; tries: number; seconds: number },
): number {
  if (state === 'coarser' && failure === undefined) return END_OF_TIME
  if (state === 'unserved') return now + 7 * DAY_MS
  if (state === 'pending') return now + (now - toSettledEnd(now, seconds)) / 3
  const pause = Math.min(state === 'coarser' ? DAY_MS : 6 * HOUR_MS, FIRST_PAUSE_MS * 2 ** (tries - 1))
  return now + Math.max(pause, failure?.retryAfterMs ?? 0)
}
