import { toBucket, toBucketTime, toDueEnd } from '../../shared/buckets.ts'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import { INTERVAL_SECONDS, type TimeRange } from '../../shared/intervals.ts'
import { type BucketState, type Explained, openLedger } from '../../shared/ledger/ledger.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import type { Entity } from '../../shared/registry/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { Problem } from '../problem/problem.ts'

/**
 * Why a dataset has no current data of an entity, according to the newest buckets of its coverage. A failure has
 * priority, then the fact that the last due bucket was read, then the newest note.
 * @throws DataError `storage`, Problem `not_found` for an entity that the dataset cannot contain.
 */
export async function findReason(
  { db, registry }: { readonly db: Database; readonly registry: Registry },
  { dataset, id }: { readonly dataset: DatasetFacts; readonly id: string },
  now: number,
): Promise<string> {
  const from = toDueEnd(dataset, now) - INTERVAL_SECONDS[dataset.cadence] * 1000
  const ranges = await readRanges(db, registry, { dataset, id, from, to: now }, now)
  const failed = ranges.findLast(({ state }) => state === 'failed')
  const [due] = ranges
  if (failed === undefined && due?.state === 'covered') return due.reason ?? 'it was read and has no record'
  const explained = failed ?? ranges.findLast(({ reason }) => reason !== null)
  return explained?.reason ?? 'its stored data is not current'
}

/** The question of a coverage request. Without an id: all entities of the dataset. Times are Unix milliseconds. */
export interface CoverageQuery extends TimeRange {
  readonly dataset: DatasetFacts
  readonly id: string | undefined
  /** Whether each range has the name of its entity. */
  readonly isNamed?: boolean
}

/** The states of the contract (docs/contract.md, section 10). */
export const COVERAGE_STATES = ['covered', 'coarser', 'pending', 'failed', 'unserved'] as const
export type CoverageState = (typeof COVERAGE_STATES)[number]

const PUBLIC_STATES: Readonly<Record<BucketState, CoverageState>> = {
  covered: 'covered',
  nothing: 'covered',
  coarser: 'coarser',
  pending: 'pending',
  failed: 'failed',
  unserved: 'unserved',
  missed: 'unserved',
}

/** A time range of one entity with the same state throughout. */
interface CoverageRange {
  readonly entity: string
  readonly from: string
  readonly to: string
  readonly state: CoverageState
  readonly provider: string | null
  readonly interval: string | null
  readonly reason: string | null
  readonly name?: string
  readonly live?: boolean
}

/** Maximum ranges of an answer, about a megabyte. */
export const MOST_RANGES = 5000
/** Maximum runs of buckets read for an answer: several reports may cover the same buckets. */
const MOST_RUNS = 50_000

/**
 * The state of a time range, by entity, each in order and without gaps or overlaps.
 * @throws Problem `not_found` for an entity outside the dataset, `invalid_parameter` if there are too many ranges.
 */
export async function readRanges(
  db: Database,
  registry: Registry,
  { dataset, id, from, to, isNamed = false }: CoverageQuery,
  now: number,
): Promise<CoverageRange[]> {
  const collected = dataset.entities(registry)
  const entities = id === undefined ? collected : [findEntity(dataset, collected, registry, id)]
  if (from >= to) return []
  const { cadence } = dataset
  const within = { first: toBucket(from, cadence), last: toBucket(to - 1, cadence) }
  const isCollected = (entity: Entity) => collected.includes(entity)
  const query = { within, now, most: MOST_RUNS, isCollected }
  const explained = await openLedger(db, dataset).explain(entities, query)
  if (explained === undefined) throw tooMany()
  const ranges: CoverageRange[] = []
  for (const entity of entities) {
    const named = isNamed ? { name: entity.name, live: !('live' in entity) || entity.live === true } : {}
    for (const stretch of explained.get(entity.key) ?? []) {
      if (ranges.length === MOST_RANGES) throw tooMany()
      const start = Math.max(from, toBucketTime(stretch.first, cadence))
      const stop = Math.min(to, toBucketTime(stretch.last + 1, cadence))
      const isAsExplained = isCollected(entity) || !isThereAt(entity, start)
      const explanation = isAsExplained ? stretch : toUncollected(stretch, dataset)
      ranges.push({ ...toRange(entity, { from: start, to: stop }, explanation), ...named })
    }
  }
  return ranges
}

/** Finds a collected entity, or another one of the same kind that may have older data. */
function findEntity(dataset: DatasetFacts, collected: readonly Entity[], registry: Registry, id: string): Entity {
  const { entity: kind } = dataset.series
  const sameKind: readonly Entity[] = kind === 'token' ? registry.tokens : kind === 'dao' ? registry.daos : []
  const found = [...collected, ...sameKind].find((entity) => entity.id === id)
  if (found !== undefined) return found
  throw new Problem('not_found', `${dataset.name} is not about anything with this id.`, { param: 'id' })
}

/** The entity is no longer collected, so missing data stays missing. */
function toUncollected(stretch: Explained, { name }: DatasetFacts): Explained {
  if (stretch.state === 'covered' || stretch.state === 'coarser' || stretch.state === 'nothing') return stretch
  return { ...stretch, state: 'unserved', reason: `${name} is not collected for it`, provider: null, since: null }
}

const toRange = (
  { id: entity }: Entity,
  { from, to }: TimeRange,
  { state, provider, seconds, reason, since }: Explained,
): CoverageRange => ({
  entity,
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
  state: PUBLIC_STATES[state],
  provider,
  interval: seconds === null ? null : toIntervalText(seconds),
  reason: since === null ? reason : `${reason} (since ${new Date(since).toISOString()})`,
})

/** Formats a step in the largest unit that divides it: 5m, 12h, 1d. */
function toIntervalText(seconds: number): string {
  const units = [
    ['d', INTERVAL_SECONDS['1d']],
    ['h', INTERVAL_SECONDS['1h']],
    ['m', 60],
  ] as const
  for (const [unit, length] of units) if (seconds % length === 0) return `${seconds / length}${unit}`
  return `${seconds}s`
}

function tooMany(): Problem {
  const detail = `There are more than ${MOST_RANGES} ranges: narrow the time, or ask for one id.`
  return new Problem('invalid_parameter', detail, { param: 'start' })
}
