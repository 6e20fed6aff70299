import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { parseConfig } from '../../shared/config/config.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Database } from '../../shared/store/store.ts'
import { startRedis } from '../../tools/redis-server.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import type { Job } from '../../workers/job/define-job.ts'
import holders from '../../workers/jobs/holders.ts'
import { jobs } from '../../workers/jobs/list.ts'
import prices from '../../workers/jobs/prices.ts'
import { findRollUps } from '../../workers/rebuild/roll-ups.ts'
import { runJob } from '../../workers/run/runner.ts'
import type { OwnClickHouse } from '../support/own-clickhouse.ts'
import { toPendingReport } from '../support/pending-report.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { createUpstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { compare, compareWithItself, type Side } from './measure.ts'
import { startSlotProvider } from './slot-provider.ts'
import { openTicks } from './slots.ts'

const START = Date.parse('2026-05-06T07:05:09Z')
const HOUR = 3_600_000
/** A slot with raw answers may take a tenth longer. */
const MOST_TIME = 1.1
/** Raw answers may take three times the bytes of the tables that are decoded from them. */
const MOST_BYTES = 3

export const rawAnswers: Benchmark = {
  name: 'raw-answers',
  about:
    'Cost of stored answers of providers: the time of a slot with and without them, and their bytes on disk against those of the decoded tables.',
  run: (context) => withEngine((engine) => measure(engine, context)),
}

