import { z } from 'zod'
import { toBucketTime, toReadEnd, totalBuckets } from '../buckets.ts'
import type { DatasetFacts } from '../datasets/define-dataset.ts'
import { groupBy } from '../group-by.ts'
import { END_OF_TIME, INTERVAL_SECONDS } from '../intervals.ts'
import { isThereAt } from '../registry/ends.ts'
import type { Entity } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'
import { type Database, LATE_AFTER_CADENCES } from '../store/store.ts'
import { createExpectedFinder, groupByExpectedRuns, readAllExpected } from './expected.ts'
import { readOpenNotes } from './tables.ts'
import type { Completeness, ExpectedRange, Lacking, Note, OverdueEntity } from './types.ts'

/** Entities of a dataset with the same expected buckets. */
interface Group extends Lacking {
  readonly dataset: DatasetFacts
}

interface Counted {
  readonly stored: number
  readonly nothing: number
  /** The newest stored bucket; 0 without one. */
  readonly newest: number
}

const NO_COVERAGE: Counted = { stored: 0, nothing: 0, newest: 0 }

/** See `Ledgers.completeness`. */
export async function readCompleteness(
  db: Database,
  registry: Registry,
  datasets: readonly DatasetFacts[],
  now: number,
): Promise<ReadonlyMap<string, Completeness>> {
  const [expectedRanges, notes] = await Promise.all([readAllExpected(db), readOpenNotes(db)])
  const groups = datasets.flatMap((dataset) => {
    const ranges = expectedRanges.get(dataset.name) ?? []
    return groupByExpectedRuns(dataset, dataset.entities(registry), ranges, { now }).map((group) => ({
      dataset,
      ...group,
    }))
  })
  const counts = await countStored(db, groups)
  return new Map(
    datasets.map((dataset) => {
      const { name } = dataset
      const own = groups.filter((group) => group.dataset === dataset)
      const notesOf = groupBy(notes.get(name) ?? [], ({ entity }) => entity)
      const expectedOf = createExpectedFinder(expectedRanges.get(name) ?? [])
      const countOf = (key: number) => counts.get(name)?.get(key) ?? NO_COVERAGE
      const coverage = { countOf, now, expectedOf, notesOf: (key: number) => notesOf.get(key) ?? [] }
      return [
        name,
        { ...toCompleteness(dataset, own, coverage), isUnserved: isUnserved(dataset, registry, notes, now) },
      ]
    }),
  )
}

interface CoverageAccess {
  readonly countOf: (key: number) => Counted
  readonly expectedOf: (key: number) => readonly ExpectedRange[]
  readonly notesOf: (key: number) => readonly Note[]
  readonly now: number
}

/** See `Ledgers.unserved`. */
export async function readUnserved(
  db: Database,
  registry: Registry,
  datasets: readonly DatasetFacts[],
  now: number,
): Promise<ReadonlySet<string>> {
  const notes = await readOpenNotes(db)
  return new Set(datasets.filter((dataset) => isUnserved(dataset, registry, notes, now)).map(({ name }) => name))
}

/**
 * Whether the newest slot of every entity is noted as unserved: the provider was never configured or no longer is.
 */
function isUnserved(
  dataset: DatasetFacts,
  registry: Registry,
  notes: ReadonlyMap<string, readonly Note[]>,
  now: number,
): boolean {
  const unserved = new Set(
    notes.get(dataset.name)?.flatMap(({ entity, state }) => (state === 'unserved' ? [entity] : [])) ?? [],
  )
  const there = dataset.entities(registry).filter((entity) => isThereAt(entity, now))
  return there.length > 0 && there.every(({ key }) => unserved.has(key))
}

function toCompleteness(
  dataset: DatasetFacts,
  groups: readonly Group[],
  coverage: CoverageAccess,
): Omit<Completeness, 'isUnserved'> {
  let [expected, stored] = [0, 0]
  const lacking: Lacking[] = []
  const overdue: OverdueEntity[] = []
  let isAnyStored = false
  for (const { entities, runs } of groups) {
    const expectedBuckets = totalBuckets(runs)
    const without: Entity[] = []
    for (const entity of entities) {
      const counted = coverage.countOf(entity.key)
      expected += expectedBuckets - counted.nothing
      stored += counted.stored
      isAnyStored ||= counted.newest > 0
      if (counted.stored + counted.nothing < expectedBuckets) without.push(entity)
      if (isOverdue(dataset, entity, counted, coverage)) overdue.push({ entity, reason: toReasonOf(entity, coverage) })
    }
    if (without.length > 0) lacking.push({ entities: without, runs })
  }
  return { expected, stored, complete: expected > 0 ? stored / expected : isAnyStored ? 1 : 0, lacking, overdue }
}

