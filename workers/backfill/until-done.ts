import { setTimeout as wait } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { DataError, toReason } from '../../shared/errors.ts'
import type { DatasetQueue } from '../../shared/queue/queues.ts'
import { type Database, isTransient } from '../../shared/store/clickhouse.ts'
import type { Ask } from './ask.ts'

/** Dependencies of a backfill. `now` is the wall clock in Unix milliseconds. */
export interface Stores {
  readonly db: Database
  readonly redis: Redis
  readonly prefix: string
  readonly now: () => number
}

/** One history during its collection. */
export interface Collecting {
  readonly ask: Ask
  readonly queue: DatasetQueue
  readonly stores: Stores
  readonly signal: AbortSignal | undefined
  readonly say: (line: string) => void
}

const POLL_MS = 1_000

/**
 * Polls `isDone` once a second until it returns true or the signal aborts. Waits while a store is unavailable, because
 * no work is lost.
 */
export async function untilDone(
  { ask, signal, say }: Pick<Collecting, 'ask' | 'signal' | 'say'>,
  isDone: () => Promise<boolean>,
): Promise<void> {
  let isAway = false
  while (!signal?.aborted) {
    try {
      if (await isDone()) return
      if (isAway) say(`${ask.title}: the stores are back`)
      isAway = false
    } catch (error) {
      if (!isStoreAway(error)) throw error
      if (!isAway) say(`${ask.title}: waiting for the stores: ${toReason(error)}`)
      isAway = true
    }
    await wait(POLL_MS, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
  }
}

/** Excludes bugs in this program, and statements that ClickHouse rejects permanently. */
function isStoreAway(error: unknown): boolean {
  if (error instanceof DataError) return isTransient(error)
  return !(error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
}
