import { z } from 'zod'
import { type Buckets, subtractAll, toBuckets } from '../buckets.ts'
import { groupBy } from '../group-by.ts'
import { END_OF_TIME, type TimeRange, toBucketStart } from '../intervals.ts'
import { LANES } from '../queue/lanes.ts'
import type { Database } from '../store/clickhouse.ts'
import { toEntityFilter } from './covered.ts'
import type { FailedRange, LedgerDataset, Missing, Note, StoredNote } from './ledger.ts'

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

/** The table stores missed buckets as unserved ones without a try. */
const fromStored = <N extends Pick<z.infer<typeof stored>, 'state' | 'tries'>>(note: N) => ({
  ...note,
  state: note.state === 'unserved' && note.tries === 0 ? ('missed' as const) : note.state,
})

const toMs = (column: string) => `toUnixTimestamp64Milli(${column})`

const NOTES = `SELECT dataset, entity, toString(lane) AS lane, ${toMs('begins_at')} AS from, ${toMs('ends_at')} AS to, toString(state) AS state,
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
    schema: stored,
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
    schema: stored.extend({ dataset: z.string() }),
  })
  return groupBy(rows.map(fromStored), ({ dataset }) => dataset)
}

const toText = (ms: number) => new Date(ms).toISOString()

/** Writes notes; one that has the same beginning as an older one of the same entity and lane takes its place. */
export async function writeNotes(
  db: Database,
  dataset: Pick<LedgerDataset, 'name'>,
  notes: readonly Note[],
): Promise<void> {
  if (notes.length === 0) return
  // Member by member: a note that was read has its time of writing beside.
  const rows = notes.map(({ entity, lane, from, to, state, provider, reason, since, tries, nextTry }) => ({
    dataset: dataset.name,
    entity,
    lane,
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

/** See `Ledger.recordFailed`. */
export async function writeFailed(
  db: Database,
  dataset: Pick<LedgerDataset, 'name'>,
  entities: readonly number[],
  failed: FailedRange,
): Promise<void> {
  const note = { lane: 'history', state: 'failed', provider: '', tries: 1 } as const
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
    note.lane === 'live' ? note.to === END_OF_TIME : note.nextTry > now && note.writtenAt >= providersChangedAt
  const toRange = (note: StoredNote) =>
    note.lane === 'live' && note.state === 'failed' ? { ...note, from: Math.max(note.from, today) } : note
  return withoutExplained(db, dataset, missing, (note) => (isBlocking(note) ? toRange(note) : undefined))
}

/** Removes the buckets that a note explains; `toExplained` returns its range, or undefined for no effect. */
export async function withoutExplained(
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
  return missing.flatMap(({ entity, runs }) => {
    const remaining = subtractAll(runs, byEntity.get(entity.key)?.map(({ buckets }) => buckets) ?? [])
    return remaining.length === 0 ? [] : [{ entity, runs: remaining }]
  })
}