/** Whether an entity is overdue although a provider serves it. */
function isOverdue(
  dataset: DatasetFacts,
  entity: Entity,
  { newest }: Counted,
  { expectedOf, notesOf, now }: CoverageAccess,
): boolean {
  const collected = expectedOf(entity.key).find(({ to }) => to === END_OF_TIME)
  if (collected === undefined || !isThereAt(entity, now)) return false
  if (notesOf(entity.key).some(({ state }) => state === 'unserved')) return false
  const cadence = INTERVAL_SECONDS[dataset.cadence] * 1000
  // If the rows, or the rows they are computed from, have their own times, a bucket is filled by the slot after it.
  const { hasOwnTimes, computedFrom = [] } = dataset
  const isOfNextSlot =
    hasOwnTimes || computedFrom.some((input) => input.hasOwnTimes && input.cadence === dataset.cadence)
  const slot = toBucketTime(newest, dataset.cadence) + (isOfNextSlot ? cadence : 0)
  const since = newest === 0 ? Math.max(collected.requestedAt, collected.from) : slot
  return toReadEnd(dataset, now) - since > LATE_AFTER_CADENCES * cadence
}

const toReasonOf = ({ key }: Entity, { notesOf }: CoverageAccess): string | null => notesOf(key)[0]?.reason ?? null

/**
 * One row per distinct count, which most entities share. One row per entity would be half a million rows for 100,000
 * tokens.
 */
const counted = z.object({
  dataset: z.string(),
  stored: z.int(),
  nothing: z.int(),
  newest: z.int(),
  entities: z.array(z.number()),
})

/** By dataset name and entity key. Entities without coverage are missing. */
type Counts = ReadonlyMap<string, ReadonlyMap<number, Counted>>

/** Key of the group of all entities that no other group lists. */
const LARGEST_GROUP = 0

/**
 * The keys that select each group. The largest group of a dataset needs none, so no parameter grows with the registry.
 */
function toKeys(groups: readonly Group[]): number[][] {
  const largest = new Map<string, Group>()
  for (const group of groups) {
    const before = largest.get(group.dataset.name)
    if (before === undefined || before.entities.length < group.entities.length) largest.set(group.dataset.name, group)
  }
  return groups.map((group) => {
    return largest.get(group.dataset.name) === group ? [LARGEST_GROUP] : group.entities.map(({ key }) => key)
  })
}

const NAMED = 'ARRAY JOIN {datasets: Array(String)} AS dataset, {keys: Array(Array(UInt64))} AS keys'

/** Counts the stored and empty buckets among the expected ones of each entity, in one statement for all datasets. */
async function countStored(db: Database, groups: readonly Group[]): Promise<Counts> {
  if (groups.length === 0) return new Map()
  const rows = await db.rows({
    name: 'completeness',
    sql: `SELECT dataset, bitmapAndCardinality(had, expected) AS stored,
  bitmapAndCardinality(known, expected) - stored AS nothing, newest, groupArray(entity) AS entities
FROM
(
  SELECT *, if((dataset, entity) IN (SELECT dataset, arrayJoin(keys) FROM (SELECT 1) ${NAMED}), entity, ${LARGEST_GROUP}) AS place
  FROM
  (
    SELECT dataset, entity, groupBitmapMergeStateIf(buckets, state = 'stored') AS had, groupBitmapMergeState(buckets) AS known,
      if(bitmapCardinality(had) = 0, 0, bitmapMax(had)) AS newest
    FROM coverage
    WHERE dataset IN {datasets: Array(String)}
    GROUP BY dataset, entity
  )
) AS found
INNER JOIN
(
  SELECT dataset, arrayJoin(keys) AS place, expected
  FROM
  (
    SELECT dataset, keys, bitmapBuild(arrayFlatten(arrayMap((a, b) -> range(a, b), begins, ends))) AS expected
    FROM (SELECT 1) ${NAMED}, {from: Array(Array(UInt32))} AS begins, {to: Array(Array(UInt32))} AS ends
  )
) AS wanted
USING (dataset, place)
GROUP BY dataset, stored, nothing, newest`,
    params: {
      datasets: groups.map(({ dataset }) => dataset.name),
      keys: toKeys(groups),
      from: groups.map(({ runs }) => runs.map(({ first }) => first)),
      to: groups.map(({ runs }) => runs.map(({ last }) => last + 1)),
    },
    schema: counted,
  })
  const counts = new Map(groups.map(({ dataset }) => [dataset.name, new Map<number, Counted>()]))
  for (const { dataset, entities, ...count } of rows) {
    const own = counts.get(dataset)
    for (const entity of entities) own?.set(entity, count)
  }
  return counts
}
