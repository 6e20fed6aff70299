import { z } from 'zod'
import { END_OF_TIME } from '../intervals.ts'
import { LANES, type Lane } from '../queue/lanes.ts'
import type { Database } from '../store/clickhouse.ts'
import { type Covered, groupByDataset, toEntityFilter } from './ledger.ts'

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

/** Whether it says that nobody collected a range at its time and nobody has it any more: such a note has no tries. */
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
  const asked = new Set(entities)
  return found.filter(({ entity }) => asked.has(entity))
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
