import { z } from 'zod'
import type { DatasetFacts } from '../datasets/list.ts'
import { groupBy } from '../group-by.ts'
import { INTERVAL_SECONDS } from '../intervals.ts'
import { isThereAt } from '../registry/ends.ts'
import type { Entity } from '../registry/entities.ts'
import type { Registry } from '../registry/registry.ts'
import type { Database } from '../store/clickhouse.ts'
import { LATE_AFTER_CADENCES } from '../store/freshness.ts'
import { type Buckets, toBucketTime, totalBuckets } from './grid.ts'
import { type Note, OPEN_END, readOpenNotes } from './ledger.ts'
import { createWantedFinder, groupByWanted, readEveryWanted, toDueEnd, toWantedRuns, type Wanted } from './wanted.ts'

/** An entity that slots have lost: its newest bucket that is stored is more than 1.5 cadences old. */
export interface Lost {
  readonly entity: Entity
  /** Why, as the newest try said; null where nobody has said anything. */
  readonly reason: string | null
}

/** Entities of whom something is not known of the same buckets. */
export interface Lacking {
  readonly entities: readonly Entity[]
  readonly runs: readonly Buckets[]
}

/** What there is of a dataset up to now; counts are of buckets over all its entities. */
export interface Completeness {
  /** What is wanted and due, without what is known to be nothing. */
  readonly expected: number
  /** How many of these are stored, at any step. */
  readonly stored: number
  /** The share of `expected` that is stored, 0 to 1; 0 where nothing is stored. */
  readonly complete: number
  /** Those of whom not all is known that is expected of them. */
  readonly lacking: readonly Lacking[]
  /** Entities that are served by some provider, and whose newest slots are missing all the same. */
  readonly lost: readonly Lost[]
  /** Whether nobody serves anyone of it, as where the key of its only provider is missing. */
  readonly isUnserved: boolean
}

/** Entities of a dataset of whom the same is wanted. */
interface Group extends Lacking {
  readonly dataset: DatasetFacts
}

interface Counted {
  readonly stored: number
  readonly nothing: number
  /** The newest bucket that is stored; 0 where none is. */
  readonly newest: number
}

const NOTHING_KNOWN: Counted = { stored: 0, nothing: 0, newest: 0 }

/**
 * How complete each dataset is at a time (Unix milliseconds), by its name. Whoever is in the registry counts, whether
 * anything is known of them or not.
 */
export async function readCompleteness(
  db: Database,
  registry: Registry,
  datasets: readonly DatasetFacts[],
  now: number,
): Promise<ReadonlyMap<string, Completeness>> {
  const [wanted, notes] = await Promise.all([readEveryWanted(db), readOpenNotes(db)])
  const groups = datasets.flatMap((dataset) => toGroups(dataset, registry, wanted.get(dataset.name) ?? [], now))
  const counts = await countStored(db, groups)
  return new Map(
    datasets.map((dataset) => {
      const { name } = dataset
      const own = groups.filter((group) => group.dataset === dataset)
      const notesOf = groupBy(notes.get(name) ?? [], ({ entity }) => entity)
      const wantedOf = createWantedFinder(wanted.get(name) ?? [])
      const countOf = (key: number) => counts.get(name)?.get(key) ?? NOTHING_KNOWN
      const known = { countOf, now, wantedOf, notesOf: (key: number) => notesOf.get(key) ?? [] }
      return [name, { ...toCompleteness(dataset, own, known), isUnserved: isUnserved(dataset, registry, notes, now) }]
    }),
  )
}

/** How complete a dataset is that was asked for: nothing is never told in place of what was not read. */
export function completenessOf(all: ReadonlyMap<string, Completeness>, { name }: DatasetFacts): Completeness {
  const own = all.get(name)
  if (own === undefined) throw new Error(`nobody asked how complete ${name} is`)
  return own
}

function toGroups(dataset: DatasetFacts, registry: Registry, wanted: readonly Wanted[], now: number): Group[] {
  const due = toDueEnd(dataset, now)
  const groups = new Map<string, { dataset: DatasetFacts; entities: Entity[]; runs: readonly Buckets[] }>()
  for (const entities of groupByWanted(dataset.entities(registry), wanted)) {
    const runs = toWantedRuns(wanted, entities[0], dataset, due)
    const alike = JSON.stringify(runs)
    const group = groups.get(alike)
    if (group === undefined) groups.set(alike, { dataset, entities, runs })
    else for (const entity of entities) group.entities.push(entity)
  }
  return [...groups.values()]
}

