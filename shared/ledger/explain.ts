import {
  ANY_STEP,
  type Buckets,
  subtractAll,
  toBucket,
  toBuckets,
  toDueEnd,
  toTimes,
  totalBuckets,
} from '../buckets.ts'
import { NOT_DUE } from '../coverage-gap.ts'
import { groupBy } from '../group-by.ts'
import { END_OF_TIME, INTERVAL_SECONDS } from '../intervals.ts'
import type { Entity } from '../registry/entities.ts'
import type { Database } from '../store/store.ts'
import { groupByExpectedRuns, readExpected, toExpectedRuns } from './expected.ts'
import { readCoverage, readMissing, readNotes } from './tables.ts'
import type {
  ExpectedQuery,
  Explained,
  ExplainedMissing,
  ExplainQuery,
  Lacking,
  LedgerDataset,
  MissingCounts,
  Note,
  Report,
} from './types.ts'

/** See `Ledger.explain`. */
export async function readExplained(
  db: Database,
  dataset: LedgerDataset,
  entities: readonly Entity[],
  { within, now, most, isCollected = () => true }: ExplainQuery,
): Promise<ReadonlyMap<number, Explained[]> | undefined> {
  const keys = entities.map(({ key }) => key)
  const times = toTimes(within, dataset.cadence)
  const [found, notes, ranges] = await Promise.all([
    readCoverage(db, dataset, keys, within, most + 1),
    readNotes(db, dataset, keys, times),
    readExpected(db, dataset),
  ])
  if (found.length > most) return undefined
  // A note that is still valid applies to the slots up to now.
  const until = notes.map((note) => ({ ...note, to: Math.min(note.to, now) }))
  const [reportsOf, notesOf] = [groupBy(found, ofEntity), groupBy(until, ofEntity)]
  const due = toBucket(toDueEnd(dataset, now), dataset.cadence)
  return new Map(
    entities.map((entity) => {
      const coverage = {
        expected: isCollected(entity) ? toExpectedRuns(ranges, entity, dataset, times.to) : [],
        reports: reportsOf.get(entity.key) ?? [],
        notes: notesOf.get(entity.key) ?? [],
        until: entity.until,
      }
      return [entity.key, explain(dataset, coverage, within, due)]
    }),
  )
}

const ofEntity = ({ entity }: { readonly entity: number }) => entity

/** See `Ledger.explainMissing`. */
export async function explainMissing(
  db: Database,
  dataset: LedgerDataset,
  entities: readonly Entity[],
  { ranges, seconds, ...query }: ExpectedQuery,
): Promise<ExplainedMissing[]> {
  const expected = ranges ?? (await readExpected(db, dataset))
  const found: ExplainedMissing[] = []
  for (const group of groupByExpectedRuns(dataset, entities, expected, query))
    for (const one of await explainGroup(db, dataset, group, { seconds, now: query.now })) found.push(one)
  return found
}

async function explainGroup(
  db: Database,
  dataset: LedgerDataset,
  { entities, runs }: Lacking,
  { seconds, now }: Pick<ExpectedQuery, 'seconds' | 'now'>,
): Promise<ExplainedMissing[]> {
  const [first, last] = [runs[0], runs.at(-1)]
  if (first === undefined || last === undefined) return []
  const keys = entities.map(({ key }) => key)
  const unknown = await readMissing(db, dataset, keys, { expected: runs, seconds: ANY_STEP })
  const lacking = seconds === ANY_STEP ? unknown : await readMissing(db, dataset, keys, { expected: runs, seconds })
  const times = toTimes({ first: first.first, last: last.last }, dataset.cadence)
  const notesOf = groupBy(await readNotes(db, dataset, [...lacking.keys()], times), ofEntity)
  const due = toBucket(toDueEnd(dataset, now), dataset.cadence)
  return entities.flatMap((entity) => {
    const [missing, notes] = [unknown.get(entity.key) ?? [], notesOf.get(entity.key) ?? []]
    const coarser = subtractAll(lacking.get(entity.key) ?? [], missing)
    const reason = notes.find(({ state }) => state === 'coarser')?.reason ?? 'the provider has only a longer step'
    return [
      ...explainRuns(dataset, missing, notes, due).map((one) => ({ ...one, entity })),
      ...coarser.map((run) => ({ ...run, entity, state: 'coarser' as const, reason })),
    ]
  })
}

