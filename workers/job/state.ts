import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { toId } from '../../shared/ids.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { parseStored } from '../../shared/json.ts'
import type { SlotBatch } from '../../shared/queue/queues.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Entity, Run } from './define-job.ts'
import type { JobState } from './job-state.ts'

export type { JobState } from './job-state.ts'

/** Reads a stored JSON value. An unreadable value is reported and treated as absent; the run replaces it. */
export async function recall<S extends z.ZodType>(
  state: JobState,
  name: string,
  schema: S,
): Promise<z.output<S> | undefined> {
  const text = await state.get(name)
  // The state cannot delete a name, so an empty text means no value.
  if (text === undefined || text === '') return undefined
  return parseStored(schema, text, (reason) => state.onUnreadable?.(name, reason))
}

const stored = z.object({ name: z.string(), value: z.string(), at: z.int() })
type Stored = z.infer<typeof stored>

/** Most names in one statement: they are part of the request URL. */
const MAX_NAMES = 1000

/**
 * Drafts the state for one attempt of a provider. `keep` adds the draft to the run's state; the draft of a discarded
 * response has no effect.
 */
export function draftState(state: JobState): JobState & { keep(): void } {
  const notes = new Map<string, string>()
  return {
    get: async (name) => notes.get(name) ?? (await state.get(name)),
    set: (name, value) => void notes.set(name, value),
    save: async (name, value) => {
      notes.delete(name)
      await state.save(name, value)
    },
    keep: () => {
      for (const [name, value] of notes) state.set(name, value)
    },
    onUnreadable: state.onUnreadable,
  }
}

/**
 * Reads stored values. Names requested in the same turn of the event loop are batched into one statement, because a job
 * reads one name per token.
 */
function createReader(db: Database, job: string): (name: string) => Promise<Stored | undefined> {
  let gathered: { names: Set<string>; rows: Promise<ReadonlyMap<string, Stored>> } | undefined
  async function readAll(names: ReadonlySet<string>): Promise<ReadonlyMap<string, Stored>> {
    await new Promise(setImmediate)
    gathered = undefined
    const rows = await db.rows({
      name: 'job-state',
      sql: `SELECT name, value, toUnixTimestamp64Milli(written_at) AS at FROM job_state FINAL
WHERE job = {job:String} AND name IN {names:Array(String)}`,
      params: { job, names: [...names] },
      schema: stored,
    })
    return new Map(rows.map((row) => [row.name, row]))
  }
  return async (name) => {
    if (gathered === undefined || gathered.names.size >= MAX_NAMES) {
      const names = new Set<string>()
      gathered = { names, rows: readAll(names) }
    }
    gathered.names.add(name)
    return (await gathered.rows).get(name)
  }
}

/**
 * Stores values with one statement at a time. Values that arrive during a statement are batched into the next one. The
 * later of two values with the same name wins.
 */
function createWriter(insert: (values: ReadonlyMap<string, string>) => Promise<void>) {
  let underway = Promise.resolve()
  let gathered: { values: Map<string, string>; stored: Promise<void> } | undefined
  async function insertNext(values: ReadonlyMap<string, string>, before: Promise<void>): Promise<void> {
    // Callers of the previous batch receive its error.
    await before.catch(() => undefined)
    gathered = undefined
    await insert(values)
  }
  return (name: string, value: string): Promise<void> => {
    if (gathered === undefined) {
      const values = new Map<string, string>()
      underway = insertNext(values, underway)
      gathered = { values, stored: underway }
    }
    gathered.values.set(name, value)
    return gathered.stored
  }
}

/**
 * Opens a job's state in the `job_state` table, with buffered values of one run. `store` returns whether any value
 * changed. The value written later wins: `written_at` is greater than that of the value read, even if the clock was
 * ahead at that time.
 */
export function openState(
  db: Database,
  job: string,
  now: () => number,
  onUnreadable?: JobState['onUnreadable'],
): JobState & { store(): Promise<boolean> } {
  const notes = new Map<string, string>()
  const cached = new Map<string, { value: string; at: number } | undefined>()
  const readStored = createReader(db, job)
  async function read(name: string): Promise<string | undefined> {
    const row = await readStored(name)
    cached.set(name, row)
    return row?.value
  }
  async function insert(values: Iterable<readonly [string, string]>): Promise<void> {
    const all = [...values]
    await Promise.all(all.filter(([name]) => !cached.has(name)).map(([name]) => read(name)))
    const rows = all.map(([name, value]) => ({ name, value, at: Math.max(now(), (cached.get(name)?.at ?? 0) + 1) }))
    const toRow = ({ at, ...row }: (typeof rows)[number]) => ({ job, ...row, written_at: new Date(at).toISOString() })
    await db.insert({ table: 'job_state', rows: rows.map(toRow) })
    for (const { name, ...row } of rows) cached.set(name, row)
  }
  const write = createWriter(insert)
  return {
    get: async (name) => notes.get(name) ?? read(name),
    set: (name, value) => void notes.set(name, value),
    save: async (name, value) => {
      notes.delete(name)
      await write(name, value)
    },
    store: async () => {
      const hasMoved = [...notes].some(([name, value]) => cached.get(name)?.value !== value)
      if (notes.size > 0) await insert(notes)
      notes.clear()
      return hasMoved
    },
    onUnreadable,
  }
}

