import { createClient } from '@clickhouse/client'
import { z } from 'zod'
import type { Token } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import prices from '../../workers/jobs/prices.ts'
import { type Chunk, planChunks } from '../../workers/schedule/chunks.ts'
import {
  atLeast,
  type BenchContext,
  type Benchmark,
  type BenchRow,
  type BenchTable,
  type Findings,
} from './define-benchmark.ts'
import type { BenchDatabase } from './engine.ts'
import { compare, compareWithItself, type Side } from './measure.ts'
import { readPeakBytes, readResidentBytes } from './processes.ts'
import { collect, type Stack, withStack } from './stack.ts'

const FROM = Date.parse('2024-01-01T00:00:00Z')
const STEP = 300_000
const CONCURRENCIES = [1, 2, 4]
const TABLES = ['token_prices', 'token_quotes', 'token_price_rollups']

export const backfill: Benchmark = {
  name: 'backfill',
  about:
    "Rows per second of a back-fill through queue, provider, checks and insert, by concurrent jobs of one worker, against inserts of the same rows in the same batches, as JSON by ClickHouse's client and in the worker's way; and the memory of every process.",
  run: (context) => withStack('backfill', (stack) => measure(stack, context)),
}

/** The collected range: complete chunks, so that all have the same number of rows. */
function toPlan({ quick }: BenchContext, { database }: Stack) {
  const { chunkEntities, chunkPoints } = prices.history ?? { chunkEntities: 1, chunkPoints: 1 }
  const grid = chunkPoints * STEP
  const from = Math.ceil(FROM / grid) * grid
  const range = { from, to: from + grid * (quick ? 1 : 2), interval: '5m' as const }
  const tokens = database.registry.tokens.filter(({ live, livePrice, cmcId }) => live && livePrice && cmcId !== null)
  return { range, tokens: tokens.slice(0, chunkEntities * 2) }
}

type Row = Record<string, unknown>
type Insert = (rows: readonly Row[]) => Promise<void>

/** Baselines of the insert: ClickHouse's own client, which sends JSON, and the database as opened by a worker. */
function openInserts({ db, config }: BenchDatabase) {
  const { url, user, password, database } = config.clickhouse
  const client = createClient({ url, username: user, password, database })
  const table = 'token_quotes_in'
  return {
    asJson: async (rows: readonly Row[]) =>
      void (await client.insert({ table, values: [...rows], format: 'JSONEachRow' })),
    asWorker: (rows: readonly Row[]) => db.insert({ table, rows }),
    close: () => client.close(),
  }
}

const ONE_THREAD = 'a worker reads, checks and writes in one thread; more workers are faster'

async function measure(stack: Stack, context: BenchContext): Promise<Findings> {
  const { db } = stack.database
  const inserts = openInserts(stack.database)
  const expected = toPlan(context, stack)
  const chunks = planChunks(prices, expected.tokens, expected.range)
  const first = await startWorker(stack, 1)
  const total = await collect(stack, chunks)
  await first.stop()
  context.say(`${chunks.length} parts of together ${total.toLocaleString('en-US')} rows`)
  const batches = await readBatches(db, chunks, expected.tokens)
  const rows: BenchRow[] = []
  const memory: string[][] = []
  for (const concurrency of CONCURRENCIES) {
    const worker = await startWorker(stack, concurrency)
    const a = toSide(`${concurrency} concurrent`, db, total, () => collect(stack, chunks))
    const toBare = (name: string, insert: Insert) =>
      toSide(name, db, total, () => insertAll(insert, batches, concurrency))
    const asJson = toBare('bare insert as JSON', inserts.asJson)
    const what = `back-fill, ${concurrency} concurrent ${concurrency === 1 ? 'job' : 'jobs'}`
    const measured = { what, unit: 'rows/s', a, rounds: context.quick ? 1 : 5 }
    rows.push(await compare({ ...measured, b: asJson, target: atLeast(0.7), reason: ONE_THREAD }))
    rows.push(await compare({ ...measured, b: toBare('bare insert as of a worker', inserts.asWorker) }))
    if (concurrency === CONCURRENCIES[0]) rows.push(await compareWithItself(asJson, 'rows/s', measured.rounds))
    memory.push(toMemoryCells(`worker, ${concurrency} concurrent`, worker.process.pid))
    await worker.stop()
    context.say(`${what} done`)
  }
  await inserts.close()
  memory.push(toMemoryCells('engine', stack.engine.pid), await measureApi(stack, expected))
  const table: BenchTable = {
    title: 'Memory of the processes after all this',
    head: ['process', 'now, MB', 'at most, MB'],
    body: memory,
  }
  return {
    rows,
    tables: [table],
    notes: [
      `${chunks.length} jobs of ${(total / chunks.length).toLocaleString('en-US')} rows each. The provider answers from memory; the generation of its answers is not measured. Follow-up jobs are enqueued and not run.`,
    ],
  }
}

