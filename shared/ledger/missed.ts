import { z } from 'zod'
import { type Buckets, subtractAll, toBucket, toBuckets, toTimes, totalBuckets, union } from '../buckets.ts'
import { groupBy, toBatches } from '../group-by.ts'
import { END_OF_TIME, INTERVAL_SECONDS, type TimeRange, toBucketStart } from '../intervals.ts'
import { ENTIRE_REGISTRY } from '../registry/entities.ts'
import type { Database } from '../store/store.ts'
import { countPossible } from './stored-rows.ts'
import { addCoverage, readNotes, writeNotes } from './tables.ts'
import type { FailedRange, LedgerDataset, MissedSlots, Missing, Note, Report, StoredNote } from './types.ts'

/** In this many buckets before now a worker may have stored rows and died after the slot was recorded as missed. */
const RECENT_BUCKETS = 12

/**
 * See `Ledger.recordMissed`. Looks for the rows of recent buckets regardless of their notes: a worker may have
 * stored the rows after the end of its slot and died before it recorded the coverage.
 */
export async function recordMissed(
  db: Database,
  dataset: LedgerDataset,
  missing: readonly Missing[],
  { provider, now }: { readonly provider: string; readonly now: number },
): Promise<MissedSlots> {
  const since = toBucket(now, dataset.cadence) - RECENT_BUCKETS
  const recent = without(missing, () => [{ first: 0, last: since - 1 }])
  await coverStored(db, dataset, recent, provider)
  const unexplained = await withoutExplained(db, dataset, missing, (note) => note)
  const stored = groupBy(await coverStored(db, dataset, unexplained, provider), ({ entity }) => entity)
  const missed = without(unexplained, (entity) => stored.get(entity) ?? [])
  const notes = missed.flatMap(({ entity, runs }) => runs.map((run) => toNote(dataset, entity.key, run, now)))
  await writeNotes(db, dataset, notes)
  return { slots: totalBuckets(union(missed.flatMap(({ runs }) => runs))), entities: missed.length }
}

function without(missing: readonly Missing[], removed: (entity: number) => readonly Buckets[]): Missing[] {
  return missing.flatMap(({ entity, runs }) => {
    const remaining = subtractAll(runs, removed(entity.key))
    return remaining.length === 0 ? [] : [{ entity, runs: remaining }]
  })
}

/** Records the coverage of missing buckets that have rows, and returns it. */
async function coverStored(db: Database, dataset: LedgerDataset, missing: readonly Missing[], provider: string) {
  const stored = missing.length === 0 ? [] : await readStored(db, dataset, missing, provider)
  await addCoverage(db, dataset, stored)
  return stored
}

const toNote = ({ cadence }: LedgerDataset, entity: number, run: Buckets, now: number): Note => ({
  entity,
  queueClass: 'history',
  ...toTimes(run, cadence),
  state: 'missed',
  provider: '',
  reason: 'it was not collected in time, and its providers have no history',
  since: now,
  tries: 0,
  nextTry: END_OF_TIME,
})

/** See `Ledger.recordFailed`. */
export async function writeFailed(
  db: Database,
  dataset: Pick<LedgerDataset, 'name'>,
  entities: readonly number[],
  failed: FailedRange,
): Promise<void> {
  const note = { queueClass: 'history', state: 'failed', provider: '', tries: 1 } as const
  await writeNotes(
    db,
    dataset,
    entities.map((entity) => ({ entity, ...note, ...failed })),
  )
}

/**
 * See `Ledger.withoutTried`. While an entity's slots fail, its range of today would fail, too, and is requested only
 * after a slot succeeds. Ranges before today are tried once.
 */