/** Explains runs of an entity that are expected and missing. */
function explainRuns(dataset: LedgerDataset, runs: readonly Buckets[], notes: readonly Note[], due: number) {
  return runs.flatMap((run) =>
    explain(dataset, { expected: runs, reports: [], notes }, run, due).flatMap(({ state, reason, first, last }) =>
      state === 'covered' || state === 'nothing' || state === 'coarser'
        ? []
        : [{ first, last, state, reason: reason ?? '' }],
    ),
  )
}

/** See `Ledger.countMissing`. */
export async function countMissing(
  db: Database,
  dataset: LedgerDataset,
  lacking: readonly Lacking[],
  now: number,
): Promise<MissingCounts> {
  const counts: MissingCounts = { pending: 0, failed: 0, unserved: 0 }
  if (lacking.length === 0) return counts
  const keys = lacking.flatMap(({ entities }) => entities.map(({ key }) => key))
  const notesOf = groupBy(await readNotes(db, dataset, keys, { from: 0, to: END_OF_TIME }), ofEntity)
  const due = toBucket(toDueEnd(dataset, now), dataset.cadence)
  for (const { entities, runs: expected } of lacking) {
    const own = entities.map(({ key }) => key)
    const missing = await readMissing(db, dataset, own, { expected, seconds: ANY_STEP })
    for (const [key, runs] of missing)
      for (const stretch of explainRuns(dataset, runs, notesOf.get(key) ?? [], due))
        counts[stretch.state === 'missed' ? 'unserved' : stretch.state] += totalBuckets([stretch])
  }
  return counts
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
  dataset: Pick<LedgerDataset, 'cadence' | 'hasHistory' | 'resumes'>,
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
  const { until = END_OF_TIME } = coverage
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

/** The reason why data of a time was never requested, and the remedy if there is one. */
function toUnasked({ hasHistory, resumes }: Pick<LedgerDataset, 'hasHistory' | 'resumes'>): string {
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
  const finest = (state: Report['state']) =>
    reports.filter((report) => report.state === state).reduce<Report | undefined>(toFiner, undefined)
  const [stored, nothing] = [finest('stored'), finest('nothing')]
  if (stored !== undefined) {
    const { provider, seconds } = stored
    if (seconds > step) return { state: 'coarser', provider, seconds, reason: notes[0]?.reason || null, since: null }
    const partial = notes.find(({ queueClass, state }) => queueClass === 'live' && state === 'coarser')
    return { state: 'covered', provider, seconds, reason: partial?.reason ?? null, since: null }
  }
  if (nothing !== undefined) {
    const { provider, seconds } = nothing
    return { state: 'nothing', provider, seconds, reason: `${provider} has nothing there`, since: null }
  }
  const missing = (state: Explained['state'], reason: string): RunState => {
    return { state, provider: null, seconds: null, reason, since: null }
  }
  if (endedAt !== undefined) return missing('unserved', `ended on ${new Date(endedAt).toISOString().slice(0, 10)}`)
  // Notes about coarser data are about stored buckets, although their range may include missing ones.
  const note = notes.find(({ state }) => state !== 'coarser')
  if (note !== undefined && note.state !== 'pending')
    return { ...missing(note.state, note.reason), provider: note.provider || null, since: note.since }
  if (!isDue) return missing('pending', NOT_DUE)
  if (note !== undefined) return missing('pending', note.reason)
  if (isExpected) return missing('pending', 'it is going to be collected')
  return missing('unserved', unasked)
}

const toFiner = (a: Report | undefined, b: Report) => (a === undefined || b.seconds < a.seconds ? b : a)

const isSame = (a: RunState, b: RunState) =>
  a.state === b.state &&
  a.provider === b.provider &&
  a.seconds === b.seconds &&
  a.reason === b.reason &&
  a.since === b.since
