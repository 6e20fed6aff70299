import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type Database, probe } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { documentedRequests } from '../support/documented.ts'
import { startStatementDoor } from '../support/statement-door.ts'

const config = createTestConfig({ API_ANSWER_SECONDS: '1' })

let stored: Awaited<ReturnType<typeof createApiDatabase>>
let door: Awaited<ReturnType<typeof startStatementDoor>>
let db: Database
let api: TestApi
beforeAll(async () => {
  stored = await createApiDatabase(config)
  door = await startStatementDoor(config.clickhouse.url)
  db = createDatabase({ ...config.clickhouse, url: door.url }, 'read')
  // Without a cache every request needs its statements.
  const uncached = { ...config, api: { ...config.api, cacheBytes: 0 } }
  api = await startApi({ config: uncached, db, registry: stored.registry, changeFeed: createHandFeed() })
})
afterAll(async () => {
  await api.close()
  await Promise.all([db.close(), door.close()])
  await stored.drop()
})

/** The first documented request of each route, and all formats of tables. */
const urls = [...new Map(documentedRequests.map(({ route, url }) => [route.path, { route, url }])).values()].flatMap(
  ({ route, url }) => [
    url,
    ...(route.record === undefined ? [] : ['csv', 'parquet'].map((format) => `${url}&format=${format}`)),
  ],
)

async function readAll(): Promise<Map<string, number>> {
  const statuses = new Map<string, number>()
  const waiting = [...urls]
  const work = async () => {
    for (let url = waiting.pop(); url !== undefined; url = waiting.pop()) {
      const response = await fetch(api.url + url)
      await response.arrayBuffer()
      statuses.set(url, response.status)
    }
  }
  await Promise.all(Array.from({ length: 4 }, work))
  return statuses
}

describe.each(['reset', 'stall'] as const)('a ClickHouse whose bodies end in the middle (%s)', (how) => {
  it('makes every route answer 503, or 200 without a statement', async () => {
    door.endBodies('complete')
    const before = await readAll()
    door.endBodies(how)
    const during = await readAll()
    expect([...during].filter(([, status]) => status === 500)).toEqual([])
    expect([...during].filter(([url, status]) => status !== 503 && status !== before.get(url))).toEqual([])
    expect([...during.values()].filter((status) => status === 503).length).toBeGreaterThan(urls.length / 4)
    expect(during.get('/data/status?')).toBe(503)
  })

  it('makes every reader of a stream fail with a storage error', async () => {
    door.endBodies(how)
    const signal = AbortSignal.timeout(500)
    await expect(probe(db, { signal })).rejects.toMatchObject({ code: 'storage', cause: expect.anything() })
    const rows = db.stream({ name: 'rows', sql: 'SELECT 1', signal: AbortSignal.timeout(500) })
    const readAfterFailure = async () => {
      const stream = await rows
      await new Promise((resolve) => stream.once('close', resolve))
      for await (const _ of stream);
    }
    await expect(readAfterFailure()).rejects.toMatchObject({ code: 'storage' })
  })
})
