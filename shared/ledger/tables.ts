import { z } from 'zod'
import { type Buckets, RUNS, toBucket, totalBuckets, toUnitMs, toUnitTimes, toYear } from '../buckets.ts'
import { groupBy } from '../group-by.ts'
import { type Cadence, END_OF_TIME, INTERVAL_SECONDS, type TimeRange } from '../intervals.ts'
import { QUEUE_CLASSES } from '../queue/queue-classes.ts'
import type { Database } from '../store/store.ts'
import type { Count, LedgerDataset, MissingQuery, Note, Report, StoredNote } from './types.ts'

type Covered = Pick<LedgerDataset, 'name' | 'cadence'>

/** Adds to the coverage; repeats change nothing. Call it only after the rows are stored. */
export async function addCoverage(db: Database, dataset: Covered, reports: readonly Report[]): Promise<void> {
  if (reports.length === 0) return
  const rows = reports.flatMap(({ seconds, ...report }) =>
    toYears(report, dataset.cadence).map((buckets) => ({
      ...report,
      ...buckets,
      dataset: dataset.name,
      cadence_seconds: INTERVAL_SECONDS[dataset.cadence],
      interval_seconds: seconds,
    })),
  )
  await db.insert({ table: 'coverage_in', rows })
}

/** Splits a run at the start of each year, because coverage has one row per entity and year. */
export function toYears({ first, last }: Buckets, cadence: Cadence): Buckets[] {
  const cuts: Buckets[] = []
  for (let at = first; at <= last; ) {
    const end = Math.min(last, toBucket(Date.UTC(toYear(at, cadence) + 1, 0) - 1, cadence))
    cuts.push({ first: at, last: end })
    at = end + 1
  }
  return cuts
}

const span = z.object({
  entity: z.number(),
  state: z.enum(['stored', 'nothing']),
  provider: z.string(),
  seconds: z.int(),
  first: z.int(),
  last: z.int(),
})

/** More keys are too long for a parameter; the statement then reads all entities. */
const MOST_NAMED = 2000

/** A condition on the entities and its parameter. */
const toEntityFilter = (entities: readonly number[]) =>
  entities.length > MOST_NAMED
    ? { sql: '1', params: {} }
    : { sql: 'entity IN {entities: Array(UInt64)}', params: { entities } }

const WITHIN = `dataset = {dataset: String} AND year BETWEEN {firstYear: UInt16} AND {lastYear: UInt16}`

function toParams(dataset: Covered, { first, last }: Buckets) {
  const { name, cadence } = dataset
  return { dataset: name, first, last, firstYear: toYear(first, cadence), lastYear: toYear(last, cadence) }
}

/** Reads the coverage of entities as at most `most` runs. A bucket occurs once per provider and step. */
export async function readCoverage(
  db: Database,
  dataset: Covered,
  entities: readonly number[],
  within: Buckets,
  most = 4_294_967_295,
): Promise<Report[]> {
  const named = toEntityFilter(entities)
  const found = await db.rows({
    name: 'coverage',
    sql: `SELECT entity, toString(state) AS state, toString(provider) AS provider, interval_seconds AS seconds, run.1 AS first, run.2 AS last
FROM
(
  SELECT entity, state, provider, interval_seconds,
    arraySort(bitmapToArray(bitmapSubsetInRange(groupBitmapMergeState(buckets), {first: UInt32}, {last: UInt32} + 1))) AS numbers
  FROM coverage
  WHERE ${WITHIN} AND ${named.sql}
  GROUP BY entity, state, provider, interval_seconds
)
ARRAY JOIN ${RUNS('numbers')} AS run
ORDER BY entity, first
LIMIT {most: UInt32}`,
    params: { ...toParams(dataset, within), ...named.params, most },
    schema: span,
  })
  const requested = new Set(entities)
  return found.filter(({ entity }) => requested.has(entity))
}

/**
 * Limit on the buckets unpacked together to find missing ones. Years at 5 minutes take 10 MB per entity, and several
 * hundred such entities would exceed the memory limit of a statement.
 */
const MAX_UNPACKED_BUCKETS = 16_000_000
/** ClickHouse's default block size. */
const MAX_BLOCK_ENTITIES = 65_409

const missing = z.object({ entity: z.number(), runs: z.array(z.tuple([z.int(), z.int()])) })

