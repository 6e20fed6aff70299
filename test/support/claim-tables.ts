import { setImmediate } from 'node:timers/promises'
import { type Buckets, union } from '../../shared/buckets.ts'
import { DataError } from '../../shared/errors.ts'
import { END_OF_TIME } from '../../shared/intervals.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import { noDatabase } from './no-database.ts'

/** The identities of the events that an inserted row has, by table. */
export type EventsOf = Readonly<Record<string, (row: object) => readonly string[]>>

interface ClaimedEvents {
  readonly eventsOf: EventsOf
  /** Data from this time on are expected, in Unix milliseconds. */
  readonly wantedFrom: number
}

export type ClaimTables = ReturnType<typeof createClaimTables>

/** The tables that a job reads and writes, in memory. `failNext` makes the next insert into a table fail once. */
export function createClaimTables(now: () => number, { eventsOf, wantedFrom }: ClaimedEvents) {
  const state = new Map<string, { value: string; at: number }>()
  const covered = new Map<number, Buckets[]>()
  const stored = new Set<string>()
  let failing: { table: string; isStored: boolean } | undefined
  const write: Record<string, (row: object) => void> = {
    job_state(row) {
      const { name, value, written_at } = row as { name: string; value: string; written_at: string }
      const at = Date.parse(written_at)
      if (at >= (state.get(name)?.at ?? 0)) state.set(name, { value, at })
    },
    coverage_in(row) {
      const { entity, first, last } = row as Buckets & { entity: number }
      covered.set(entity, union([...(covered.get(entity) ?? []), { first, last }]))
    },
    coverage_notes: () => {},
    history_changes: () => {},
  }
  const read: Record<string, (params: Record<string, unknown>) => object[]> = {
    'job-state': ({ names }) =>
      (names as string[]).flatMap((name) => {
        const row = state.get(name)
        return row === undefined ? [] : [{ name, ...row }]
      }),
    'coverage-missing': ({ from, to, entities }) =>
      (entities as number[]).flatMap((entity) => {
        const had = covered.get(entity)
        if (had === undefined) return []
        const expected = (from as number[]).map((first, at) => ({ first, last: ((to as number[])[at] ?? 0) - 1 }))
        return [{ entity, runs: toMissing(expected, had).map(({ first, last }) => [first, last]) }]
      }),
    'next-change': () => [{ at: now() }],
    'newest-market-caps': () => [],
    'coverage-notes': () => [],
    'coverage-wanted': () => [
      { entity: ALL_ENTITIES, from: wantedFrom, to: END_OF_TIME, seconds: 3600, requestedAt: 0 },
    ],
    'failing-texts': () => [],
  }
  const db: Database = {
    ...noDatabase,
    rows: async ({ name, params = {}, schema }) => {
      await setImmediate()
      const answer = read[name]
      if (answer === undefined) throw new Error(`the model has no statement ${name}`)
      return answer(params).map((row) => schema.parse(row)) as never
    },
    command: async () => void (await setImmediate()),
    insert: async ({ table, rows }) => {
      await setImmediate()
      const fails = failing?.table === table ? failing : undefined
      if (fails !== undefined) failing = undefined
      if (fails?.isStored !== false)
        for (const row of rows) {
          write[table]?.(row)
          for (const event of eventsOf[table]?.(row) ?? []) stored.add(event)
        }
      if (fails !== undefined) throw new DataError('storage', `killed at ${table}`)
    },
  }
  return {
    ...{ db, covered, stored },
    failNext: (table: string, isStored: boolean) => {
      failing = { table, isStored }
    },
    fixInserts: () => {
      failing = undefined
    },
    loseState: (isLost: (name: string) => boolean) => {
      for (const name of state.keys()) if (isLost(name)) state.delete(name)
    },
  }
}

export function toMissing(expected: readonly Buckets[], had: readonly Buckets[]): Buckets[] {
  const isHad = (bucket: number) => had.some(({ first, last }) => first <= bucket && bucket <= last)
  const missing: Buckets[] = []
  for (const { first, last } of expected)
    for (let bucket = first; bucket <= last; bucket += 1)
      if (!isHad(bucket)) missing.push({ first: bucket, last: bucket })
  return union(missing)
}
