import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { countExecuted } from '../support/executed-files.ts'
import { storeMarket } from '../support/market.ts'

const STEP_MS = 300_000
const NOW = Date.parse('2024-06-03T12:00:00Z')

let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
const feed = createHandFeed(() => NOW)

beforeAll(async () => {
  const config = createTestConfig()
  database = await createApiDatabase(config)
  const { registry, writer, db } = database
  const keys = registry.tokens.slice(0, 5).map(({ key }) => key)
  await storeMarket(writer, { keys, until: NOW - STEP_MS, points: 3000, stepMs: STEP_MS })
  api = await startApi({ config, db, registry, changeFeed: feed, now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

/** The checks of readiness and of slow readers run by timers, on a busy machine during every request. */
const BY_TIMER = ['shared/store/readiness.ts', 'api/http/slow-readers.ts']

/** Sends a request and returns the API's own files that ran for it. */
async function toFiles(path: string): Promise<string[]> {
  const request = async () => {
    const response = await fetch(
      `${api.url}${path.replace(/id=(\d)/, (_, index) => `id=${database.registry.tokens[index]?.id}`)}`,
      { headers: { 'Accept-Encoding': 'gzip' } },
    )
    const text = await response.text()
    expect([response.status, text.slice(0, 300)]).toEqual([200, expect.anything()])
  }
  return (await countExecuted(request)).filter((file) => !file.startsWith('test/') && !BY_TIMER.includes(file))
}

/** A reader of the code has to know these files to follow a request of this kind. The assertion shows all of them. */
const atMost = (most: number) => (files: readonly string[]) => files.length <= most

describe('own files that the API executes', () => {
  it.each([
    ['for a list that is not cached', '/data/tokens?sort=-financialData.marketCap&limit=5', '/data/tokens?limit=2', 30],
    [
      'for a day of prices that is not cached',
      '/data/tokens/historic-financial?id=1&interval=5m&start=2024-06-01&end=2024-06-02',
      '/data/tokens/historic-financial?id=2&interval=5m&start=2024-06-01&end=2024-06-02',
      40,
    ],
  ])('are few %s', async (_name, path, candidate, most) => {
    await toFiles(candidate)
    feed.commit('prices')
    const files = await toFiles(path)
    expect(files).toSatisfy(atMost(most))
  })

  it('are at most 8 for a cached response', async () => {
    const path = '/data/tokens?limit=3'
    await toFiles(path)
    await toFiles(path)
    const runs = [await toFiles(path), await toFiles(path), await toFiles(path)]
    // Other timers run during some of them.
    const files = runs.reduce((all, run) => all.filter((file) => run.includes(file)))
    expect(files).toSatisfy(atMost(8))
  })
})