/** See `Ledger.missing`. */
export async function readMissing(
  db: Database,
  dataset: Covered,
  entities: readonly number[],
  { expected, seconds }: MissingQuery,
): Promise<Map<number, Buckets[]>> {
  const [begin, end] = [expected[0], expected.at(-1)]
  if (begin === undefined || end === undefined) return new Map()
  const named = toEntityFilter(entities)
  const rows = await db.rows({
    name: 'coverage-missing',
    sql: `WITH bitmapBuild(CAST(arrayFlatten(arrayMap((a, b) -> range(a, b), {from: Array(UInt32)}, {to: Array(UInt32)})), 'Array(UInt32)')) AS expected,
  arraySort(bitmapToArray(bitmapAndnot(expected, groupBitmapMergeState(buckets)))) AS numbers
SELECT entity, ${RUNS('numbers')} AS runs
FROM coverage
WHERE ${WITHIN} AND ${named.sql} AND interval_seconds <= {seconds: UInt32}
GROUP BY entity`,
    params: {
      ...toParams(dataset, { first: begin.first, last: end.last }),
      ...named.params,
      seconds,
      from: expected.map(({ first }) => first),
      to: expected.map(({ last }) => last + 1),
    },
    settings: {
      max_block_size: Math.ceil(Math.min(MAX_BLOCK_ENTITIES, MAX_UNPACKED_BUCKETS / totalBuckets(expected))),
    },
    schema: missing,
  })
  const found = new Map(rows.map(({ entity, runs }) => [entity, runs.map(([first, last]) => ({ first, last }))]))
  return new Map(
    entities.flatMap((entity): [number, readonly Buckets[]][] => {
      const runs = found.get(entity) ?? expected
      return runs.length === 0 ? [] : [[entity, [...runs]]]
    }),
  ) as Map<number, Buckets[]>
}

const count = z.object({ entity: z.number(), stored: z.int(), nothing: z.int(), coarser: z.int() })

/** See `Ledger.count`. */
export async function countCovered(
  db: Database,
  dataset: Covered,
  entities: readonly number[],
  { within, seconds }: { readonly within: Buckets; readonly seconds: number },
): Promise<Count[]> {
  const named = toEntityFilter(entities)
  const found = await db.rows({
    name: 'coverage-known',
    sql: `WITH bitmapSubsetInRange(groupBitmapMergeStateIf(buckets, state = 'stored' AND interval_seconds <= {seconds: UInt32}), {first: UInt32}, {last: UInt32} + 1) AS had,
  bitmapSubsetInRange(groupBitmapMergeStateIf(buckets, interval_seconds <= {seconds: UInt32}), {first: UInt32}, {last: UInt32} + 1) AS known,
  bitmapSubsetInRange(groupBitmapMergeStateIf(buckets, state = 'stored'), {first: UInt32}, {last: UInt32} + 1) AS stored_at_all
SELECT entity, bitmapCardinality(had) AS stored, bitmapAndnotCardinality(known, had) AS nothing,
  bitmapAndnotCardinality(stored_at_all, known) AS coarser
FROM coverage
WHERE dataset = {dataset: String} AND year BETWEEN {firstYear: UInt16} AND {lastYear: UInt16} AND ${named.sql}
GROUP BY entity`,
    params: {
      dataset: dataset.name,
      ...named.params,
      seconds: Math.max(seconds, INTERVAL_SECONDS[dataset.cadence]),
      ...within,
      firstYear: toYear(within.first, dataset.cadence),
      lastYear: toYear(within.last, dataset.cadence),
    },
    schema: count,
  })
  const requested = new Set(entities)
  return found.filter(({ entity }) => requested.has(entity))
}

const storedNote = z.object({
  entity: z.number(),
  queueClass: z.enum(QUEUE_CLASSES),
  from: z.int(),
  to: z.int(),
  state: z.enum(['coarser', 'failed', 'unserved', 'pending']),
  provider: z.string(),
  reason: z.string(),
  since: z.int(),
  tries: z.int(),
  nextTry: z.int(),
  writtenAt: z.int(),
})

/** The table stores missed buckets as unserved ones without a try. */
const fromStored = <N extends Pick<z.infer<typeof storedNote>, 'state' | 'tries'>>(note: N) => ({
  ...note,
  state: note.state === 'unserved' && note.tries === 0 ? ('missed' as const) : note.state,
})

const toMs = (column: string) => `toUnixTimestamp64Milli(${column})`

const NOTES = `SELECT dataset, entity, toString(lane) AS queueClass, ${toMs('begins_at')} AS from, ${toMs('ends_at')} AS to, toString(state) AS state,
  toString(provider) AS provider, reason, ${toMs('since')} AS since, tries, ${toMs('next_try_at')} AS nextTry,
  ${toMs('written_at')} AS writtenAt
FROM coverage_notes FINAL`

