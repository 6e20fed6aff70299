import { setMaxListeners } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DAY_MS } from '../../shared/intervals.ts'
import { toDatabaseCheck } from '../../shared/ops/ops-server.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { startStatementDoor, toValues } from '../support/statement-door.ts'

const config = createTestConfig()
/** More than the database connections. */
const MANY = 40
const [PLACES, WAITING] = [2, 32]
const END = Date.parse('2024-01-01T00:00:00Z')

let stored: Awaited<ReturnType<typeof createApiDatabase>>
let door: Awaited<ReturnType<typeof startStatementDoor>>
let db: Database
let api: TestApi
beforeAll(async () => {
  stored = await createApiDatabase(config)
  door = await startStatementDoor(config.clickhouse.url)
  db = createDatabase({ ...config.clickhouse, url: door.url }, 'read')
  api = await startApi({ config, db, registry: stored.registry, changeFeed: createHandFeed() })
})
afterAll(async () => {
  await api.close()
  await Promise.all([db.close(), door.close()])
  await stored.drop()
})

/** Another API behind the same proxy, without any request yet. */
async function startSecond(options: Pick<Parameters<typeof startApi>[0], 'queue' | 'stopping'> = {}) {
  const fresh = createDatabase({ ...config.clickhouse, url: door.url }, 'read')
  const second = await startApi({
    config,
    db: fresh,
    registry: stored.registry,
    changeFeed: createHandFeed(),
    ...options,
  })
  return { url: second.url, close: async () => void (await Promise.all([second.close(), fresh.close()])) }
}

/** The days of series whose statements have arrived. */
const toDays = () => door.statements.flatMap((statement) => toValues(statement, 'from'))

/** The number of readiness checks: statements without parameters. */
const countPings = () =>
  door.statements.filter(({ query }) => ![...query.keys()].some((name) => name.startsWith('param_'))).length

const isReady = async () => (await fetch(`${api.url}/health/ready`)).status

describe('GET /health/ready', () => {
  it('returns 200 while every connection runs a long statement', async () => {
    const load = new AbortController()
    setMaxListeners(0, load.signal)
    const statement = {
      name: 'load',
      sql: 'SELECT sleepEachRow(3) FROM numbers(3) SETTINGS max_block_size = 1',
      schema: z.unknown(),
      signal: load.signal,
    }
    const loaded = Array.from({ length: MANY }, () => db.rows(statement))
    expect(await isReady()).toBe(200)
    await toDatabaseCheck(db)()
    load.abort(new Error('enough'))
    const outcomes = await Promise.allSettled(loaded)
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: MANY }, () => 'rejected'))
  })

  it('returns 200 while the limit of concurrent requests is reached and the queue is full', async () => {
    const second = await startSecond({ queue: { slots: PLACES, maxWaiting: WAITING, clock: () => 0 } })
    door.hold()
    const before = toDays().length
    const refused: string[] = []
    // One day of each week: no request shares the statement of another.
    const requested = Array.from({ length: PLACES + WAITING + 1 }, async (_, n) => {
      const end = END - 7 * n * DAY_MS
      const day = `start=${end - DAY_MS}&end=${end}`
      const answer = await fetch(`${second.url}/data/tokens/historic-financial?interval=5m&name=Uniswap&${day}`)
      if (answer.status === 503) refused.push(await answer.text())
    })
    await expect.poll(() => refused).toEqual([expect.stringContaining('Too many requests are waiting for answers')])
    await expect.poll(() => new Set(toDays().slice(before)).size).toBe(PLACES)
    const countQueries = countPings()
    const answer = fetch(`${second.url}/health/ready`)
    await expect.poll(() => countPings()).toBe(countQueries + 1)
    expect((await fetch(`${second.url}/health/live`)).status).toBe(200)
    door.release()
    expect((await answer).status).toBe(200)
    await Promise.all(requested)
    await second.close()
  })

  it('runs one statement for any number of datasets and clients', async () => {
    const second = await startSecond()
    const before = door.statements.length
    const target = () => fetch(`${second.url}/health/ready`).then(({ status }) => status)
    expect(await Promise.all(Array.from({ length: MANY }, target))).toEqual(Array.from({ length: MANY }, () => 200))
    expect(await target()).toBe(200)
    expect(door.statements.length - before).toBe(1)
    await second.close()
  })

  it('returns 503 within seconds if the database is down or does not respond', async () => {
    const gone = await startStatementDoor(config.clickhouse.url)
    const db = createDatabase({ ...config.clickhouse, url: gone.url }, 'read')
    const second = await startApi({ config, db, registry: stored.registry, changeFeed: createHandFeed() })
    const target = async () => (await fetch(`${second.url}/health/ready`)).status
    expect(await target()).toBe(200)
    const since = performance.now()
    gone.hold()
    await expect.poll(target).toBe(503)
    expect(performance.now() - since).toBeLessThan(15_000)
    gone.release()
    await expect.poll(target).toBe(200)
    await gone.close()
    await expect.poll(target).toBe(503)
    await second.close()
    await db.close()
  })

  it('returns 503 if the stop signal arrives while the database is slow to answer', async () => {
    const stopping = new AbortController()
    const second = await startSecond({ stopping: stopping.signal })
    door.hold()
    const before = countPings()
    const answer = fetch(`${second.url}/health/ready`)
    await expect.poll(() => countPings()).toBe(before + 1)
    stopping.abort(new Error('the service is stopping'))
    door.release()
    const response = await answer
    expect([response.status, await response.text()]).toEqual([503, expect.stringContaining('The service is stopping.')])
    await second.close()
  })

  it('returns 503 while a table is missing', async () => {
    await stored.writer.command({ name: 'away', sql: 'RENAME TABLE telegram_members TO telegram_away' })
    await expect.poll(isReady).toBe(503)
    await stored.writer.command({ name: 'back', sql: 'RENAME TABLE telegram_away TO telegram_members' })
    expect(await isReady()).toBe(200)
  })
})
