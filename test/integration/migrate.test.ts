import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { renderStatement } from '../../clickhouse/cluster/render.ts'
import { loadMigrations, migrate, requireMigrated } from '../../clickhouse/migrations.ts'
import { storeRegistry } from '../../clickhouse/registry.ts'
import { findDrift } from '../../clickhouse/schema/drift.ts'
import { loadReleased } from '../../clickhouse/schema/released.ts'
import type { Config } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { copyMigrations } from '../support/migration-files.ts'
import { silent } from '../support/silent.ts'

const NOTE = (column: string) => `ALTER TABLE market_caps ADD COLUMN IF NOT EXISTS ${column} String;`

describe('released migrations', () => {
  it('exist unchanged', () => {
    const files = new Map(loadMigrations().map(({ name, checksum }) => [name, checksum]))
    expect(loadReleased().size).toBeGreaterThan(0)
    for (const [name, checksum] of loadReleased()) expect([name, files.get(name)]).toEqual([name, checksum])
  })

  it('reject edits, removals and new files before them', () => {
    const copy = copyMigrations({ '000_early.sql': NOTE('early'), '900_late.sql': NOTE('late') })
    const [first = '', second = ''] = loadReleased().keys()
    appendFileSync(join(copy, first), '\n-- a late thought\n')
    rmSync(join(copy, second))
    const mistakes = [
      `${first} is released and was edited`,
      `${second} is released, but its file is missing`,
      '000_early.sql is new',
    ]
    for (const mistake of mistakes) expect(() => loadMigrations(copy)).toThrow(mistake)
    expect(() => loadMigrations(copy)).not.toThrow('900_late.sql')
  })

  it('reject a malformed list of checksums', () => {
    const copy = copyMigrations()
    appendFileSync(join(copy, 'released.sha256'), 'abc  900_late.sql\n')
    expect(() => loadMigrations(copy)).toThrow('expected a checksum and a file, got abc  900_late.sql')
  })
})

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

  it('can run twice and concurrently', async () => {
    await Promise.all([run(), run()])
    await run()
    expect((await applied()).map(({ name }) => name)).toEqual(loadMigrations().map(({ name }) => name))
  })

  it('continue where a run stopped', async () => {
    const [first] = loadMigrations()
    await database.server.command({ name: 'create', sql: `CREATE DATABASE ${config.clickhouse.database}` })
    const half = first?.statements.slice(0, 1) ?? []
    for (const sql of half.flatMap((one) => renderStatement(one))) await database.db.command({ name: 'half', sql })
    await run()
    expect(await applied()).toHaveLength(loadMigrations().length)
  })

  it('are named in the error if they are missing', async () => {
    await database.server.command({ name: 'create', sql: `CREATE DATABASE ${config.clickhouse.database}` })
    await expect(requireMigrated(database.db)).rejects.toThrow(/lacks 001_tokens.sql, 002_.*npm run migrate/)
    await run()
    expect([...(await requireMigrated(database.db)).applied.keys()]).toEqual(loadMigrations().map(({ name }) => name))
  })

  it('reject an applied file that was edited or removed', async () => {
    const copy = copyMigrations({ '900_one.sql': NOTE('one'), '901_two.sql': NOTE('two') })
    await run(copy)
    appendFileSync(join(copy, '900_one.sql'), '\n-- a late thought\n')
    rmSync(join(copy, '901_two.sql'))
    await expect(run(copy)).rejects.toThrow('900_one.sql was edited after it was applied')
    await expect(run(copy)).rejects.toThrow('901_two.sql is applied, but its file is missing')
  })

  it('reject a database older than the first release without changing it', async () => {
    await run()
    const [early] = loadReleased().keys()
    const row = { name: early, checksum: 'of another file', applied_at: new Date().toISOString() }
    await database.db.insert({ table: 'migrations', rows: [row] })
    const copy = copyMigrations({ '900_one.sql': NOTE('one') })
    const refusal = {
      code: 'schema_too_old',
      message: expect.stringMatching(`made before the first release .*${early}`),
    }
    await expect(run(copy)).rejects.toMatchObject(refusal)
    await expect(requireMigrated(database.db)).rejects.toMatchObject(refusal)
    expect((await applied()).map(({ name }) => name)).not.toContain('900_one.sql')
  })

  it('report a schema that differs, by column', async () => {
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
  it('are stored once, and removed ones stay as not live', async () => {
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
    // Stored by a machine with a clock that is ahead.
    const ahead = `INSERT INTO tokens SELECT * REPLACE (false AS live, now64(3) + INTERVAL 1 HOUR AS changed_at) FROM tokens FINAL`
    await db.command({ name: 'ahead', sql: ahead })
    await storeRegistry(db, registry, silent)
    expect(await count('live')).toBe(live.length)
    await drop()
  })
})
