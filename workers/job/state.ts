import { z } from 'zod'
import { parseStored } from '../../shared/json.ts'
import type { Database } from '../../shared/store/clickhouse.ts'

/** State of a job between runs. `set` only buffers a value; the runner stores it after the run's rows are stored. */
export interface JobState {
  get(name: string): Promise<string | undefined>
  set(name: string, value: string): void
  /**
   * Stores a value immediately, even if the run fails later. For paid data that must not be bought again. The value
   * must be valid without the run's rows.
   */
  save(name: string, value: string): Promise<void>
  /** Reports a value that `recall` could not read. */
  readonly onUnreadable?: ((name: string, reason: string) => void) | undefined
}

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
  const known = new Map<string, { value: string; at: number } | undefined>()
  const readStored = createReader(db, job)
  async function read(name: string): Promise<string | undefined> {
    const row = await readStored(name)
    known.set(name, row)
    return row?.value
  }
  async function insert(values: Iterable<readonly [string, string]>): Promise<void> {
    const all = [...values]
    await Promise.all(all.filter(([name]) => !known.has(name)).map(([name]) => read(name)))
    const rows = all.map(([name, value]) => ({ name, value, at: Math.max(now(), (known.get(name)?.at ?? 0) + 1) }))
    const toRow = ({ at, ...row }: (typeof rows)[number]) => ({ job, ...row, written_at: new Date(at).toISOString() })
    await db.insert({ table: 'job_state', rows: rows.map(toRow) })
    for (const { name, ...row } of rows) known.set(name, row)
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
      const hasMoved = [...notes].some(([name, value]) => known.get(name)?.value !== value)
      if (notes.size > 0) await insert(notes)
      notes.clear()
      return hasMoved
    },
    onUnreadable,
  }
}
