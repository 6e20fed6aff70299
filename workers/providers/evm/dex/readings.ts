import { z } from 'zod'
import { toBucketStart } from '../../../../shared/intervals.ts'
import type { Token } from '../../../../shared/registry/entities.ts'
import { type JobState, recall } from '../../../job/state.ts'
import type { Cursors } from '../logs/turns.ts'
import type { Pool } from './pools.ts'
import { toPoolsOf } from './stored-pools.ts'

/** When the current readings of tokens began, in Unix milliseconds, by token address. */
const times = z.record(z.string(), z.int())

interface PoolReading {
  readonly pools: readonly Pool[]
  /** Returns whether a pool has no cursor yet, by address. Such a pool starts at `startsAt` (Unix milliseconds). */
  isFirst(address: string): boolean
  /** Returns whether a pool was read beyond the newest final block, because the node lags behind. */
  isAhead(address: string): boolean
  readonly startsAt: number
  /** The time of the newest final block, in Unix milliseconds. */
  readonly readTo: number
}

/** The times from which the tokens of a chain have been read without a gap. */
export interface TokenReadings {
  /** Returns the time from which all pools of a token were read, in Unix milliseconds. */
  beganAt(token: Pick<Token, 'contractAddress'>): number
  /** Stores the times for the next run. `moved` are the cursors that this run has moved. */
  note(tokens: readonly Token[], run: { readonly finished: readonly Token[]; readonly moved: Cursors }): void
}

/**
 * Opens the reading times of a chain's tokens. The cursor of a pool does not say for which of its two tokens trades were
 * stored, or from when. So the time is stored per token: it stays until all pools are read, and then becomes the start of
 * the first bucket that was not read to its end.
 */
export async function openReadings(
  state: JobState,
  chain: string,
  { pools, isFirst, isAhead, startsAt, readTo }: PoolReading,
): Promise<TokenReadings> {
  const name = `since.${chain}`
  const stored = new Map(Object.entries((await recall(state, name, times)) ?? {}))
  const beganAt = ({ contractAddress }: Pick<Token, 'contractAddress'>) => {
    const own = toPoolsOf([contractAddress], pools)
    const before = stored.get(contractAddress)
    // A pool with a cursor was read before, but not for this token.
    if (before === undefined) return own.every(({ address }) => isFirst(address)) ? startsAt : readTo
    return own.some(({ address }) => isFirst(address)) ? Math.max(before, startsAt) : before
  }
  /** Whether the reading began at a cursor after `readTo`, whose time is not known. */
  const isUnknown = ({ contractAddress }: Pick<Token, 'contractAddress'>) =>
    !stored.has(contractAddress) && toPoolsOf([contractAddress], pools).some(({ address }) => isAhead(address))
  return {
    beganAt,
    note(tokens, { finished, moved }) {
      const isFinished = new Set(finished.map(({ key }) => key))
      const next = new Map(stored)
      // Trades of tokens that were not requested are not stored, so their next reading begins later than this cursor.
      for (const { address, token, quote } of pools)
        if (moved.has(address) || isFirst(address)) for (const end of [token, quote]) next.delete(end)
      for (const token of tokens) {
        if (isUnknown(token)) continue
        const since = beganAt(token)
        const unread = Math.max(since, toBucketStart(readTo, '1h'))
        next.set(token.contractAddress, isFinished.has(token.key) ? unread : since)
      }
      state.set(name, JSON.stringify(Object.fromEntries(next)))
    },
  }
}
