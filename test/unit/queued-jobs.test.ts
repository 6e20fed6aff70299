import { describe, expect, it } from 'vitest'
import type { DatasetQueue } from '../../shared/queue/queues.ts'
import { findJobs } from '../../workers/commands/queued-jobs.ts'

const ENQUEUED = Date.parse('2024-05-06T07:05:00Z')
const TAKEN = ENQUEUED + 60_000

/** A queue that returns its jobs in pages. Jobs that disappeared are missing from a page. */
function toQueue(pages: readonly number[]): DatasetQueue {
  const job = { id: 'a', timestamp: ENQUEUED, processedOn: TAKEN, attemptsMade: 0, data: { kind: 'slot', slot: 0 } }
  const getJobs = async (_states: unknown, from: number) => Array.from({ length: pages[from / 200] ?? 0 }, () => job)
  return { name: 'prices', getJobs } as unknown as DatasetQueue
}

describe('findJobs', () => {
  it('returns all jobs if some of a page have disappeared', async () => {
    const found = await findJobs(toQueue([199, 200, 3]), { state: 'waiting', reason: undefined })
    expect(found).toHaveLength(402)
  })

  it.each([
    ['active', TAKEN],
    ['waiting', ENQUEUED],
  ] as const)('returns the start of the %s state', async (state, at) => {
    const [found] = await findJobs(toQueue([1]), { state, reason: undefined })
    expect(found?.listed.at).toBe(at)
  })
})
