import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'

const NOW = Date.parse('2026-12-01T00:02:00Z')
const STEP = 300_000
const POINTS = 20_000
const DAY = 86_400_000

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
/** The same service without a cache, as the reference. */
let plain: TestApi
let path: string
let uni: string
let key: number
/** Ranges that were read from the database, in hours before NOW. */
let reads: [number, number][] = []

beforeAll(async () => {
  database = await createApiDatabase(config)
  const token = getToken(database.registry, 'UNI')
  key = token.key
  uni = token.id
  path = `/data/tokens/historic-financial?id=${uni}&interval=5m&start=${NOW - 60 * DAY}`
  await storeMarket(database.writer, { keys: [key], until: NOW - 60_000, points: POINTS, stepMs: STEP })
  const db: Database = {
    ...database.db,
    stream: (statement) => {
      // Statements for short ranges number their parameters.
      const { from0, to0, from = from0, to = to0 } = statement.params as Record<'from' | 'to' | 'from0' | 'to0', number>
      reads.push([Math.round((NOW - from) / 3_600_000), Math.round((NOW - to) / 3_600_000)])
      return database.db.stream(statement)
    },
  }
  const now = () => NOW
  api = await startApi({ config, ...database, db, changeFeed, now })
  const uncached = { ...config, api: { ...config.api, cacheBytes: 0 } }
  plain = await startApi({ config: uncached, ...database, changeFeed, now })
})

afterAll(async () => {
  await api?.close()
  await plain?.close()
  await database?.drop()
})

/** Fetches the series, compares it with the service without a cache, and returns the ranges read for it. */
async function request(query = '', id = uni) {
  reads = []
  const of = path.replace(/id=\w+/, `id=${id}`)
  const response = await fetch(api.url + of + query)
  const [body, tag] = [await response.text(), response.headers.get('etag')]
  const expected = await fetch(plain.url + of + query)
  expect(body).toBe(await expected.text())
  expect(tag).toBe(expected.headers.get('etag'))
  expect(JSON.parse(body).data).toHaveLength(Number(response.headers.get('x-series-points')))
  return { body, tag, reads }
}

/** Stores an observation before the first one of its bucket. */
const correct = async (at: number) => {
  await storeMarket(database.writer, { keys: [key], until: at, points: 1, stepMs: STEP })
  changeFeed.commit('prices', { from: at, to: at })
}

/** Hours that were read; a chunk of 5-minute points covers a day. */
const countHours = (of: readonly [number, number][]) => of.reduce((sum, [from, to]) => sum + from - to, 0)

it('series cache: reads a long series once, and its open end again after a change event', async () => {
  const first = await request()
  expect(countHours(first.reads)).toBeLessThan(62 * 24)
  const again = await request()
  expect(again.body).toBe(first.body)
  expect(again.reads).toEqual([])
  changeFeed.commit('prices', { from: NOW - 60_000, to: NOW - 60_000 })
  const { reads } = await request()
  expect(reads).toHaveLength(1)
  // The last bucket of the chunk before may contain an observation after its end.
  expect(countHours(reads)).toBeLessThanOrEqual(48)
})

it('series cache: shares chunks between overlapping long ranges, and between short ones', async () => {
  await request()
  expect((await request(`&end=${NOW - 20 * DAY}`)).reads).toEqual([])
  // The points of a short answer have no line breaks.
  await request(`&end=${NOW - 57 * DAY}`)
  expect((await request(`&end=${NOW - 59 * DAY}`)).reads).toEqual([])
})

it('series cache: reads only the corrected chunk after a change in the past', async () => {
  const before = await request()
  const at = NOW - 30 * DAY - 90_000
  await correct(at)
  const after = await request()
  expect(after.tag).not.toBe(before.tag)
  const hours = (NOW - at) / 3_600_000
  expect(after.reads.filter(([from, to]) => from > hours && to < hours)).toHaveLength(1)
  expect(countHours(after.reads)).toBeLessThanOrEqual(48)
  expect((await request()).reads).toEqual([])
})

it('series cache: reuses nothing while the change stream is unavailable', async () => {
  changeFeed.unavailable(true)
  const { reads } = await request()
  expect((await request()).reads).toEqual(reads)
  expect(countHours(reads)).toBeGreaterThan(60 * 24)
  changeFeed.unavailable(false)
  expect((await request()).reads).toEqual(reads)
  expect((await request()).reads).toEqual([])
})

it('series cache: reads only the chunks that a limit needs', async () => {
  changeFeed.commit('prices')
  const { body, reads } = await request('&limit=6000')
  expect(JSON.parse(body).data).toHaveLength(6000)
  expect(reads).toHaveLength(1)
  expect(countHours(reads)).toBeLessThan(24 * 24)
})

it('series cache: detects changed prices of a token without supplies', async () => {
  const aave = getToken(database.registry, 'AAVE')
  const store = (until: number, points: number, price: number) =>
    storeMarket(database.writer, { keys: [aave.key], until, points, stepMs: STEP, price, supplies: false })
  await store(NOW - 60_000, POINTS, 1.5)
  const before = await request('', aave.id)
  const at = NOW - 60_000 - 9_000 * STEP
  await store(at, 1, 7.25)
  changeFeed.commit('prices', { from: at, to: at })
  const after = await request('', aave.id)
  expect(after.body).not.toBe(before.body)
  expect(after.tag).not.toBe(before.tag)
})
