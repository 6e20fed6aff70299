import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { renderStatement } from '../../clickhouse/cluster/render.ts'
import { loadMigrations } from '../../clickhouse/migrations.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { readFailing } from '../../shared/store/store.ts'
import { readStatus } from '../../workers/commands/status.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'

const SINCE = '2026-11-22T10:00:00.000Z'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
})
afterAll(() => database.drop())

const remember = (job: string, name: string, value: string, written_at: string) =>
  database.db.insert({ table: 'job_state', rows: [{ job, name, value, written_at }] })

async function rerunMigration(name: RegExp): Promise<void> {
  const found = loadMigrations().filter((one) => name.test(one.name))
  expect(found).toHaveLength(1)
  for (const sql of found.flatMap(({ statements }) => statements.flatMap((one) => renderStatement(one))))
    await database.db.command({ name: 'migration', sql })
}

describe('failing providers in the format of an earlier version', () => {
  it('are converted by the migration, unless newer values exist', async () => {
    const { db } = database
    await remember('prices', 'failing providers since', JSON.stringify({ coinmarketcap: SINCE }), SINCE)
    await remember('tvl', 'failing providers since', JSON.stringify({ defillama: SINCE }), SINCE)
    await remember('tvl', 'failing providers', '{}', '2026-11-23T10:00:00.000Z')
    await remember('holders', 'failing providers since', 'no JSON', SINCE)
    await rerunMigration(/_failing_providers\.sql$/)
    const failing = await readFailing(db)
    expect(failing.get('prices')).toEqual({ coinmarketcap: { since: SINCE, reason: expect.stringMatching(/earlier/) } })
    expect(failing.get('tvl')).toEqual({})
    expect(failing.get('holders')).toEqual({})
  })

  it('are ignored by the status if unreadable', async () => {
    const { db } = database
    await remember('treasury', 'failing providers', 'no JSON', SINCE)
    await remember(
      'discord',
      'failing providers',
      JSON.stringify({ discord: { since: SINCE, reason: 'status 503' } }),
      SINCE,
    )
    await remember('telegram', 'failing providers of another form', 'no JSON', SINCE)
    const statuses = await readStatus(db, datasets, loadRegistry(), Date.parse(SINCE))
    const failingOf = (name: string) => statuses.find(({ dataset }) => dataset === name)?.failing
    expect(failingOf('treasury')).toEqual([])
    expect(failingOf('telegram')).toEqual([])
    expect(failingOf('discord')).toEqual([{ provider: 'discord', since: SINCE, reason: 'status 503' }])
  })
})
