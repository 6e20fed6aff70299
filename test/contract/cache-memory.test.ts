import { afterAll, beforeAll, expect, it } from 'vitest'
import { DAY_MS } from '../../shared/intervals.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'

const NOW = Date.parse('2024-03-10T12:00:00Z')
const DAYS = 14
const STEP = 300_000
const BUDGETS = { much: 64 * 2 ** 20, little: 300_000, none: 0 }
/** The parts of the smallest budget for complete answers and for parts of series. */
const ROOM = { answers: BUDGETS.little / 8, pieces: (BUDGETS.little * 7) / 8 }
const OF = ['answers', 'pieces'] as const
type Budget = keyof typeof BUDGETS

const metrics = { much: createMetrics('api'), little: createMetrics('api'), none: createMetrics('api') }
let database: Awaited<ReturnType<typeof createApiDatabase>>
let token: Token
let apis: Record<Budget, TestApi>
beforeAll(async () => {
  const config = createTestConfig()
  database = await createApiDatabase(config)
  token = getToken(database.registry, 'UNI')
  await storeMarket(database.writer, { keys: [token.key], until: NOW, points: (DAYS * DAY_MS) / STEP, stepMs: STEP })
  const changeFeed = createHandFeed()
  const start = (budget: Budget) =>
    startApi({
      ...{ ...database, changeFeed, metrics: metrics[budget], now: () => NOW },
      config: { ...config, api: { ...config.api, cacheBytes: BUDGETS[budget] } },
    })
  apis = { much: await start('much'), little: await start('little'), none: await start('none') }
})
afterAll(async () => {
  await Promise.all(Object.values(apis ?? {}).map((api) => api.close()))
  await database?.drop()
})

/** Reads the cached bytes and the cache limits from the metrics. */
async function read(budget: Budget) {
  const find = async (name: string) => (await metrics[budget].getSingleMetric(name)?.get())?.values ?? []
  const bytes = (await find('api_kept_bytes')).map(({ labels, value }) => [labels.of, value] as const)
  return { bytes: new Map(bytes), room: (await find('api_kept_room_bytes')).map(({ value }) => value) }
}

async function request(api: TestApi, path: string): Promise<string> {
  const response = await fetch(api.url + path)
  expect([path, response.status]).toEqual([path, 200])
  return response.text()
}

it('the response cache stays within its byte limit and reports its size in the metrics', async () => {
  const [before, little, nothing] = await Promise.all([read('much'), read('little'), read('none')])
  expect(little.room).toEqual([ROOM.answers, ROOM.pieces])
  const most = { answers: 0, pieces: 0 }
  for (let days = 0; days < 12; days++) {
    const start = NOW - (2 + days) * DAY_MS
    const path = `/data/tokens/historic-financial?id=${token.id}&interval=5m&start=${start}&end=${start + DAY_MS}&limit=${300 - days}`
    // A response built from chunks is cached at the second request.
    for (let times = 0; times < 2; times++) {
      const [one, second, third] = await Promise.all(Object.values(apis).map((api) => request(api, path)))
      expect(one, path).toBe(third)
      expect(second, path).toBe(third)
    }
    const { bytes } = await read('little')
    for (const of of OF) {
      expect(bytes.get(of), of).toBeLessThanOrEqual(ROOM[of])
      most[of] = Math.max(most[of], bytes.get(of) ?? 0)
    }
  }
  expect(most.answers).toBeGreaterThan(ROOM.answers / 2)
  expect(most.pieces).toBeGreaterThan(ROOM.pieces / 5)
  const after = await read('much')
  for (const of of OF) expect(after.bytes.get(of)).toBeGreaterThan(before.bytes.get(of) ?? 0)
  expect([...nothing.bytes.values(), ...(await read('none')).bytes.values()]).toEqual([0, 0, 0, 0])
})
