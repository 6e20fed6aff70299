import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { backUp } from '../../clickhouse/backup.ts'
import { renderStatement } from '../../clickhouse/cluster/render.ts'
import { loadMigrations, migrate, requireMigrated } from '../../clickhouse/migrations.ts'
import { putInForce } from '../../clickhouse/registry.ts'
import { restore } from '../../clickhouse/restore.ts'
import { MIGRATIONS_TABLE } from '../../clickhouse/schema/stored.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { addFromRows } from '../../shared/ledger/recount.ts'
import { removeUnfounded } from '../../shared/ledger/repair.ts'
import { addCoverage, readCoverage } from '../../shared/ledger/tables.ts'
import { findUnfounded } from '../../shared/ledger/unfounded.ts'
import { createDatabase, type Database, onCluster, readInForce } from '../../shared/store/store.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { rebuild } from '../../workers/rebuild/rebuild.ts'
import { findRollUps } from '../../workers/rebuild/roll-ups.ts'
import { toShadow } from '../../workers/rebuild/shadow.ts'
import { startCluster, type TestCluster } from '../support/cluster.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { copyMigrations } from '../support/migration-files.ts'
import { startOwnClickHouse } from '../support/own-clickhouse.ts'
import type { Pipeline } from '../support/pipeline.ts'
import { createRegistryFolder } from '../support/registry-folder.ts'
import { silent } from '../support/silent.ts'
import { createSite, EVERY_REQUEST, readAnswers, SITE_NOW, withoutStoredTimes } from '../support/site.ts'

/**
 * Shards are separate servers, which exchange statements and rows over ClickHouse's native protocol. The tests send the
 * statements of production: `_local` tables, distributed tables, views, swaps, reads and inserts. Two parts are replaced: - `ON
 * CLUSTER`: the statement without that clause runs on every server, because no Keeper distributes it - replication: a shard is
 * one server with tables that are not replicated; the replicated ones are only created (below) And `prefer_localhost_replica`
 * is 1; `startClusterDdl` explains why.
 */
