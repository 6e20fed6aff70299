import { afterAll, beforeAll, expect, it } from 'vitest'
import { runFuzz } from '../fuzz/run.ts'
import { runStalling } from '../fuzz/stalling.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let [memory, engine]: TestApi[] = []

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  const options = { ...database, changeFeed: createHandFeed(), now: () => NOW }
  memory = await startApi({ ...options, config })
  engine = await startApi({ ...options, config: { ...config, api: { ...config.api, cacheBytes: 0 } } })
})
afterAll(async () => {
  await Promise.all([memory?.close(), engine?.close()])
  await database?.drop()
})

it('the API returns valid responses to random requests, equal with and without a cache', async () => {
  const [url, against] = [memory?.url ?? '', engine?.url ?? '']
  const { statuses, faults } = await runFuzz({
    url,
    against,
    requests: countCases(160),
    seed: SEED,
    concurrency: 4,
    now: NOW,
  })
  expect(faults).toEqual([])
  expect(statuses.get(200)).toBeGreaterThan(20)
  expect(statuses.get(400)).toBeGreaterThan(8)
  expect(statuses.get(404)).toBeGreaterThan(0)
})

it('the API keeps serving while clients disconnect at random times', async () => {
  const url = engine?.url ?? ''
  const { faults, remaining } = await runFuzz({
    url,
    requests: countCases(400),
    seed: SEED,
    concurrency: 16,
    disconnecting: 0.7,
    now: NOW,
  })
  expect(faults).toEqual([])
  expect(remaining).toBeGreaterThan(20)
  expect((await fetch(`${url}/data/tokens?limit=1`)).status).toBe(200)
})

it('the API returns no 5xx status but 503 while ClickHouse stalls or breaks off in bodies', async () => {
  const options = { requests: countCases(150), seed: SEED, now: NOW }
  const { statuses, faults } = await runStalling(config, database, options)
  expect(faults).toEqual([])
  expect(statuses.get(200)).toBeGreaterThan(4)
  expect(statuses.get(503)).toBeGreaterThan(4)
})
