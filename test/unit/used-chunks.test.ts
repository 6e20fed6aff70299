import { setMaxListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { createCache } from '../../api/cache/cache.ts'
import { toRows } from '../../api/formats/formats.ts'
import { type Series, selectPoints } from '../../api/series/chunks.ts'
import { unqueued } from '../../api/single-flight/single-flight.ts'
import { DAY_MS, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { createHandFeed } from '../support/api.ts'

const DAY = { from: Date.parse('2024-01-02T00:00:00Z'), to: Date.parse('2024-01-03T00:00:00Z') }
const { signal } = new AbortController()
setMaxListeners(0, signal)

/** One point a day, at midnight. */
function writeDay({ from }: TimeRange) {
  const json = `{"timestamp":"${new Date(from).toISOString()}"}`
  return toRows(Buffer.from(json), Uint32Array.from([0, json.length + 1]), Float64Array.of(from), Float64Array.of(from))
}

/** A series whose stored rows are over. `converted` has the range of each conversion of rows to points. */
function setUp() {
  const converted: TimeRange[] = []
  const series: Series = {
    key: 'prices 1',
    dataset: 'prices',
    form: { interval: '5m', order: 'asc', hasLines: false, firstMember: 'timestamp' },
    chunkBuckets: 288,
    read: () => Promise.reject(new Error('points are made from rows')),
    count: () => Promise.reject(new Error('no points are counted')),
    stored: {
      until: DAY.to + 30 * DAY_MS,
      mostChunks: 8,
      read: async (chunks) => chunks.map(() => ({ bytes: Buffer.from('rows'), count: 1 })),
      toPoints: (_, range) => {
        converted.push(range)
        return writeDay(range)
      },
    },
  }
  const db = {} as Database
  const cache = createCache({ maxBytes: 1_000_000, changeFeed: createHandFeed(), db })
  const hour = { from: DAY.from, to: DAY.from + DAY_MS / 24 }
  const request = async (isServed: boolean) => {
    const callbacks: (() => void)[] = []
    const scope = { ...unqueued(signal), onSuccess: (callback: () => void) => void callbacks.push(callback) }
    const { points } = await selectPoints(series, { ...scope, cache, db }, hour)
    expect(points.count).toBe(1)
    if (isServed) for (const callback of callbacks) callback()
  }
  return { converted, hour, request }
}

describe('a chunk with cached rows', () => {
  it('is not used by a request that is not answered', async () => {
    const { converted, hour, request } = setUp()
    await request(false)
    await request(false)
    await request(true)
    expect(converted).toEqual([hour, hour, hour])
  })

  it('is cached as points when it is used again', async () => {
    const { converted, hour, request } = setUp()
    await request(true)
    await request(true)
    await request(true)
    expect(converted).toEqual([hour, { ...DAY, number: expect.any(Number) }])
  })
})
