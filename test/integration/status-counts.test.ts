import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'

const FIVE_MINUTES = 300_000
const [JANUARY, MARCH] = [Date.parse('2026-01-15T00:00:00Z'), Date.parse('2026-03-15T00:00:00Z')]

const config = createTestConfig()
const commits = createHandFeed()
let now = Date.parse('2026-03-20T00:00:00Z')
let stored: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
/** The months that were counted, by the parameters of the statements. */
let counted: Readonly<Record<string, unknown>>[] = []

beforeAll(async () => {
  stored = await createApiDatabase(config)
  const db: Database = {
    ...stored.db,
    rows: (statement) => {
      if (statement.name === 'count-months') counted.push({ ...statement.params })
      return stored.db.rows(statement)
    },
  }
  api = await startApi({ config, registry: stored.registry, db, commits, now: () => now })
})
afterAll(async () => {
  await api?.close()
  await stored?.drop()
})

const store = async (until: number, points: number, tokens = 2) => {
  const keys = stored.registry.tokens.slice(0, tokens).map(({ key }) => key)
  await storeMarket(stored.writer, { keys, until, points, stepMs: FIVE_MINUTES })
  return { from: until - (points - 1) * FIVE_MINUTES, to: until }
}

/** What the status says after its seconds are over. */
async function readStatus() {
  now += 5_000
  const response = await fetch(`${api.url}/data/status`)
  const body = (await response.json()) as {
    datasets: { dataset: string; rows: number; entities: number; earliest: string }[]
  }
  const { rows, entities, earliest } = body.datasets.find(({ dataset }) => dataset === tokenPrices.name) ?? {}
  return { rows, entities, earliest, cacheControl: response.headers.get('cache-control') }
}

async function countAll() {
  const [row] = await stored.writer.rows({
    name: 'count',
    sql: 'SELECT count() AS rows, uniqExact(token) AS entities, min(observed_at) AS earliest FROM token_prices FINAL',
    schema: z.object({ rows: z.int(), entities: z.int(), earliest: z.string() }),
  })
  return { ...row, earliest: new Date(String(row?.earliest)).toISOString() }
}

const expectTrue = async () => expect(await readStatus()).toMatchObject(await countAll())

describe('what the status counts', () => {
  it('is all there is at first, and only the months of a commit after it', async () => {
    await store(JANUARY, 100)
    commits.commit(tokenPrices.name, await store(MARCH, 50))
    await expectTrue()
    counted = []
    await expectTrue()
    expect(counted).toEqual([])
    commits.commit(tokenPrices.name, await store(MARCH + FIVE_MINUTES, 20, 3))
    await expectTrue()
    expect(counted).toEqual([{ from0: Date.parse('2026-03-01'), to0: Date.parse('2026-04-01') }])
    commits.commit(tokenPrices.name, await store(JANUARY, 200))
    await expectTrue()
    expect(counted[1]).toEqual({ from0: Date.parse('2026-01-01'), to0: Date.parse('2026-02-01') })
  })

  it('is counted anew where a commit does not say what it concerns, and when commits may have been missed', async () => {
    await store(JANUARY + 1000 * FIVE_MINUTES, 10)
    commits.commit(tokenPrices.name)
    await expectTrue()
    commits.away(true)
    await store(MARCH + 1000 * FIVE_MINUTES, 10)
    await expectTrue()
    await store(MARCH + 2000 * FIVE_MINUTES, 10)
    await expectTrue()
    commits.away(false)
    await expectTrue()
  })

  it('may be reused for as long as it holds, by when it is sent', async () => {
    expect((await readStatus()).cacheControl).toBe('public, max-age=5, stale-while-revalidate=10')
    now += 3_000
    const kept = await fetch(`${api.url}/data/status`)
    expect(kept.headers.get('server-timing')).toMatch(/^cache/)
    expect(kept.headers.get('cache-control')).toBe('public, max-age=2, stale-while-revalidate=4')
  })
})