const startWorker = (stack: Stack, concurrency: number) =>
  stack.start('worker', 'workers/programs/worker.ts', {
    WORKER_QUEUES: 'prices',
    WORKER_HISTORY_CONCURRENCY: String(concurrency),
  })

/** Rows per second into empty tables. */
function toSide(name: string, db: Database, rows: number, work: () => Promise<unknown>): Side {
  return {
    name,
    measure: async () => {
      for (const table of TABLES) await db.command({ name: 'truncate', sql: `TRUNCATE TABLE ${table} SYNC` })
      const startedAt = performance.now()
      await work()
      return rows / ((performance.now() - startedAt) / 1000)
    },
  }
}

/** The rows of each chunk, as a worker inserts them. */
async function readBatches(db: Database, chunks: readonly Chunk[], tokens: readonly Token[]): Promise<Row[][]> {
  const keys = new Map(tokens.map(({ id, key }) => [id, key]))
  const unknown = [
    'max_supply',
    'fully_diluted_market_cap',
    'volume_change_24h',
    'percent_change_60d',
    'percent_change_90d',
    'tvl',
  ]
  const batches: Row[][] = []
  for (const { payload } of chunks) {
    batches.push(
      await db.rows({
        name: 'batch',
        sql: `SELECT token, observed_at, false AS is_latest, price, volume_24h, market_cap, total_supply, circulating_supply,
          ${unknown.map((column) => `NULL AS ${column}`).join(', ')},
          1.2345678 AS percent_change_1h, -2.3456789 AS percent_change_24h, 3.4567891 AS percent_change_7d, -4.5678912 AS percent_change_30d
          FROM token_prices FINAL WHERE token IN {keys: Array(UInt64)} AND observed_at >= fromUnixTimestamp64Milli({from: Int64})
          AND observed_at < fromUnixTimestamp64Milli({to: Int64}) ORDER BY token, observed_at`,
        params: { keys: (payload.entities ?? []).map((id) => keys.get(id)), from: payload.from, to: payload.to },
        schema: z.record(z.string(), z.unknown()),
      }),
    )
  }
  return batches
}

async function insertAll(insert: Insert, batches: readonly Row[][], concurrency: number): Promise<void> {
  const remaining = [...batches]
  const insertNext = async () => {
    for (let rows = remaining.shift(); rows !== undefined; rows = remaining.shift()) await insert(rows)
  }
  await Promise.all(Array.from({ length: concurrency }, insertNext))
}

async function measureApi(stack: Stack, { range, tokens }: ReturnType<typeof toPlan>): Promise<string[]> {
  const api = await stack.start('api', 'api/main.ts')
  for (const { id } of tokens) {
    const query = new URLSearchParams({
      id,
      interval: '5m',
      start: new Date(range.from).toISOString(),
      end: new Date(range.to).toISOString(),
    })
    const answer = await fetch(`${api.ready.url}/data/tokens/historic-financial?${query}`)
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(`the API answered ${answer.status}`)
  }
  const cells = toMemoryCells(`API, after ${tokens.length} long series`, api.process.pid)
  await api.stop()
  return cells
}

function toMemoryCells(name: string, pid = 0): string[] {
  return [name, ...[readResidentBytes(pid), readPeakBytes(pid)].map((bytes) => (bytes / 2 ** 20).toFixed(0))]
}
