import { setMaxListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { createCache } from '../../api/cache/cache.ts'
import { toRows } from '../../api/formats/formats.ts'
import { type Series, selectPoints } from '../../api/series/chunks.ts'
import { unqueued } from '../../api/single-flight/single-flight.ts'
import { DAY_MS, type TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { openUnnamed } from '../../shared/unnamed-file.ts'
import { createHandFeed } from '../support/api.ts'
import { silent } from '../support/silent.ts'

const DAY = { from: Date.parse('2024-01-02T00:00:00Z'), to: Date.parse('2024-01-03T00:00:00Z') }
const { signal } = new AbortController()
setMaxListeners(0, signal)

/** One point a day, at midnight. */
function writeDay({ from }: TimeRange) {
  const json = `{"timestamp":"${new Date(from).toISOString()}"}`
  return toRows(Buffer.from(json), Uint32Array.from([0, json.length + 1]), Float64Array.of(from), Float64Array.of(from))
}

/** A series whose stored rows are over. `converted` has the range of each conversion of rows to points. */
function setUp(maxBytes = 1_000_000) {
  const converted: TimeRange[] = []
  const read: number[] = []
  const series: Series = {
    key: 'prices 1',
    dataset: 'prices',
    form: { interval: '5m', order: 'asc', hasLines: false, firstMember: 'timestamp' },
    chunkBuckets: 288,
    read: () => Promise.reject(new Error('points are made from rows')),
    count: () => Promise.reject(new Error('no points are counted')),
    stored: {
      until: DAY.to + 300 * DAY_MS,
      mostChunks: 8,
      read: async (chunks) => {
        read.push((chunks[0] as TimeRange).from)
        return chunks.map(({ from }) => ({ bytes: Buffer.from(`rows of ${from}`), count: from / DAY_MS }))
      },
      toPoints: ({ bytes, count }, range) => {
        converted.push(range)
        expect(String(bytes)).toBe(`rows of ${count * DAY_MS}`)
        return writeDay(range)
      },
    },
  }
  const db = {} as Database
  const spill = { maxBytes: 16 * 1024 * 1024, openFile: openUnnamed, log: silent }
  const cache = createCache({ maxBytes, changeFeed: createHandFeed(), db, spill })
  const hour = { from: DAY.from, to: DAY.from + DAY_MS / 24 }
  const request = async (isServed: boolean, days = 0) => {
    const range = { from: hour.from + days * DAY_MS, to: hour.to + days * DAY_MS }
    const callbacks: (() => void)[] = []
    const scope = { ...unqueued(signal), onSuccess: (callback: () => void) => void callbacks.push(callback) }
    const { points } = await selectPoints(series, { ...scope, cache, db }, range)
    expect(points.count).toBe(1)
    if (isServed) for (const callback of callbacks) callback()
  }
  return { converted, hour, read, request }
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

  it('has its rows on the disk after they were evicted', async () => {
    const { converted, read, request } = setUp(10_000)
    const weeks = Array.from({ length: 20 }, (_, week) => 7 * week)
    for (const days of weeks) await request(true, days)
    expect(read).toHaveLength(weeks.length)
    for (const days of weeks) await request(true, days + 3)
    expect(read).toHaveLength(weeks.length)
    expect(converted).toHaveLength(2 * weeks.length)
  })
})