const NAME = 'providers'

/** Hashes the provider settings (providersHash) without revealing them. An added or changed key changes the hash. */
const toMark = (config: Config): string => toId(JSON.stringify(config.providers)).slice(0, 12)

/**
 * Records the provider settings of a job's workers. After a change, data that the providers could not serve before is
 * due again.
 */
export async function recordProviders(db: Database, job: string, config: Config): Promise<void> {
  const state = openState(db, job, Date.now)
  if ((await state.get(NAME)) === toMark(config)) return
  state.set(NAME, toMark(config))
  await state.store()
}

const changed = z.object({ at: z.int() })

/**
 * Returns when a worker of the job last started with settings other than the previous worker's, in Unix milliseconds; 0
 * if never. If workers permanently have different settings, each change makes the notes due only once.
 */
export async function readProvidersChange(db: Database, job: string): Promise<number> {
  const [row] = await db.rows({
    name: 'providers-change',
    sql: 'SELECT toUnixTimestamp64Milli(written_at) AS at FROM job_state FINAL WHERE job = {job: String} AND name = {name: String}',
    params: { job, name: NAME },
    schema: changed,
  })
  return row?.at ?? 0
}

/** Number of pages that a run may still request, shared by all its entities. */
export interface Allowance {
  /** Returns the remaining pages, 0 if none are left. */
  remaining(): number
  /** Takes one page; returns false if none are left. */
  take(): boolean
}

export function createAllowance(pages: number): Allowance {
  let remaining = pages
  return {
    remaining: () => Math.max(0, remaining),
    take() {
      remaining -= 1
      return remaining >= 0
    },
  }
}

/** The allowance of a slot, shared by all attempts of the slot. */
export interface SlotAllowance extends Allowance {
  /** Stores the remaining pages immediately: requests are billed even if the run fails. */
  save(): Promise<void>
}

/**
 * Returns the calls of one batch; the calls of all batches add up to `perSlot`. If there are fewer calls than batches,
 * the batches take turns from slot to slot.
 */
export function toShare(perSlot: number, slot: number, batch: SlotBatch | undefined): number {
  if (batch === undefined) return perSlot
  const { index, of } = batch
  const turn = Math.floor(slot / (INTERVAL_SECONDS['5m'] * 1000))
  // Shifts by one after each round. Without the shift, if only every second slot has a call, the same batches would
  // always get it.
  const place = (index + turn + Math.floor(turn / of)) % of
  return Math.floor(perSlot / of) + (place < perSlot % of ? 1 : 0)
}

const remainingCalls = z.object({ slot: z.number(), left: z.number() })

interface SlotCalls {
  /** The provider's name. */
  readonly name: string
  /** Unix milliseconds. */
  readonly slot: number
  /** Calls of the slot, or of its batch. */
  readonly calls: number
  readonly batch?: SlotBatch | undefined
}

/**
 * Opens the allowance of a slot or of its batch. A retry gets the calls that earlier attempts left, also attempts of
 * other processes.
 */
export async function openSlotAllowance(
  state: JobState,
  { name, slot, calls, batch }: SlotCalls,
): Promise<SlotAllowance> {
  const key = batch === undefined ? `${name}.allowance` : `${name}.allowance.${batch.index}`
  const last = await recall(state, key, remainingCalls)
  const allowance = createAllowance(last?.slot === slot ? last.left : calls)
  return { ...allowance, save: () => state.save(key, JSON.stringify({ slot, left: allowance.remaining() })) }
}

/**
 * Counts a provider's responses per entity of a slot, over all attempts of the slot. A response is billed even if it is
 * unusable.
 */
export interface SlotAnswers {
  of(entity: Entity): number
  /** Runs `request` and counts its response, including a malformed one. Requests without a response are not billed. */
  count<Answer>(entity: Entity, request: () => Promise<Answer>): Promise<Answer>
  /** Stores the counts immediately, because a run with rejected rows stores no other data. */
  save(): Promise<void>
}

const answerCounts = z.object({ slot: z.number(), counts: z.record(z.string(), z.number()) })

/** Opens the counts of a slot (Unix milliseconds), or of its batch. */
export async function openSlotAnswers(
  state: JobState,
  provider: string,
  { slot, batch }: Pick<Run<unknown, Entity>, 'slot' | 'batch'>,
): Promise<SlotAnswers> {
  const key = batch === undefined ? `${provider}.answers` : `${provider}.answers.${batch.index}`
  const last = await recall(state, key, answerCounts)
  const counts = new Map(last?.slot === slot ? Object.entries(last.counts) : [])
  const of = ({ id }: Entity) => counts.get(id) ?? 0
  const add = (entity: Entity) => void counts.set(entity.id, of(entity) + 1)
  return {
    of,
    async count(entity, request) {
      try {
        const answer = await request()
        add(entity)
        return answer
      } catch (error) {
        if (error instanceof DataError && error.code === 'provider_malformed') add(entity)
        throw error
      }
    },
    save: () => state.save(key, JSON.stringify({ slot, counts: Object.fromEntries(counts) })),
  }
}
