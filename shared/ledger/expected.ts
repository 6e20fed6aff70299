import { z } from 'zod'
import { type Buckets, toBuckets, toDueEnd, union } from '../buckets.ts'
import { groupBy } from '../group-by.ts'
import { END_OF_TIME, INTERVAL_SECONDS } from '../intervals.ts'
import { ALL_ENTITIES, type Entity } from '../registry/entities.ts'
import type { Database } from '../store/store.ts'
import { readMissing } from './tables.ts'
import type { ExpectedQuery, ExpectedRange, Lacking, LedgerDataset, Missing, NewExpectedRange } from './types.ts'

const stored = z.object({ entity: z.number(), from: z.int(), to: z.int(), seconds: z.int(), requestedAt: z.int() })

const SELECT_EXPECTED = `SELECT dataset, entity, toUnixTimestamp64Milli(begins_at) AS from, toUnixTimestamp64Milli(ends_at) AS to,
  interval_seconds AS seconds, toUnixTimestamp64Milli(asked_at) AS requestedAt
FROM coverage_wanted FINAL`

/** See `Ledger.expected`. */
export async function readExpected(db: Database, dataset: Pick<LedgerDataset, 'name'>): Promise<ExpectedRange[]> {
  return db.rows({
    name: 'coverage-wanted',
    sql: `${SELECT_EXPECTED} WHERE dataset = {dataset: String} ORDER BY from`,
    params: { dataset: dataset.name },
    schema: stored,
  })
}

/** The expected ranges of all datasets, by dataset name. */
export async function readAllExpected(db: Database): Promise<ReadonlyMap<string, ExpectedRange[]>> {
  const rows = await db.rows({
    name: 'coverage-wanted-of-all',
    sql: `${SELECT_EXPECTED} ORDER BY from`,
    schema: stored.extend({ dataset: z.string() }),
  })
  return groupBy(rows, ({ dataset }) => dataset)
}

/** See `Ledger.expect`. */
export async function recordExpected(
  db: Database,
  dataset: Pick<LedgerDataset, 'name'>,
  ranges: readonly NewExpectedRange[],
): Promise<void> {
  if (ranges.length === 0) return
  const rows = ranges.map(({ entity, from, to = END_OF_TIME, interval }) => ({
    dataset: dataset.name,
    entity,
    begins_at: new Date(from).toISOString(),
    ends_at: new Date(to).toISOString(),
    interval_seconds: INTERVAL_SECONDS[interval],
  }))
  await db.insert({ table: 'coverage_wanted', rows })
}

/**
 * Groups entities with the same expected ranges. An entity with an individual range has a separate group; the others
 * are grouped by their end.
 */
export function groupByExpected(
  entities: readonly Entity[],
  expected: readonly ExpectedRange[],
): [Entity, ...Entity[]][] {
  const named = new Set(expected.map(({ entity }) => entity))
  const groups = groupBy(entities, ({ key, until }) => (named.has(key) ? `of ${key}` : `until ${until}`))
  return [...groups.values()] as [Entity, ...Entity[]][]
}

/**
 * Returns a function that finds the expected ranges of an entity by its key: the dataset's and its own ones, earliest
 * first.
 */
export function createExpectedFinder(expected: readonly ExpectedRange[]): (key: number) => readonly ExpectedRange[] {
  const byEntity = groupBy(expected, ({ entity }) => entity)
  const everybody = byEntity.get(ALL_ENTITIES) ?? []
  return (key) => {
    const own = byEntity.get(key)
    return own === undefined ? everybody : [...everybody, ...own].sort((a, b) => a.from - b.from)
  }
}

/** The expected buckets of an entity before `until` (Unix milliseconds) and before its end, as sorted runs. */
export function toExpectedRuns(
  expected: readonly ExpectedRange[],
  entity: Pick<Entity, 'key' | 'until'>,
  { cadence }: Pick<LedgerDataset, 'cadence'>,
  until: number,
): readonly Buckets[] {
  const own = expected.filter((one) => one.entity === ALL_ENTITIES || one.entity === entity.key)
  const end = Math.min(until, entity.until ?? END_OF_TIME)
  return union(
    own.flatMap(({ from, to }) => {
      const buckets = toBuckets({ from, to: Math.min(to, end) }, cadence)
      return buckets === undefined ? [] : [buckets]
    }),
  )
}

/** Groups entities with the same expected and due buckets, optionally within a part of the time. */
export function groupByExpectedRuns(
  dataset: Pick<LedgerDataset, 'cadence' | 'hasOwnTimes' | 'computedFrom' | 'resumes' | 'hasHistory'>,
  entities: readonly Entity[],
  ranges: readonly ExpectedRange[],
  { within: { from, to } = { from: 0, to: END_OF_TIME }, now }: Pick<ExpectedQuery, 'within' | 'now'>,
): Lacking[] {
  const until = Math.min(to, toDueEnd(dataset, now))
  const begin = toBuckets({ from, to: END_OF_TIME }, dataset.cadence)?.first ?? 0
  const groups = new Map<string, { entities: Entity[]; runs: readonly Buckets[] }>()
  for (const group of groupByExpected(entities, ranges)) {
    const all = toExpectedRuns(ranges, group[0], dataset, until)
    const runs = all.flatMap((run) => (run.last < begin ? [] : [{ ...run, first: Math.max(run.first, begin) }]))
    const groupKey = JSON.stringify(runs)
    const same = groups.get(groupKey)
    if (same === undefined) groups.set(groupKey, { entities: group, runs })
    else for (const entity of group) same.entities.push(entity)
  }
  return [...groups.values()]
}

/** See `Ledger.missingExpected`. */
export async function findMissingExpected(
  db: Database,
  dataset: LedgerDataset,
  entities: readonly Entity[],
  { ranges, seconds, ...query }: ExpectedQuery,
): Promise<Missing[]> {
  const found = new Map<number, readonly Buckets[]>()
  const expected = ranges ?? (await readExpected(db, dataset))
  for (const group of groupByExpectedRuns(dataset, entities, expected, query)) {
    const keys = group.entities.map(({ key }) => key)
    const missing = await readMissing(db, dataset, keys, { expected: group.runs, seconds })
    for (const [key, runs] of missing) found.set(key, runs)
  }
  return entities.flatMap((entity) => {
    const runs = found.get(entity.key)
    return runs === undefined ? [] : [{ entity, runs }]
  })
}
