import { z } from 'zod'
import { END_OF_TIME } from '../intervals.ts'
import { LANES, type Lane } from '../queue/lanes.ts'
import type { Database } from '../store/clickhouse.ts'
import { type Covered, groupByDataset, toEntityFilter } from './ledger.ts'

/** The end of a note that is still valid. */
export const OPEN_END = END_OF_TIME

/**
 * The reason why buckets of an entity from `from` to `to` (exclusive) are not stored, or only at a coarser step. Times
 * are Unix milliseconds. `since` is the time of the first of its `tries`. There is no attempt before `nextTry`, unless
 * the provider settings have changed after the note. `coarser` in the `live` class means that a stored bucket lacks
 * elements of the provider's response. `pending` means that the provider has no data yet for a recent time.
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

/** A note with the time of its insertion by ClickHouse's clock, in Unix milliseconds. */
export type StoredNote = Note & { readonly writtenAt: number }

/**
 * Whether a range was missed for good: it was not collected in time, and no provider has its history. Such a note has
 * no tries.
 */
export const isLost = ({ state, tries }: Pick<Note, 'state' | 'tries'>): boolean => state === 'unserved' && tries === 0

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

/** The notes of entities that overlap a range, newest first by time of writing. */
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

/** The notes of slots that are missing now, by dataset name. */
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

/** Writes notes. A note replaces an older one with the same entity, class and start. */
export async function writeNotes(db: Database, dataset: Pick<Covered, 'name'>, notes: readonly Note[]): Promise<void> {
  if (notes.length === 0) return
  // Copies member by member, because a stored note also has its time of insertion.
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
