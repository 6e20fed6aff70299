import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { renderStatement } from '../../clickhouse/cluster/render.ts'
import { loadMigrations, migrate, requireMigrated } from '../../clickhouse/migrate.ts'
import { storeRegistry } from '../../clickhouse/registry.ts'
import { findDrift } from '../../clickhouse/schema/drift.ts'
import type { Config } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { silent } from '../support/silent.ts'

const files = join(import.meta.dirname, '../../clickhouse/migrations')

function copyOfMigrations(): string {
  const copy = mkdtempSync(join(tmpdir(), 'dao-data-migrations-'))
  for (const file of readdirSync(files).filter((name) => name.endsWith('.sql')))
    cpSync(join(files, file), join(copy, file))
  return copy
}

describe('migrations', () => {
  let config: Config
  let database: TestDatabase
  beforeEach(async () => {
    config = createTestConfig()
    database = await createTestDatabase(config, { empty: true })
  })
  afterEach(() => database.drop())

  const run = (from?: string) => migrate(database.server, database.db, config.clickhouse.database, silent, from)
  const applied = () =>
    database.db.rows({
      name: 'applied',
      sql: 'SELECT name FROM migrations FINAL ORDER BY name',
      schema: z.object({ name: z.string() }),
    })

  it('may run twice and in parallel', async () => {
    await Promise.all([run(), run()])
    await run()
    expect((await applied()).map(({ name }) => name)).toEqual(loadMigrations().map(({ name }) => name))
  })

  it('go on where a run stopped', async () => {
    const [first] = loadMigrations()
    await database.server.command({ name: 'create', sql: `CREATE DATABASE ${config.clickhouse.database}` })
    const half = first?.statements.slice(0, 1) ?? []
    for (const sql of half.flatMap((one) => renderStatement(one))) await database.db.command({ name: 'half', sql })
    await run()
    expect(await applied()).toHaveLength(loadMigrations().length)
  })

  it('are asked for by name where they are missing', async () => {
    await database.server.command({ name: 'create', sql: `CREATE DATABASE ${config.clickhouse.database}` })
    await expect(requireMigrated(database.db)).rejects.toThrow(/lacks 001_tokens.sql, 002_.*npm run migrate/)
    await run()
    await expect(requireMigrated(database.db)).resolves.toBeUndefined()
  })

  it('refuse a file that was edited after it was applied, and one that is gone', async () => {
    const copy = copyOfMigrations()
    await run(copy)
    const [first, second] = loadMigrations(copy)
    appendFileSync(join(copy, first?.name ?? ''), '\n-- a late thought\n')
    rmSync(join(copy, second?.name ?? ''))
    await expect(run(copy)).rejects.toThrow(`${first?.name} was edited after it was applied`)
    await expect(run(copy)).rejects.toThrow(`${second?.name} is applied but its file is gone`)
  })

  it('tell a schema that drifted, column by column', async () => {
    await run()
    const scratchConfig = createTestConfig()
    const scratch = await createTestDatabase(scratchConfig)
    const compare = () =>
      findDrift(database.db, config.clickhouse.database, scratch.db, scratchConfig.clickhouse.database)
    expect(await compare()).toEqual([])
    await database.db.command({ name: 'drift', sql: 'ALTER TABLE tokens ADD COLUMN colour String' })
    await database.db.command({ name: 'drift', sql: 'ALTER TABLE protocol_tvl MODIFY COLUMN tvl_usd Float32' })
    const differences = await compare()
    await scratch.drop()
    expect(differences).toContainEqual(expect.stringMatching(/^unexpected: tokens\.colour String/))
    expect(differences).toContainEqual(expect.stringMatching(/^missing: protocol_tvl\.tvl_usd Float64/))
  })
})

describe('registry records', () => {
  it('are stored once and keep what left the files as not live', async () => {
    const config = createTestConfig()
    const { db, drop } = await createTestDatabase(config)
    const registry = loadRegistry()
    const count = async (condition: string) => {
      const sql = `SELECT count() AS n FROM tokens FINAL WHERE ${condition}`
      const [row] = await db.rows({ name: 'count', sql, schema: z.object({ n: z.number() }) })
      return row?.n
    }
    await Promise.all([storeRegistry(db, registry, silent), storeRegistry(db, registry, silent)])
    expect(await count('1')).toBe(registry.tokens.length)
    const live = registry.tokens.filter((token) => token.live)
    expect(await count('live')).toBe(live.length)
    const without = { ...registry, tokens: registry.tokens.filter((token) => token !== live[0]) }
    await storeRegistry(db, without, silent)
    expect(await count('1')).toBe(registry.tokens.length)
    expect(await count('live')).toBe(live.length - 1)
    await drop()
  })
})
