import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { backUp } from '../../clickhouse/backup.ts'
import { renderStatement } from '../../clickhouse/cluster/render.ts'
import { loadMigrations, MIGRATIONS_TABLE, migrate, requireMigrated } from '../../clickhouse/migrate.ts'
import { restore } from '../../clickhouse/restore.ts'
import { createDatabase, type Database } from '../../shared/store/clickhouse.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { rebuild } from '../../workers/rebuild/rebuild.ts'
import { findRollUps } from '../../workers/rebuild/roll-ups.ts'
import { createTestConfig, createTestDatabase } from '../support/database.ts'
import type { Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'
import { createSite, readAnswers, SITE_NOW, withoutStoredTimes } from '../support/site.ts'
import { CLUSTER } from '../support/two-shards.ts'

const startEngine = async (...args: string[]): Promise<{ child: Child; url: string }> => {
  const env = { UV_THREADPOOL_SIZE: '16', TZ: 'UTC' }
  const child = startChild('two shards', join(import.meta.dirname, '../support/two-shards.ts'), env, args)
  return { child, url: String((await untilReady(child)).url) }
}

const onCluster = (url: string) => ({
  CLICKHOUSE_URL: url,
  CLICKHOUSE_CLUSTER: CLUSTER,
  CLICKHOUSE_USER: 'writer',
  CLICKHOUSE_PASSWORD: '',
})

describe('two shards', () => {
  let engine: { child: Child; url: string }
  let one: Pipeline
  let two: Pipeline
  beforeAll(async () => {
    engine = await startEngine()
    ;[one, two] = await Promise.all([createSite(), createSite(onCluster(engine.url))])
  }, 300_000)
  afterAll(async () => {
    await Promise.all([one?.close(), two?.close()])
    await engine?.child.stop()
  })
  const answersOf = async (site: Pipeline) => withoutStoredTimes(await readAnswers(site, site.config))

  it('hold some rows each', async () => {
    const rows = await two.database.db.rows({
      name: 'shards',
      sql: 'SELECT shardNum() AS shard, uniqExact(token) AS tokens FROM token_prices GROUP BY shard ORDER BY shard',
      schema: z.object({ shard: z.int(), tokens: z.int().positive() }),
    })
    expect(rows.map(({ shard }) => shard)).toEqual([1, 2])
  })

  it('answer every route as one server does, byte by byte', async () => {
    const [expected, got] = [await answersOf(one), await answersOf(two)]
    for (const [path, answer] of Object.entries(expected)) {
      expect(answer, path).toMatch(/^200 [[{]/)
      expect(got[path], path).toBe(answer)
    }
  })

  it('take over what one server has', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dao-data-backup-'))
    await backUp(one.database.db, folder, () => {})
    const config = createTestConfig(onCluster(engine.url))
    const moved = await createTestDatabase(config, { empty: true })
    const tables = await restore(moved.server, moved.db, folder, {
      intoExisting: false,
      log: silent,
      onTable: () => {},
    })
    expect(tables.filter(({ equal }) => !equal)).toEqual([])
    expect(await readAnswers(one, config)).toEqual(await readAnswers(one, one.config))
    await moved.drop()
    rmSync(folder, { recursive: true })
  })

  it.each(['token_prices_1h', 'dex_data'])('compute %s anew as one server does', async (table) => {
    for (const { db } of [one.database, two.database]) {
      const datasets = jobs.map(({ dataset }) => dataset)
      const rollUp = (await findRollUps(db, db.name, datasets)).find((found) => found.table === table)
      if (rollUp === undefined) throw new Error(`${table} is not found`)
      const options = { now: () => SITE_NOW, force: false, onPlan: () => {}, onStep: () => {} }
      const rebuilt = await rebuild(db, rollUp, options)
      expect(rebuilt.after).toBe(rebuilt.before)
      expect(rebuilt.after).toBeGreaterThan(0)
      expect(await left(db)).toEqual([])
    }
    expect(await answersOf(two)).toEqual(await answersOf(one))
  })

  it('are not mixed with a single server', async () => {
    const { clickhouse } = two.config
    const single = createDatabase({ ...clickhouse, cluster: undefined }, 'write')
    await expect(requireMigrated(single)).rejects.toThrow(/made for the cluster two, .* says a single server/)
    const other = createDatabase({ ...one.config.clickhouse, cluster: CLUSTER }, 'write')
    await expect(requireMigrated(other)).rejects.toThrow(/made for a single server, .* says the cluster two/)
    await Promise.all([single.close(), other.close()])
  })
})

const left = async (db: Database) =>
  db.rows({
    name: 'left',
    sql: "SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%rebuild%'",
    schema: z.object({ name: z.string() }),
  })

describe('the schema of a cluster', () => {
  it('is made with replicated engines', async () => {
    const engine = await startEngine('--replicated')
    try {
      const { clickhouse } = createTestConfig(onCluster(engine.url))
      const server = createDatabase(clickhouse, 'write', { database: 'default' })
      const db = createDatabase(clickhouse, 'write')
      await server.command({ name: 'create', sql: `CREATE DATABASE ${db.name}` })
      const target = { cluster: CLUSTER, database: db.name }
      const statements = loadMigrations().flatMap((migration) => migration.statements)
      const rendered = statements.flatMap((statement) => renderStatement(statement, target))
      // Without Keeper a replicated table can be made and not be changed.
      for (const sql of rendered.filter((statement) => statement.startsWith('CREATE')))
        await db.command({ name: 'make', sql })
      const engines = await db.rows({
        name: 'engines',
        sql: `SELECT engine, count() AS tables FROM system.tables WHERE database = currentDatabase()
              GROUP BY engine ORDER BY engine`,
        schema: z.object({ engine: z.string(), tables: z.int() }),
      })
      const kinds = engines.map(({ engine }) => engine)
      expect(kinds).toEqual(['Distributed', 'MaterializedView', 'Null', 'ReplicatedReplacingMergeTree'])
      await Promise.all([db.close(), server.close()])
    } finally {
      engine.child.process.kill('SIGKILL')
    }
  })

  it('is read by the parser, ON CLUSTER and all', async () => {
    const target = { cluster: 'dao', database: 'dao_data' }
    const statements = [MIGRATIONS_TABLE, ...loadMigrations().flatMap((migration) => migration.statements)]
    const schema = z.object({ text: z.string() })
    const server = createDatabase(createTestConfig().clickhouse, 'write', { database: 'default' })
    for (const statement of statements.flatMap((one) => renderStatement(one, target))) {
      const sql = 'SELECT formatQuery({statement: String}) AS text'
      const [parsed] = await server.rows({ name: 'parse', sql, params: { statement }, schema })
      expect(parsed?.text).toMatch(/^((CREATE|ALTER) .* ON CLUSTER dao\s|INSERT INTO \w+ \()/)
    }
    await server.close()
  })

  it('is not begun where the server does not know the cluster', async () => {
    const config = createTestConfig({ CLICKHOUSE_CLUSTER: 'nowhere' })
    const server = createDatabase(config.clickhouse, 'write', { database: 'default' })
    const db = createDatabase(config.clickhouse, 'write')
    await expect(migrate(server, db, db.name, silent)).rejects.toMatchObject({ code: 'storage' })
    await Promise.all([server.close(), db.close()])
  })
})
