import { z } from 'zod'
import { type Buckets, RUNS, toBucket, totalBuckets, toYear } from '../buckets.ts'
import { type Cadence, INTERVAL_SECONDS } from '../intervals.ts'
import type { Database } from '../store/clickhouse.ts'
import type { Count, LedgerDataset, MissingQuery, Report } from './ledger.ts'

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
function toYears({ first, last }: Buckets, cadence: Cadence): Buckets[] {
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