interface Known {
  readonly countOf: (key: number) => Counted
  readonly wantedOf: (key: number) => readonly Wanted[]
  readonly notesOf: (key: number) => readonly Note[]
  readonly now: number
}

/**
 * Whether the newest slot of everybody in a dataset says that no provider serves them: it was never set up, or is no longer.
 * The notes are those that `readOpenNotes` gives.
 */
export function isUnserved(
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
  known: Known,
): Omit<Completeness, 'isUnserved'> {
  let [expected, stored] = [0, 0]
  const lacking: Lacking[] = []
  const lost: Lost[] = []
  let isAnyStored = false
  for (const { entities, runs } of groups) {
    const wanted = totalBuckets(runs)
    const without: Entity[] = []
    for (const entity of entities) {
      const counted = known.countOf(entity.key)
      expected += wanted - counted.nothing
      stored += counted.stored
      isAnyStored ||= counted.newest > 0
      if (counted.stored + counted.nothing < wanted) without.push(entity)
      if (isLost(dataset, entity, counted, known)) lost.push({ entity, reason: toReasonOf(entity, known) })
    }
    if (without.length > 0) lacking.push({ entities: without, runs })
  }
  return { expected, stored, complete: expected > 0 ? stored / expected : isAnyStored ? 1 : 0, lacking, lost }
}

/** Whether the slots of an entity have gone by without it, though some provider serves it. */
function isLost(
  dataset: DatasetFacts,
  entity: Entity,
  { newest }: Counted,
  { wantedOf, notesOf, now }: Known,
): boolean {
  const collected = wantedOf(entity.key).find(({ to }) => to === OPEN_END)
  if (collected === undefined || !isThereAt(entity, now)) return false
  if (notesOf(entity.key).some(({ state }) => state === 'unserved')) return false
  const cadence = INTERVAL_SECONDS[dataset.cadence] * 1000
  // The slot that filled a bucket is the one after it, where its rows or those that it is computed from have times of their own.
  const { hasOwnTimes, computedFrom = [] } = dataset
  const isOfNextSlot =
    hasOwnTimes || computedFrom.some((input) => input.hasOwnTimes && input.cadence === dataset.cadence)
  const slot = toBucketTime(newest, dataset.cadence) + (isOfNextSlot ? cadence : 0)
  const since = newest === 0 ? Math.max(collected.askedAt, collected.from) : slot
  return now - since > LATE_AFTER_CADENCES * cadence
}

const toReasonOf = ({ key }: Entity, { notesOf }: Known): string | null => notesOf(key)[0]?.reason ?? null

/** One row for all entities with equal counts, which most have: a row each would be half a million for a hundred thousand tokens. */
const counted = z.object({
  dataset: z.string(),
  stored: z.int(),
  nothing: z.int(),
  newest: z.int(),
  entities: z.array(z.number()),
})

/** By the names of datasets and the keys of entities; those of whom nothing is known are left out. */
type Counts = ReadonlyMap<string, ReadonlyMap<number, Counted>>

/** Stands for everybody of a dataset whom no other group names. */
const OTHERS = 0

/** The keys by which the groups are found: the largest of a dataset needs none, so that no list grows with the registry. */
function toKeys(groups: readonly Group[]): number[][] {
  const largest = new Map<string, Group>()
  for (const group of groups) {
    const before = largest.get(group.dataset.name)
    if (before === undefined || before.entities.length < group.entities.length) largest.set(group.dataset.name, group)
  }
  return groups.map((group) => {
    return largest.get(group.dataset.name) === group ? [OTHERS] : group.entities.map(({ key }) => key)
  })
}

const NAMED = 'ARRAY JOIN {datasets: Array(String)} AS dataset, {keys: Array(Array(UInt64))} AS keys'

/** What is known of the buckets that are wanted of each entity, in one statement for all datasets. */
async function countStored(db: Database, groups: readonly Group[]): Promise<Counts> {
  if (groups.length === 0) return new Map()
  const rows = await db.rows({
    name: 'completeness',
    sql: `SELECT dataset, bitmapAndCardinality(had, expected) AS stored,
  bitmapAndCardinality(known, expected) - stored AS nothing, newest, groupArray(entity) AS entities
FROM
(
  SELECT *, if((dataset, entity) IN (SELECT dataset, arrayJoin(keys) FROM (SELECT 1) ${NAMED}), entity, ${OTHERS}) AS place
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
