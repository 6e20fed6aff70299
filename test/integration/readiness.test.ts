import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toDatabaseCheck } from '../../shared/ops/ops-server.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { startStatementDoor } from '../support/statement-door.ts'

const config = createTestConfig()
/** More than the connections that statements share. */
const MANY = 40

let stored: Awaited<ReturnType<typeof createApiDatabase>>
let door: Awaited<ReturnType<typeof startStatementDoor>>
let db: Database
let api: TestApi
beforeAll(async () => {
  stored = await createApiDatabase(config)
  door = await startStatementDoor(config.clickhouse.url)
  db = createDatabase({ ...config.clickhouse, url: door.url }, 'read')
  api = await startApi({ config, db, registry: stored.registry, commits: createHandFeed() })
})
afterAll(async () => {
  await api.close()
  await Promise.all([db.close(), door.close()])
  await stored.drop()
})

const isReady = async () => (await fetch(`${api.url}/health/ready`)).status

describe('readiness', () => {
  it('is told while every connection has a long statement', async () => {
    const load = new AbortController()
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

  it('takes one statement, whatever the number of datasets', async () => {
    const fresh = createDatabase({ ...config.clickhouse, url: door.url }, 'read')
    const other = await startApi({ config, db: fresh, registry: stored.registry, commits: createHandFeed() })
    const before = door.statements.length
    expect((await fetch(`${other.url}/health/ready`)).status).toBe(200)
    expect(door.statements.length - before).toBe(1)
    await other.close()
    await fresh.close()
  })

  it('is refused while a table is missing', async () => {
    await stored.writer.command({ name: 'away', sql: 'RENAME TABLE telegram_members TO telegram_away' })
    await expect.poll(isReady).toBe(503)
    await stored.writer.command({ name: 'back', sql: 'RENAME TABLE telegram_away TO telegram_members' })
    expect(await isReady()).toBe(200)
  })
})
