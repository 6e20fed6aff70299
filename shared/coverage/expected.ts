import { z } from 'zod'
import type { Dataset } from '../datasets/define-dataset.ts'
import { groupBy } from '../group-by.ts'
import { INTERVAL_SECONDS, type Interval, toBucketStart } from '../intervals.ts'
import type { Entity } from '../registry/entities.ts'
import type { Database } from '../store/clickhouse.ts'
import { type Buckets, toBuckets, union } from './grid.ts'
import { type Covered, groupByDataset, OPEN_END } from './ledger.ts'

export const EVERYBODY = 0

/** A range with expected data, in Unix milliseconds. `to` is `OPEN_END` for continuous collection. */
export interface ExpectedRange {
  readonly entity: number
  readonly from: number
  readonly to: number
  /** The requested step. */
  readonly seconds: number
  /** Time of the latest request. */
  readonly requestedAt: number
}

const stored = z.object({ entity: z.number(), from: z.int(), to: z.int(), seconds: z.int(), requestedAt: z.int() })

const SELECT_EXPECTED = `SELECT dataset, entity, toUnixTimestamp64Milli(begins_at) AS from, toUnixTimestamp64Milli(ends_at) AS to,
  interval_seconds AS seconds, toUnixTimestamp64Milli(asked_at) AS requestedAt
FROM coverage_wanted FINAL`

export async function readExpected(db: Database, dataset: Pick<Covered, 'name'>): Promise<ExpectedRange[]> {
  return db.rows({
    name: 'coverage-wanted',
    sql: `${SELECT_EXPECTED} WHERE dataset = {dataset: String} ORDER BY from`,
    params: { dataset: dataset.name },
    schema: stored,
  })
}

/** The wanted ranges of all datasets, by dataset name. */
export async function readAllExpected(db: Database): Promise<ReadonlyMap<string, ExpectedRange[]>> {
  const rows = await db.rows({
    name: 'coverage-wanted-of-all',
    sql: `${SELECT_EXPECTED} ORDER BY from`,
    schema: stored.extend({ dataset: z.string() }),
  })
  return groupByDataset(rows)
}

/** Records that a dataset is collected from a time on, or that an operator requests a range. Repeats change nothing. */
export async function recordExpected(
  db: Database,
  dataset: Pick<Covered, 'name'>,
  ranges: readonly { entity: number; from: number; to?: number; interval: Interval }[],
): Promise<void> {
  if (ranges.length === 0) return
  const rows = ranges.map(({ entity, from, to = OPEN_END, interval }) => ({
    dataset: dataset.name,
    entity,
    begins_at: new Date(from).toISOString(),
    ends_at: new Date(to).toISOString(),
    interval_seconds: INTERVAL_SECONDS[interval],
  }))
  await db.insert({ table: 'coverage_wanted', rows })
}

/** The members of a dataset that decide when a bucket is due. */
type Due = Pick<Dataset, 'cadence' | 'hasOwnTimes' | 'computedFrom'>

/**
 * The end of a dataset's due buckets, in Unix milliseconds. A slot is collected until the next slot begins. It fills
 * its own bucket, or the bucket before if rows have times of their own. A computed bucket is due once its inputs are.
 */
export function toDueEnd({ cadence, hasOwnTimes, computedFrom = [] }: Due, now: number): number {
  const current = toBucketStart(now, cadence)
  const own = hasOwnTimes ? current - INTERVAL_SECONDS[cadence] * 1000 : current
  return toBucketStart(Math.min(own, ...computedFrom.map((input) => toDueEnd(input, now))), cadence)
}

/**
 * The end of a series' due buckets, in Unix milliseconds. A bucket is missing if it ends by then and has no
 * observation. A job that resumes reads the events of a slot when the next slot begins, so its buckets are due a slot
 * later.
 */
export function toSeriesDueEnd(dataset: Due & Pick<Dataset, 'resumes'>, interval: Interval, now: number): number {
  const readUpTo = dataset.resumes ? now - INTERVAL_SECONDS[dataset.cadence] * 1000 : now
  return toBucketStart(toDueEnd(dataset, readUpTo), interval)
}

/**
 * Groups entities with the same wanted ranges. An entity with a range of its own forms its own group; the others are
 * grouped by their end.
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
 * Returns a function that finds the wanted ranges of an entity by its key: the dataset's and its own ones, earliest
 * first.
 */
export function createExpectedFinder(expected: readonly ExpectedRange[]): (key: number) => readonly ExpectedRange[] {
  const byEntity = groupBy(expected, ({ entity }) => entity)
  const everybody = byEntity.get(EVERYBODY) ?? []
  return (key) => {
    const own = byEntity.get(key)
    return own === undefined ? everybody : [...everybody, ...own].sort((a, b) => a.from - b.from)
  }
}

/** The wanted buckets of an entity before `until` (Unix milliseconds) and before its end, as sorted runs. */
export function toExpectedRuns(
  expected: readonly ExpectedRange[],
  entity: Pick<Entity, 'key' | 'until'>,
  { cadence }: Covered,
  until: number,
): readonly Buckets[] {
  const own = expected.filter((one) => one.entity === EVERYBODY || one.entity === entity.key)
  const end = Math.min(until, entity.until ?? OPEN_END)
  return union(
    own.flatMap(({ from, to }) => {
      const buckets = toBuckets({ from, to: Math.min(to, end) }, cadence)
      return buckets === undefined ? [] : [buckets]
    }),
  )
}
