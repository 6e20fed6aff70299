import { setTimeout as wait } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { DataError, toReason } from '../../shared/errors.ts'
import type { DatasetQueue } from '../../shared/queue/queues.ts'
import { type Database, isTransient } from '../../shared/store/store.ts'
import type { BackfillRequest } from './request.ts'

/** Dependencies of a backfill. `now` is the wall clock in Unix milliseconds. */
export interface Stores {
  readonly db: Database
  readonly redis: Redis
  readonly prefix: string
  readonly now: () => number
}

/** One history during its collection. */
export interface Collecting {
  readonly request: BackfillRequest
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
  { request, signal, say }: Pick<Collecting, 'request' | 'signal' | 'say'>,
  isDone: () => Promise<boolean>,
): Promise<void> {
  let isUnavailable = false
  while (!signal?.aborted) {
    try {
      if (await isDone()) return
      if (isUnavailable) say(`${request.title}: the stores are back`)
      isUnavailable = false
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error
      if (!isUnavailable) say(`${request.title}: waiting for the stores: ${toReason(error)}`)
      isUnavailable = true
    }
    await wait(POLL_MS, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
  }
}

/** Excludes bugs in this program, and statements that ClickHouse rejects permanently. */
function isStoreUnavailable(error: unknown): boolean {
  if (error instanceof DataError) return isTransient(error)
  return !(error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
}
