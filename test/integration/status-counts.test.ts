import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createCounts } from '../../api/coverage/counts.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'

const FIVE_MINUTES = 300_000
const [JANUARY, MARCH] = [Date.parse('2026-01-15T00:00:00Z'), Date.parse('2026-03-15T00:00:00Z')]

const config = createTestConfig()
const changeFeed = createHandFeed()
let now = Date.parse('2026-03-20T00:00:00Z')
let stored: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
/** The counted months, from the parameters of the statements. */
let counted: Readonly<Record<string, unknown>>[] = []
/** A count waits for this promise before it starts. */
let held: Promise<void> | undefined
/** Signal of the newest other statement; aborted when no request waits for its result. */
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
  api = await startApi({ config, registry: stored.registry, db, changeFeed, now: () => now })
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

/** The status after its cache time. */
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

describe('counts of GET /data/status', () => {
  it('read all rows first, and later only the months of a change event', async () => {
    await store(JANUARY, 100)
    changeFeed.commit(tokenPrices.name, await store(MARCH, 50))
    await expectTrue()
    counted = []
    await expectTrue()
    expect(counted).toEqual([])
    changeFeed.commit(tokenPrices.name, await store(MARCH + FIVE_MINUTES, 20, 3))
    await expectTrue()
    expect(counted).toEqual([{ from0: Date.parse('2026-03-01'), to0: Date.parse('2026-04-01') }])
    changeFeed.commit(tokenPrices.name, await store(JANUARY, 200))
    await expectTrue()
    expect(counted[1]).toEqual({ from0: Date.parse('2026-01-01'), to0: Date.parse('2026-02-01') })
  })

  it('are read again after a change event without a range, and after missed events', async () => {
    await store(JANUARY + 1000 * FIVE_MINUTES, 10)
    changeFeed.commit(tokenPrices.name)
    await expectTrue()
    changeFeed.unavailable(true)
    await store(MARCH + 1000 * FIVE_MINUTES, 10)
    await expectTrue()
    await store(MARCH + 2000 * FIVE_MINUTES, 10)
    await expectTrue()
    changeFeed.unavailable(false)
    await expectTrue()
  })

  it('complete after their client disconnected, once for all waiting requests', async () => {
    changeFeed.commit(tokenPrices.name, await store(MARCH + 3000 * FIVE_MINUTES, 10))
    counted = []
    let release = () => {}
    held = new Promise((resolve) => {
      release = resolve
    })
    now += 5_000
    const leaver = new AbortController()
    const disconnected = fetch(`${api.url}/data/status`, { signal: leaver.signal }).catch(() => 'left')
    await expect.poll(() => counted.length).toBe(1)
    leaver.abort()
    expect(await disconnected).toBe('left')
    await expect.poll(() => abandoned?.aborted).toBe(true)
    const rest = [readStatus(), readStatus()]
    // The running count excludes these rows.
    changeFeed.commit(tokenPrices.name, await store(JANUARY + 3000 * FIVE_MINUTES, 10))
    release()
    held = undefined
    const all = await countAll()
    for (const second of rest) expect(await second).toMatchObject(all)
    expect(counted.length).toBe(2)
  })

  it('use several statements if one would read too many rows', async () => {
    const { rows, entities } = await countAll()
    counted = []
    expect((await createCounts(changeFeed, db, 1).read()).get(tokenPrices.name)).toMatchObject({ rows, entities })
    expect(counted.length).toBeGreaterThan(5)
  })

  it('fail if the server rejects the rows of a month', async () => {
    const refusing: Database = {
      ...db,
      rows: (statement) =>
        db.rows({
          ...statement,
          settings: { max_rows_to_read: '1', read_overflow_mode: 'throw', ...statement.settings },
        }),
    }
    await expect(createCounts(changeFeed, refusing, 1).read()).rejects.toMatchObject({ code: 'storage' })
  })

  it('resume after a failure', async () => {
    const { rows, entities } = await countAll()
    counted = []
    await createCounts(changeFeed, db, 1).read()
    const statements = counted.length
    counted = []
    const breaking: Database = {
      ...db,
      rows: (statement) => (counted.length === statements - 2 ? Promise.reject(new Error('away')) : db.rows(statement)),
    }
    const counts = createCounts(changeFeed, breaking, 1)
    await expect(counts.read()).rejects.toThrow('away')
    counted = []
    expect((await counts.read()).get(tokenPrices.name)).toMatchObject({ rows, entities })
    expect(counted.length).toBeLessThan(statements / 2)
  })

  it('have a max-age of their remaining cache time', async () => {
    expect((await readStatus()).cacheControl).toBe('public, max-age=5, stale-while-revalidate=10')
    now += 3_000
    const cached = await fetch(`${api.url}/data/status`)
    expect(cached.headers.get('server-timing')).toMatch(/^cache/)
    expect(cached.headers.get('cache-control')).toBe('public, max-age=2, stale-while-revalidate=4')
  })
})
