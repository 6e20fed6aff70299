import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { loadMigrations, MIGRATIONS_TABLE, migrate, requireMigrated } from '../../clickhouse/migrate.ts'
import { renderStatement } from '../../clickhouse/render.ts'
import { createDatabase, type Database } from '../../shared/clickhouse.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import type { Job } from '../../workers/define.ts'
import { jobs } from '../../workers/jobs.ts'
import { rebuild } from '../../workers/operations/rebuild.ts'
import { findRollUps } from '../../workers/operations/roll-ups.ts'
import { runJob } from '../../workers/run-job.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'
import { CLUSTER } from '../support/two-shards.ts'

const NOW = Date.parse('2026-05-06T07:05:09Z')

const PATHS = [
  'tokens?limit=100',
  'tokens?name=Uniswap',
  'tokens/holders?limit=20',
  'tokens/dex-data?limit=100',
  'tokens/historic-financial?name=Uniswap&interval=5m&start=2026-05-05',
  'tokens/historic-financial?name=Aave&interval=1h&start=2026-05-01',
  'tokens/historic-financial?name=Uniswap&interval=7d&start=2026-04-01',
  'tokens/historic-dex-trades?name=Uniswap&start=2026-05-05',
  'daos?limit=100',
  'daos/governance?name=Uniswap',
  'daos/treasury?limit=100',
  'daos/ratings?limit=100',
  'daos/socials?limit=100',
  'daos/socials/historic-twitter?name=Uniswap&start=2026-05-01',
  'daos/twitter-sentiment?limit=100',
  'aggregated/market-cap',
  'aggregated/treasury-value',
  'index/composition',
  'index/historic?period=30',
  'status',
]

interface Site {
  readonly pipeline: Pipeline
  readonly api: TestApi
  close(): Promise<void>
}

async function startSite(settings: Record<string, string>): Promise<Site> {
  const pipeline = await createPipeline({ now: NOW, settings: { RATINGS_SOURCE: RATINGS, ...settings } })
  const { config, registry, clock } = pipeline
  const db = createDatabase(config.clickhouse, 'write')
  const commits = createHandFeed()
  const api = await startApi({ config, db, registry, commits, now: () => clock.now })
  const close = async () => {
    await api.close()
    await db.close()
    await pipeline.close()
  }
  return { pipeline, api, close }
}

const RATINGS = join(import.meta.dirname, '../upstream/data/sample-ratings.csv')

/** Every job once, and two days of prices before: those that are computed from others come after them. */
async function collect({ context }: Pipeline): Promise<void> {
  const run = (job: Job, payload: object) => runJob(job, job.connect(context), context, payload)
  const ordered = [...jobs].sort((a, b) => a.follows.length - b.follows.length)
  for (const job of ordered) {
    if (job.name === 'prices') {
      const range = { from: NOW - (NOW % 86_400_000) - 2 * 86_400_000, to: toBucketStart(NOW, '5m'), interval: '1h' }
      await run(job, { kind: 'range', ...range })
    }
    await run(job, { kind: 'slot', slot: toBucketStart(NOW, job.cadence) })
  }
}

async function answers({ api }: Site): Promise<Record<string, string>> {
  const bodies: Record<string, string> = {}
  for (const path of PATHS) {
    const response = await fetch(`${api.url}/data/${path}`)
    const text = await response.text()
    // When the record was stored, by the real clock.
    const timeless = path.startsWith('daos?') ? text.replace(/"(createdAt|updatedAt)":"[^"]*"/g, '"$1":""') : text
    bodies[path] = `${response.status} ${timeless}`
  }
  return bodies
}

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
  let one: Site
  let two: Site
  beforeAll(async () => {
    engine = await startEngine()
    ;[one, two] = await Promise.all([startSite({}), startSite(onCluster(engine.url))])
    await Promise.all([collect(one.pipeline), collect(two.pipeline)])
  }, 300_000)
  afterAll(async () => {
    await Promise.all([one?.close(), two?.close()])
    await engine?.child.stop()
  })

  it('hold some rows each', async () => {
    const rows = await two.pipeline.database.db.rows({
      name: 'shards',
      sql: 'SELECT shardNum() AS shard, uniqExact(token) AS tokens FROM token_prices GROUP BY shard ORDER BY shard',
      schema: z.object({ shard: z.int(), tokens: z.int().positive() }),
    })
    expect(rows.map(({ shard }) => shard)).toEqual([1, 2])
  })

  it('answer every route as one server does, byte by byte', async () => {
    const [expected, got] = [await answers(one), await answers(two)]
    for (const path of PATHS) {
      expect(expected[path], path).toMatch(/^200 [[{]/)
      expect(got[path], path).toBe(expected[path])
    }
  })

  it.each(['token_prices_1h', 'dex_data'])('compute %s anew, and answer as before', async (table) => {
    const { db } = two.pipeline.database
    const before = await answers(two)
    const datasets = jobs.map(({ dataset }) => dataset)
    const rollUp = (await findRollUps(db, db.name, datasets)).find((one) => one.table === table)
    if (rollUp === undefined) throw new Error(`${table} is not found`)
    const options = { now: () => NOW, force: false, onPlan: () => {}, onStep: () => {} }
    const rebuilt = await rebuild(db, rollUp, options)
    expect(rebuilt.after).toBe(rebuilt.before)
    expect(rebuilt.after).toBeGreaterThan(0)
    expect(await answers(two)).toEqual(before)
    expect(await left(db)).toEqual([])
  })

  it('are not mixed with a single server', async () => {
    const { clickhouse } = two.pipeline.config
    const single = createDatabase({ ...clickhouse, cluster: undefined }, 'write')
    await expect(requireMigrated(single)).rejects.toThrow(/made for the cluster two, .* says a single server/)
    const other = createDatabase({ ...one.pipeline.config.clickhouse, cluster: CLUSTER }, 'write')
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
      for (const sql of statements.flatMap((statement) => renderStatement(statement, target)))
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
      expect(parsed?.text).toMatch(/^CREATE .* ON CLUSTER dao\s/)
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
