import { setTimeout as wait } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { DataError, toReason } from '../../shared/errors.ts'
import type { DatasetQueue } from '../../shared/queue/queues.ts'
import { type Database, isPassing } from '../../shared/store/clickhouse.ts'
import type { Ask } from './ask.ts'

/** The stores that a back-fill works with, and the wall clock in Unix milliseconds. */
export interface Stores {
  readonly db: Database
  readonly redis: Redis
  readonly prefix: string
  readonly now: () => number
}

/** One history that is being collected. */
export interface Collecting {
  readonly ask: Ask
  readonly queue: DatasetQueue
  readonly stores: Stores
  readonly signal: AbortSignal | undefined
  readonly say: (line: string) => void
}

const POLL_MS = 1_000

/**
 * Looks once a second until `isDone` says so or the signal ends the watching. A store that is away is waited for: nothing
 * is lost by that.
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

/** Neither a mistake in this program nor a statement that the engine refuses for good. */
function isStoreAway(error: unknown): boolean {
  if (error instanceof DataError) return isPassing(error)
  return !(error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
}
