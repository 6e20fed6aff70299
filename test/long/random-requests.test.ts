import { afterAll, beforeAll, expect, it } from 'vitest'
import { runFuzz } from '../fuzz/run.ts'
import { runStalling } from '../fuzz/stalling.ts'
import { createApiDatabase, createHandFeed, startApi } from '../support/api.ts'
import { SEED } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
/** Half of them while ClickHouse stalls. */
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 60_000)

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  console.log(`TEST_SEED=${SEED} FUZZ_REQUESTS=${REQUESTS}`)
})
afterAll(() => database?.drop())

it('the API returns valid responses, and no 5xx status but 503, to random requests', async () => {
  const api = await startApi({ ...database, config, changeFeed: createHandFeed(), now: () => NOW })
  try {
    const requests = Math.ceil(REQUESTS / 2)
    const { faults, statuses } = await runFuzz({ url: api.url, requests, seed: SEED, concurrency: 16, now: NOW })
    console.log('complete bodies:', Object.fromEntries(statuses))
    expect(faults).toEqual([])
  } finally {
    await api.close()
  }
})

it('the API returns no 5xx status but 503 while ClickHouse stalls or breaks off in bodies', async () => {
  const requests = Math.ceil(REQUESTS / 2)
  const { faults, statuses, aborted } = await runStalling(config, database, { requests, seed: SEED, now: NOW })
  console.log('stalling bodies:', Object.fromEntries(statuses), `${aborted} aborted`)
  expect(faults).toEqual([])
})