export function withoutTried(
  db: Database,
  dataset: LedgerDataset,
  missing: readonly Missing[],
  { now, providersChangedAt }: { readonly now: number; readonly providersChangedAt: number },
): Promise<Missing[]> {
  const today = toBucketStart(now, '1d')
  const isBlocking = (note: StoredNote) =>
    note.queueClass === 'live' ? note.to === END_OF_TIME : note.nextTry > now && note.writtenAt >= providersChangedAt
  const toRange = (note: StoredNote) =>
    note.queueClass === 'live' && note.state === 'failed' ? { ...note, from: Math.max(note.from, today) } : note
  return withoutExplained(db, dataset, missing, (note) => (isBlocking(note) ? toRange(note) : undefined))
}

/** Removes the buckets that a note explains; `toExplained` returns its range, or undefined for no effect. */
async function withoutExplained(
  db: Database,
  dataset: LedgerDataset,
  missing: readonly Missing[],
  toExplained: (note: StoredNote) => TimeRange | undefined,
): Promise<Missing[]> {
  const keys = missing.map(({ entity }) => entity.key)
  const explained: { entity: number; buckets: Buckets }[] = []
  for (const note of await readNotes(db, dataset, keys, { from: 0, to: END_OF_TIME })) {
    const range = toExplained(note)
    const buckets = range === undefined ? undefined : toBuckets(range, dataset.cadence)
    if (buckets !== undefined) explained.push({ entity: note.entity, buckets })
  }
  const byEntity = groupBy(explained, ({ entity }) => entity)
  return without(missing, (entity) => byEntity.get(entity)?.map(({ buckets }) => buckets) ?? [])
}

const stored = z.object({ entity: z.number(), bucket: z.int() })

/**
 * Returns the missing buckets that have rows. A row that may belong to two buckets counts only if both are missing;
 * otherwise it belongs to the bucket that is not missing.
 */
async function readStored(
  db: Database,
  dataset: LedgerDataset,
  missing: readonly Missing[],
  provider: string,
): Promise<Report[]> {
  const seconds = INTERVAL_SECONDS[dataset.cadence]
  const found: Report[] = []
  for (const batch of toBatches(missing, ENTITIES_PER_BATCH)) {
    const runsOf = new Map(batch.map(({ entity, runs }) => [entity.key, runs]))
    const isMissing = (entity: number, bucket: number) =>
      runsOf.get(entity)?.some((run) => run.first <= bucket && bucket <= run.last) ?? false
    for (const { entity, bucket } of await readBuckets(db, dataset, batch)) {
      const possible = Array.from({ length: countPossible(dataset) }, (_, after) => bucket + after)
      if (possible.every((one) => isMissing(entity, one)))
        found.push({ entity, state: 'stored', provider, seconds, first: bucket, last: bucket })
    }
  }
  return found
}

/** A year of an hourly dataset has 8,760 buckets per entity. */
const ENTITIES_PER_BATCH = 20

async function readBuckets(db: Database, dataset: LedgerDataset, missing: readonly Missing[]) {
  const { table, entity = String(ENTIRE_REGISTRY.key), time } = dataset.series
  const all = missing.flatMap(({ runs }) => runs)
  const first = all.reduce((least, run) => Math.min(least, run.first), Number.POSITIVE_INFINITY)
  const last = all.reduce((most, run) => Math.max(most, run.last), 0)
  const { from, to } = toTimes({ first, last }, dataset.cadence)
  return db.rows({
    name: 'stored-after-all',
    sql: `SELECT DISTINCT ${entity} AS entity, intDiv(toUnixTimestamp(toDateTime(${time}, 'UTC')), {cadence: UInt32}) AS bucket
FROM ${table}
WHERE ${time} >= toDateTime({from: UInt32}, 'UTC') AND ${time} < toDateTime({to: UInt32}, 'UTC')
  AND ${entity} IN {keys: Array(UInt64)}`,
    params: {
      cadence: INTERVAL_SECONDS[dataset.cadence],
      from: from / 1000,
      to: to / 1000,
      keys: missing.map(({ entity: one }) => one.key),
    },
    schema: stored,
  })
}
