import { z } from 'zod'
import type { Dataset } from '../datasets/define-dataset.ts'
import { groupBy } from '../group-by.ts'
import { type Cadence, END_OF_TIME, INTERVAL_SECONDS } from '../intervals.ts'
import { LANES, type Lane } from '../queue/lanes.ts'
import type { Database } from '../store/clickhouse.ts'
import { type Buckets, toBucket, totalBuckets, toYear } from './grid.ts'

/** The members of a dataset that identify its coverage. */
export type Covered = Pick<Dataset, 'name' | 'cadence'>

/**
 * Buckets of an entity that a provider served at a step of `seconds`: their rows are stored, or they are known to be
 * empty. `entity` is the key in ClickHouse.
 */
export interface Report extends Buckets {
  readonly entity: number
  readonly state: 'stored' | 'nothing'
  readonly provider: string
  readonly seconds: number
}

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
function toYears({ first, last }: Buckets, cadence: Cadence): Buckets[] {
  const cuts: Buckets[] = []
  for (let at = first; at <= last; ) {
    const end = Math.min(last, toBucket(Date.UTC(toYear(at, cadence) + 1, 0) - 1, cadence))
    cuts.push({ first: at, last: end })
    at = end + 1
  }
  return cuts
}

/** Groups rows by dataset name. */
export function groupByDataset<R extends { readonly dataset: string }>(rows: readonly R[]): Map<string, R[]> {
  return groupBy(rows, ({ dataset }) => dataset)
}

const span = z.object({
  entity: z.number(),
  state: z.enum(['stored', 'nothing']),
  provider: z.string(),
  seconds: z.int(),
  first: z.int(),
  last: z.int(),
})

/** SQL that turns sorted numbers into tuples of the first and last number of each run. */
export const RUNS = (numbers: string) =>
  `arrayMap(run -> (run[1], run[-1]), arraySplit((number, step) -> step > 1, ${numbers}, arrayDifference(${numbers})))`

/** More keys are too long for a parameter; the statement then reads all entities. */
const MOST_NAMED = 2000

/** A condition on the entities and its parameter. */
export const toEntityFilter = (entities: readonly number[]) =>
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
 * Limit on the buckets unpacked at once to find missing ones. Years at 5 minutes take 10 MB per entity, and several
 * hundred such entities would exceed the memory limit of a statement.
 */
const MAX_UNPACKED_BUCKETS = 16_000_000
/** ClickHouse's default block size. */
const MAX_BLOCK_ENTITIES = 65_409

const missing = z.object({ entity: z.number(), runs: z.array(z.tuple([z.int(), z.int()])) })

/**
 * Returns the runs of buckets that are unknown at a step of at most `seconds`, by entity key: neither stored nor known
 * to be empty. Entities without missing buckets are not in the result.
 */
export async function readMissing(
  db: Database,
  dataset: Covered,
  entities: readonly number[],
  { expected, seconds }: { readonly expected: readonly Buckets[]; readonly seconds: number },
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

const newest = z.object({ entity: z.number(), provider: z.string(), last: z.int() })

/** The newest stored bucket of each entity and provider. */
export async function readNewestStored(
  db: Database,
  dataset: Covered,
): Promise<readonly { entity: number; provider: string; last: number }[]> {
  return db.rows({
    name: 'coverage-newest',
    sql: `SELECT entity, toString(provider) AS provider, bitmapMax(groupBitmapMergeState(buckets)) AS last
FROM coverage
WHERE dataset = {dataset: String} AND state = 'stored'
GROUP BY entity, provider`,
    params: { dataset: dataset.name },
    schema: newest,
  })
}

/** The end of a note that is still true. */
export const OPEN_END = END_OF_TIME

/**
 * Why buckets of an entity are not stored, or only at a coarser step, from `from` on up to `to`; times are Unix
 * milliseconds. `since` is when the first of its `tries` was made, and nothing is asked again before `nextTry`, unless
 * the settings of the providers have changed since the note was written. `coarser` in the `live` lane says that a stored
 * bucket lacks elements of the provider's answer. `pending` says that the provider has nothing yet,
 * of a time of which it may not have all.
 */
export interface Note {
  readonly entity: number
  readonly lane: Lane
  readonly from: number
  readonly to: number
  readonly state: 'coarser' | 'failed' | 'unserved' | 'pending'
  readonly provider: string
  readonly reason: string
  readonly since: number
  readonly tries: number
  readonly nextTry: number
}

/** A note with the engine's time at which it was written, in Unix milliseconds. */
export type StoredNote = Note & { readonly writtenAt: number }

/** Whether a note is about a missed range: it was not collected in time, and no provider has it any more. It has no tries. */
export const isMissed = ({ state, tries }: Pick<Note, 'state' | 'tries'>): boolean =>
  state === 'unserved' && tries === 0

const stored = z.object({
  entity: z.number(),
  lane: z.enum(LANES),
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

const toMs = (column: string) => `toUnixTimestamp64Milli(${column})`

const NOTES = `SELECT dataset, entity, toString(lane) AS lane, ${toMs('begins_at')} AS from, ${toMs('ends_at')} AS to, toString(state) AS state,
  toString(provider) AS provider, reason, ${toMs('since')} AS since, tries, ${toMs('next_try_at')} AS nextTry,
  ${toMs('written_at')} AS writtenAt
FROM coverage_notes FINAL`

/** The notes of some entities that are about any time of a range, the one that was written last first. */
export async function readNotes(
  db: Database,
  dataset: Pick<Covered, 'name'>,
  entities: readonly number[],
  { from, to }: { readonly from: number; readonly to: number },
): Promise<StoredNote[]> {
  const named = toEntityFilter(entities)
  const found = await db.rows({
    name: 'coverage-notes',
    sql: `${NOTES}
WHERE dataset = {dataset: String} AND ${named.sql}
  AND ${toMs('begins_at')} < {to: Int64} AND ${toMs('ends_at')} > {from: Int64}
ORDER BY written_at DESC`,
    params: { dataset: dataset.name, ...named.params, from, to },
    schema: stored,
  })
  const requested = new Set(entities)
  return found.filter(({ entity }) => requested.has(entity))
}

/** The notes of slots that entities of any dataset miss now, by the dataset's name. */
export async function readOpenNotes(db: Database): Promise<ReadonlyMap<string, Note[]>> {
  const rows = await db.rows({
    name: 'coverage-notes-open',
    sql: `${NOTES} WHERE lane = 'live' AND ${toMs('ends_at')} = {open: Int64}`,
    params: { open: OPEN_END },
    schema: stored.extend({ dataset: z.string() }),
  })
  return groupByDataset(rows)
}

const toText = (ms: number) => new Date(ms).toISOString()

/** Writes notes; one that has the same beginning as an older one of the same entity and lane takes its place. */
export async function writeNotes(db: Database, dataset: Pick<Covered, 'name'>, notes: readonly Note[]): Promise<void> {
  if (notes.length === 0) return
  // Member by member: a note that was read has its time of writing beside.
  const rows = notes.map(({ entity, lane, from, to, state, provider, reason, since, tries, nextTry }) => ({
    dataset: dataset.name,
    entity,
    lane,
    state,
    provider,
    reason,
    tries,
    begins_at: toText(from),
    ends_at: toText(to),
    since: toText(since),
    next_try_at: toText(nextTry),
  }))
  await db.insert({ table: 'coverage_notes', rows })
}