describe('cluster of two shards', () => {
  let cluster: TestCluster
  let folder: string
  let one: Pipeline
  let two: Pipeline
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dao-data-backup-'))
    cluster = await startCluster(3)
    ;[one, two] = await Promise.all([createSite(), createSite(cluster.settings(2))])
  }, 600_000)
  afterAll(async () => {
    await Promise.all([one?.close(), two?.close()])
    await cluster?.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const answersOf = async (site: Pipeline, requests?: readonly string[]) =>
    withoutStoredTimes(await readAnswers(site, site.config, requests))

  it('stores rows on each shard', async () => {
    expect(await readShards(two.database.db)).toEqual([1, 2])
  })

  it('reads as the requesting user, within the limits of that user', async () => {
    const reader = createDatabase(two.config.clickhouse, 'read')
    const rows = await reader.rows({
      name: 'limits',
      sql: `SELECT DISTINCT shardNum() AS shard, currentUser() AS user, getSetting('max_memory_usage') AS bytes
            FROM token_prices ORDER BY shard`,
      schema: z.object({ shard: z.int(), user: z.string(), bytes: z.int() }),
    })
    const limits = { user: two.config.clickhouse.readUser, bytes: 1024 ** 3 }
    expect(rows).toEqual([1, 2].map((shard) => ({ shard, ...limits })))
    await reader.close()
  })

  it('returns the bytes of a single server for every documented request', async () => {
    // A provenance has the times and addresses of the run that stored the value; baskets need older prices.
    const requests = EVERY_REQUEST.filter((path) => !/^(provenance|baskets.*(start|end)=)/.test(path))
    const [expected, got] = [await answersOf(one, requests), await answersOf(two, requests)]
    for (const [path, answer] of Object.entries(expected)) {
      expect(answer, path).toMatch(/^200 /)
      expect(got[path] === answer, `${path}: ${got[path]?.slice(0, 200)}`).toBe(true)
    }
  }, 300_000)

  it('returns tables of several entities like a single server, in one page or several', async () => {
    const tables = [
      'tokens/historic-financial?name=Aave&name=Uniswap&interval=1h&start=2026-05-01',
      'tokens/historic-ohlc?name=Aave&name=Uniswap&interval=1d&start=2026-05-01',
      'tokens/historic-dex-ohlcv?name=Aave&name=Uniswap&interval=1d&start=2026-05-01',
      'tokens/historic-dex-trades?name=Aave&name=Uniswap',
      'tokens/holders/historic-labels?name=Aave&name=Uniswap',
      'daos/socials/historic-twitter?name=Aave&name=Uniswap',
      'daos/treasury/historic?name=Aave&name=Uniswap&interval=7d',
      'daos/treasury/holdings/historic?name=Aave&name=Uniswap',
    ]
    const requests = tables.flatMap((table) => ['', '&limit=2'].map((limit) => `${table}&format=ndjson${limit}`))
    const [expected, got] = [await answersOf(one, requests), await answersOf(two, requests)]
    for (const request of requests) {
      expect(expected[request], request).toMatch(/^200 \{"id"/)
      expect.soft(got[request], request).toBe(expected[request])
    }
  }, 300_000)

  it('restores a backup of a single server, and three shards restore that of two', async () => {
    const expected = await readAnswers(one, one.config)
    let from = one.database.db
    // The single server's schema is older than the one that two shards are upgraded to and three shards have.
    const migrations = copyMigrations({
      '900_note.sql': "ALTER TABLE market_caps ADD COLUMN IF NOT EXISTS note String DEFAULT 'none';",
    })
    const created: TestDatabase[] = []
    for (const shards of [2, 3]) {
      const backup = join(folder, String(shards))
      await backUp(from, backup, () => {})
      const config = createTestConfig(cluster.settings(shards))
      const moved = await createTestDatabase(config, { empty: true })
      const options = { intoExisting: false, log: silent, onTable: () => {}, migrations }
      const tables = await restore(moved.server, moved.db, backup, options)
      expect(tables.filter(({ equal }) => !equal)).toEqual([])
      expect((await requireMigrated(moved.db)).applied.has('900_note.sql')).toBe(true)
      expect(await readShards(moved.db)).toHaveLength(shards)
      expect(await readAnswers(one, config)).toEqual(expected)
      from = moved.db
      created.push(moved)
    }
    await Promise.all(created.map((moved) => moved.drop()))
  }, 300_000)

  it.each(['token_price_rollups', 'dex_trade_days', 'dex_trade_parties', 'dex_data'])(
    'rebuilds %s like a single server',
    async (table) => {
      for (const { db } of [one.database, two.database]) {
        const datasets = jobs.map(({ dataset }) => dataset)
        const rollUp = (await findRollUps(db, db.name, datasets)).find((found) => found.table === table)
        if (rollUp === undefined) throw new Error(`${table} is not found`)
        const options = { log: silent, now: () => SITE_NOW, force: false, onPlan: () => {}, onStep: () => {} }
        const rebuilt = await rebuild(db, rollUp, options)
        expect(rebuilt.after).toBe(rebuilt.before)
        expect(rebuilt.after).toBeGreaterThan(0)
        expect(await remaining(db)).toEqual([])
      }
      expect(await answersOf(two)).toEqual(await answersOf(one))
    },
  )

  it('removes coverage without rows', async () => {
    for (const { db } of [one.database, two.database]) {
      expect(await addFromRows(db, tokenPrices, SITE_NOW)).toBe(0)
      const full = await readAll(db)
      const existing = full[0]
      if (existing === undefined) throw new Error('nothing is known of prices')
      const unfounded = { ...existing, first: existing.last + 1000, last: existing.last + 1002 }
      await addCoverage(db, tokenPrices, [unfounded])
      expect(await findUnfounded(db, tokenPrices)).toEqual([unfounded])
      await removeUnfounded(db, tokenPrices, [unfounded])
      expect(await readAll(db)).toEqual(full)
    }
  })

  it('stores each active registry on one shard, and reads it like a single server', async () => {
    const folder = createRegistryFolder()
    onTestFinished(() => folder.remove())
    for (const slug of ['made-up-1', 'made-up-2', 'made-up-3']) {
      folder.edit('categories', (rows) => [...rows, { slug, name: slug }])
      for (const { db } of [one.database, two.database]) await putInForce(db, silent, folder.dir)
      const [ofOne, ofTwo] = await Promise.all([readInForce(one.database.db), readInForce(two.database.db)])
      expect(ofTwo.categoryBySlug.has(slug)).toBe(true)
      expect({ ...ofTwo, changedAt: 0 }).toEqual({ ...ofOne, changedAt: 0 })
    }
    const sql = 'SELECT version, uniqExact(shardNum()) AS shards FROM registry_records GROUP BY version'
    const schema = z.object({ version: z.string(), shards: z.int() })
    const versions = await two.database.db.rows({ name: 'versions', sql, schema })
    expect(versions.map(({ shards }) => shards)).toEqual([1, 1, 1])
  })

  it('receives no schema change if its schema is complete', async () => {
    const changes: string[] = []
    const watch = (db: Database): Database => ({
      ...db,
      command: async (statement) => {
        changes.push(statement.sql)
        await db.command(statement)
      },
    })
    const { server, db } = two.database
    await migrate(watch(server), watch(db), db.name, silent)
    expect(changes).toEqual([])
  })

  it('rejects settings of a single server, and the reverse', async () => {
    const { clickhouse } = two.config
    const single = createDatabase({ ...clickhouse, cluster: undefined }, 'write')
    await expect(requireMigrated(single)).rejects.toThrow(/made for the cluster shards_2, .* is a single server/)
    const second = createDatabase({ ...one.config.clickhouse, cluster: two.config.clickhouse.cluster }, 'write')
    await expect(requireMigrated(second)).rejects.toThrow(/made for a single server, .* is the cluster shards_2/)
    await Promise.all([single.close(), second.close()])
  })
})

/** The complete coverage of prices. */
async function readAll(db: Database) {
  const sql = "SELECT DISTINCT entity FROM coverage WHERE dataset = 'prices'"
  const found = await db.rows({ name: 'entities', sql, schema: z.object({ entity: z.number() }) })
  const keys = found.map(({ entity }) => entity)
  const reports = await readCoverage(db, tokenPrices, keys, { first: 0, last: 10_000_000 })
  return reports.toSorted((a, b) => a.entity - b.entity || a.seconds - b.seconds || a.first - b.first)
}

const remaining = async (db: Database) =>
  db.rows({
    name: 'left',
    sql: "SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%rebuild%'",
    schema: z.object({ name: z.string() }),
  })

/** The shards with rows of prices. */
async function readShards(db: Database): Promise<number[]> {
  const sql = 'SELECT DISTINCT shardNum() AS shard FROM token_prices ORDER BY shard'
  const rows = await db.rows({ name: 'shards', sql, schema: z.object({ shard: z.int() }) })
  return rows.map(({ shard }) => shard)
}

describe('schema of a cluster', () => {
  it('uses replicated engines', async () => {
    const cluster = await startCluster(1, { replicated: true })
    onTestFinished(() => cluster.stop())
    const config = createTestConfig(cluster.settings(1))
    const { db, server, drop } = await createTestDatabase(config, { empty: true })
    const target = { cluster: String(config.clickhouse.cluster), database: db.name }
    await server.command({ name: 'create', sql: `CREATE DATABASE ${db.name}${onCluster(target.cluster)}` })
    const statements = [MIGRATIONS_TABLE, ...loadMigrations().flatMap((migration) => migration.statements)]
    const rendered = statements.flatMap((statement) => renderStatement(statement, target))
    // Without a Keeper that servers share, a replicated table can be created but neither changed nor written to. Tables that
    // store nothing are not replicated, and the views of later migrations read the later columns. A view over a replicated
    // table may read a later column, too, and is left out.
    const doors = rendered.flatMap(
      (sql) => /^CREATE TABLE (?:IF NOT EXISTS )?(\S+).*ENGINE = Null/s.exec(sql)?.[1] ?? [],
    )
    const isDoor = (sql: string) => doors.includes(/^ALTER TABLE (\S+)/.exec(sql)?.[1] ?? '')
    const isOfDoor = (sql: string) => doors.includes(/^CREATE MATERIALIZED VIEW .*?\bFROM (\w+)/s.exec(sql)?.[1] ?? '')
    const isMade = (sql: string) => /^CREATE (?!MATERIALIZED)/.test(sql) || isOfDoor(sql) || isDoor(sql)
    for (const sql of rendered.filter(isMade)) await db.command({ name: 'make', sql })
    const engines = await db.rows({
      name: 'engines',
      sql: 'SELECT DISTINCT engine FROM system.tables WHERE database = currentDatabase() ORDER BY engine',
      schema: z.object({ engine: z.string() }),
    })
    const kinds = engines.map(({ engine }) => engine)
    expect(kinds).toEqual([
      'Distributed',
      'MaterializedView',
      'Null',
      'ReplicatedAggregatingMergeTree',
      'ReplicatedReplacingMergeTree',
    ])
    const shadow = toShadow(db, 'token_price_rollups')
    await shadow.create('SELECT * FROM token_price_rollups_local')
    await shadow.swap()
    await shadow.drop()
    expect(await remaining(db)).toEqual([])
    await drop()
  })

  it('parses with ON CLUSTER clauses', async () => {
    const target = { cluster: 'dao', database: 'dao_data' }
    const statements = [MIGRATIONS_TABLE, ...loadMigrations().flatMap((migration) => migration.statements)]
    const schema = z.object({ text: z.string() })
    const server = createDatabase(createTestConfig().clickhouse, 'write', { database: 'default' })
    for (const statement of statements.flatMap((one) => renderStatement(one, target))) {
      const sql = 'SELECT formatQuery({statement: String}) AS text'
      const [parsed] = await server.rows({ name: 'parse', sql, params: { statement }, schema })
      // Rows are moved once, during the upgrade, through tables that include all shards.
      expect(parsed?.text).toMatch(/^(CREATE|ALTER) .* ON CLUSTER dao\s|^INSERT INTO (?!\w+_local)/)
    }
    await server.close()
  })

  it('is not created if the server does not know the cluster or has no Keeper', async () => {
    const port = await findFreePort()
    const shard = `<shard><replica><host>127.0.0.1</host><port>${port}</port></replica></shard>`
    const configuration = `<remote_servers><alone>${shard}</alone></remote_servers>`
    const singleServer = await startOwnClickHouse({ tcpPort: port, configuration })
    onTestFinished(() => singleServer.stop())
    for (const [name, reason] of [
      ['nowhere', 'has no cluster of that name'],
      ['alone', 'has no Keeper'],
    ]) {
      const config = createTestConfig({ ...singleServer.settings, CLICKHOUSE_CLUSTER: String(name) })
      const server = createDatabase(config.clickhouse, 'write', { database: 'default' })
      const db = createDatabase(config.clickhouse, 'write')
      const message = expect.stringContaining(`CLICKHOUSE_CLUSTER is ${name}, and the ClickHouse server ${reason}`)
      await expect(migrate(server, db, db.name, silent)).rejects.toMatchObject({ code: 'config', message })
      await Promise.all([server.close(), db.close()])
    }
  })
})