/** See `Ledger.notes`. */
export async function readNotes(
  db: Database,
  dataset: Pick<LedgerDataset, 'name'>,
  entities: readonly number[],
  { from, to }: TimeRange,
): Promise<StoredNote[]> {
  const named = toEntityFilter(entities)
  const found = await db.rows({
    name: 'coverage-notes',
    sql: `${NOTES}
WHERE dataset = {dataset: String} AND ${named.sql}
  AND ${toMs('begins_at')} < {to: Int64} AND ${toMs('ends_at')} > {from: Int64}
ORDER BY written_at DESC`,
    params: { dataset: dataset.name, ...named.params, from, to },
    schema: storedNote,
  })
  const requested = new Set(entities)
  return found.filter(({ entity }) => requested.has(entity)).map(fromStored)
}

/** The notes of the entities of all datasets whose newest slots are missing now, by the dataset's name. */
export async function readOpenNotes(db: Database): Promise<ReadonlyMap<string, Note[]>> {
  const rows = await db.rows({
    name: 'coverage-notes-open',
    sql: `${NOTES} WHERE lane = 'live' AND ${toMs('ends_at')} = {open: Int64}`,
    params: { open: END_OF_TIME },
    schema: storedNote.extend({ dataset: z.string() }),
  })
  return groupBy(rows.map(fromStored), ({ dataset }) => dataset)
}

const toText = (ms: number) => new Date(ms).toISOString()

/** Writes notes. A note replaces the older one of its entity and queue class (column `lane`) with the same start. */
export async function writeNotes(
  db: Database,
  dataset: Pick<LedgerDataset, 'name'>,
  notes: readonly Note[],
): Promise<void> {
  if (notes.length === 0) return
  // Copies the members by name, because a note that was read also has the time at which it was written.
  const rows = notes.map(({ entity, queueClass, from, to, state, provider, reason, since, tries, nextTry }) => ({
    dataset: dataset.name,
    entity,
    lane: queueClass,
    state: state === 'missed' ? 'unserved' : state,
    provider,
    reason,
    tries: state === 'missed' ? 0 : tries,
    begins_at: toText(from),
    ends_at: toText(to),
    since: toText(since),
    next_try_at: toText(nextTry),
  }))
  await db.insert({ table: 'coverage_notes', rows })
}

const toSeconds = (ms: number) => Math.floor(ms / 1000)

/** See `Ledger.noteStored`. */
export async function noteStored(db: Database, computed: Covered, ranges: readonly TimeRange[]): Promise<void> {
  if (ranges.length === 0) return
  const unit = toUnitMs(computed.cadence)
  const [from, to] = [
    ranges.map((range) => toSeconds(Math.floor(range.from / unit) * unit)),
    ranges.map((range) => toSeconds(range.to)),
  ]
  await db.command({
    name: 'note-inputs-stored',
    sql: `INSERT INTO computations (dataset, unit_at, stored_at)
SELECT DISTINCT {dataset: String}, toDateTime(at, 'UTC'), now64(3)
FROM (SELECT arrayJoin(arrayFlatten(arrayMap((a, b) -> range(a, b, {unit: UInt32}), {from: Array(UInt32)}, {to: Array(UInt32)}))) AS at)`,
    params: { dataset: computed.name, unit: toSeconds(unit), from, to },
  })
}

/** See `Ledger.noteComputed`. */
export async function noteComputed(db: Database, computed: Covered, range: TimeRange, readAt: number): Promise<void> {
  const unit = toUnitMs(computed.cadence)
  const complete = { from: Math.ceil(range.from / unit) * unit, to: Math.floor(range.to / unit) * unit }
  const rows = toUnitTimes(complete, computed.cadence).map((at) => ({
    dataset: computed.name,
    unit_at: new Date(at).toISOString(),
    computed_at: new Date(readAt).toISOString(),
  }))
  if (rows.length > 0) await db.insert({ table: 'computations', rows })
}

const due = z.object({ from: z.int() })

/** See `Ledger.dueUnits`. */
export async function readDueUnits(db: Database, computed: Covered, settleMs: number): Promise<TimeRange[]> {
  const unit = toUnitMs(computed.cadence)
  const rows = await db.rows({
    name: 'due-computations',
    sql: `SELECT toUnixTimestamp(unit_at) * 1000 AS from
FROM (SELECT unit_at, max(stored_at) AS stored, max(computed_at) AS computed FROM computations WHERE dataset = {dataset: String} GROUP BY unit_at)
WHERE stored >= computed AND stored < now64(3) - INTERVAL {settle: UInt32} MILLISECOND
ORDER BY unit_at`,
    params: { dataset: computed.name, settle: settleMs },
    schema: due,
  })
  return rows.map(({ from }) => ({ from, to: from + unit }))
}