async function measure(engine: OwnClickHouse, { quick, say }: BenchContext): Promise<Findings> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-redis-'))
  const redis = await startRedis(dir)
  try {
    const rows: BenchRow[] = []
    for (const [job, tokens] of [
      [prices, quick ? 500 : 5_000],
      [holders, quick ? 50 : 500],
    ] as const) {
      rows.push(...(await compareSlots(engine, { job, tokens, redis: redis.url, rounds: quick ? 1 : 5 })))
      say(`slots of ${job.name} done`)
    }
    const hours = quick ? 2 : 4
    rows.push(...(await withDatabase(engine, 'raw_bytes', (database) => measureBytes(database, redis.url, hours))))
    return {
      rows,
      notes: [
        `One worker in one process with the scheduler and the provider, which answers without delay. Bytes: ${hours} hourly slots of every collected dataset from the stand-in of all providers, all tables fully merged.`,
      ],
    }
  } finally {
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

interface Slots {
  readonly job: Job
  readonly tokens: number
  readonly redis: string
  readonly rounds: number
}

/** Slots with and without raw answers, each into its own database. */
function compareSlots(engine: OwnClickHouse, { job, tokens, redis, rounds }: Slots): Promise<BenchRow[]> {
  return withDatabase(engine, 'raw_with', (first) =>
    withDatabase(engine, 'raw_without', async (second) => {
      const provider = await startSlotProvider()
      const open = (database: BenchDatabase, name: string, days: string) => {
        const settings = {
          ...{ RAW_ANSWERS_DAYS: days, RAW_ANSWERS_UNREPEATABLE_DAYS: days },
          QUEUE_PREFIX: `bench-raw-${job.name}-${days}`,
        }
        const ticks = openTicks(database, { base: job, tokens, redis, provider, settings })
        const side: Side = { name, measure: async () => (await ticks.run(job)) / 1000 }
        return { ...ticks, side }
      }
      const [a, b] = [open(first, 'stored for 30 days', '30'), open(second, 'not stored', '0')]
      const what = `a slot of ${job.name} of ${tokens.toLocaleString('en-US')} tokens`
      const row = await compare({
        ...{ what, unit: 's', a: a.side, b: b.side, rounds },
        target: atMost(MOST_TIME),
        reason: 'the insert of the bodies is a statement of its own',
      })
      const noise = await compareWithItself(b.side, 's', rounds)
      await Promise.all([a.close(), b.close(), provider.close()])
      return [row, noise]
    }),
  )
}

async function measureBytes({ config, db, registry }: BenchDatabase, url: string, hours: number): Promise<BenchRow[]> {
  const clock = { now: START }
  const now = () => clock.now
  const upstream = await createUpstream({ registry, now, dataDir: null, chains: {}, markets: 'agreeing' })
  const [redis, blocking] = [createRedis(url, silent), createRedis(url, silent, 'blocking')]
  const context = {
    config: parseConfig({ ...toStoreSettings(config), ...toStandInSettings(upstream.url), REDIS_URL: url }),
    ...{ db, redis, blocking, registry, now, log: silent, redact: (text: string) => text },
    recomputation: { enqueue: async () => {}, close: async () => {} },
    http: createHttpClients({ log: silent, backoffMs: 1 }),
  }
  const collected = jobs.filter(({ computedFrom, name }) => computedFrom.length === 0 && name !== 'ratings')
  const opened = collected.map((job) => ({ job, collectors: job.connect(context) }))
  for (let hour = 0; hour < hours; hour += 1) {
    for (const { job, collectors } of opened) {
      const slot = toBucketStart(clock.now, job.cadence)
      await runJob(job, collectors, context, { kind: 'slot', slot }).catch(toPendingReport)
    }
    clock.now += HOUR
  }
  const rows: BenchRow[] = []
  for (const job of collected) rows.push(await compareBytes(db, job, config.clickhouse.database))
  redis.disconnect()
  blocking.disconnect()
  await upstream.close()
  return rows
}

/** The answers of the dataset alone, in tables of the same schema, against the tables with its rows. */
async function compareBytes(db: Database, { dataset }: Job, database: string): Promise<BenchRow> {
  const own = dataset.name.replaceAll('-', '_')
  const params = { dataset: dataset.name }
  const copies: Readonly<Record<string, string>> = {
    raw_runs: 'SELECT * FROM raw_runs FINAL WHERE dataset = {dataset: String}',
    raw_answers: `SELECT * FROM raw_answers FINAL
WHERE hash IN (SELECT arrayJoin(answers.hash) FROM raw_runs WHERE dataset = {dataset: String})`,
  }
  for (const [table, sql] of Object.entries(copies)) {
    await db.command({ name: 'copy', sql: `CREATE TABLE ${table}_${own} AS ${table}` })
    await db.command({ name: 'copy', sql: `INSERT INTO ${table}_${own} ${sql}`, params })
  }
  const rollUps = await findRollUps(db, database, [dataset])
  const decoded = new Set([
    ...[dataset.table, dataset.series.table, ...(await findTargets(db, dataset.table))],
    ...rollUps.filter((one) => one.dataset?.name === dataset.name).map(({ table }) => table),
  ])
  const raw = await countBytes(
    db,
    Object.keys(copies).map((table) => `${table}_${own}`),
  )
  const stored = await countBytes(db, [...decoded])
  return {
    what: `bytes of ${dataset.name}, on disk`,
    a: { name: 'answers', value: raw / 1024, unit: 'KiB' },
    b: {
      name: decoded.size === 1 ? '1 decoded table' : `${decoded.size} decoded tables`,
      value: stored / 1024,
      unit: 'KiB',
    },
    ratio: raw / stored,
    target: atMost(MOST_BYTES),
    reason: 'bodies have members and days that no table stores',
  }
}

/** The tables that views fill from a table. */
async function findTargets(db: Database, source: string): Promise<readonly string[]> {
  const rows = await db.rows({
    name: 'views',
    sql: "SELECT create_table_query AS text FROM system.tables WHERE database = currentDatabase() AND engine = 'MaterializedView'",
    schema: z.object({ text: z.string() }),
  })
  const reads = new RegExp(`FROM (\\w+\\.)?${source}\\b`)
  return rows.flatMap(({ text }) => (reads.test(text) ? (/ TO (?:\w+\.)?(\w+)/.exec(text)?.[1] ?? []) : []))
}

async function countBytes(db: Database, tables: readonly string[]): Promise<number> {
  const engines = await db.rows({
    name: 'engines',
    sql: "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree' AND name IN {tables: Array(String)}",
    params: { tables },
    schema: z.object({ name: z.string() }),
  })
  for (const { name } of engines) await db.command({ name: 'merge', sql: `OPTIMIZE TABLE ${name} FINAL` })
  const [found] = await db.rows({
    name: 'bytes',
    sql: 'SELECT sum(data_compressed_bytes) AS bytes FROM system.parts WHERE active AND database = currentDatabase() AND table IN {tables: Array(String)}',
    params: { tables },
    schema: z.object({ bytes: z.coerce.number() }),
  })
  return found?.bytes ?? Number.NaN
}
