import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createCounts } from '../../api/coverage/counts.ts'
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
/** What a count waits for before it begins. */
let held: Promise<void> | undefined
/** Of the newest other statement; aborted once nobody waits for its answer. */
let abandoned: AbortSignal | undefined

let db: Database

beforeAll(async () => {
  stored = await createApiDatabase(config)
  db = {
    ...stored.db,
    rows: async (statement) => {
      if (statement.name === 'count-months') {
        counted.push({ ...statement.params })
        await held
      } else abandoned = statement.signal
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

  it('is counted to its end when who asked has left, once for all who ask then', async () => {
    commits.commit(tokenPrices.name, await store(MARCH + 3000 * FIVE_MINUTES, 10))
    counted = []
    let release = () => {}
    held = new Promise((resolve) => {
      release = resolve
    })
    now += 5_000
    const leaver = new AbortController()
    const left = fetch(`${api.url}/data/status`, { signal: leaver.signal }).catch(() => 'left')
    await expect.poll(() => counted.length).toBe(1)
    leaver.abort()
    expect(await left).toBe('left')
    await expect.poll(() => abandoned?.aborted).toBe(true)
    const others = [readStatus(), readStatus()]
    // This one is not in what is being counted.
    commits.commit(tokenPrices.name, await store(JANUARY + 3000 * FIVE_MINUTES, 10))
    release()
    held = undefined
    const all = await countAll()
    for (const other of others) expect(await other).toMatchObject(all)
    expect(counted.length).toBe(2)
  })

  it('is counted in parts where one statement would read too many rows', async () => {
    const { rows, entities } = await countAll()
    counted = []
    expect((await createCounts(commits, db, 1).read()).get(tokenPrices.name)).toMatchObject({ rows, entities })
    expect(counted.length).toBeGreaterThan(5)
  })

  it('is not told without a month whose rows a server refuses to read', async () => {
    const refusing: Database = {
      ...db,
      rows: (statement) =>
        db.rows({
          ...statement,
          settings: { max_rows_to_read: '1', read_overflow_mode: 'throw', ...statement.settings },
        }),
    }
    await expect(createCounts(commits, refusing, 1).read()).rejects.toMatchObject({ code: 'storage' })
  })

  it('is not counted from the beginning when counting broke off', async () => {
    const { rows, entities } = await countAll()
    counted = []
    await createCounts(commits, db, 1).read()
    const statements = counted.length
    counted = []
    const breaking: Database = {
      ...db,
      rows: (statement) => (counted.length === statements - 2 ? Promise.reject(new Error('away')) : db.rows(statement)),
    }
    const counts = createCounts(commits, breaking, 1)
    await expect(counts.read()).rejects.toThrow('away')
    counted = []
    expect((await counts.read()).get(tokenPrices.name)).toMatchObject({ rows, entities })
    expect(counted.length).toBeLessThan(statements / 2)
  })

  it('may be reused for as long as it holds, by when it is sent', async () => {
    expect((await readStatus()).cacheControl).toBe('public, max-age=5, stale-while-revalidate=10')
    now += 3_000
    const kept = await fetch(`${api.url}/data/status`)
    expect(kept.headers.get('server-timing')).toMatch(/^cache/)
    expect(kept.headers.get('cache-control')).toBe('public, max-age=2, stale-while-revalidate=4')
  })
})
