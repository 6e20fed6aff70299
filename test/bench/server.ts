import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import autocannon from 'autocannon'
import { z } from 'zod'
import { parseConfig } from '../../shared/config/config.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { startOwnClickHouse } from '../support/own-clickhouse.ts'
import type { BenchContext, Benchmark, BenchRow, Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { compare, compareWithItself, type Side, timed } from './measure.ts'

const CONNECTIONS = [1, 8, 32] as const
const TOKENS = 100
const STEP = INTERVAL_SECONDS['5m']
const DAY_POINTS = (24 * 60 * 60) / STEP
const START = Date.parse('2024-01-01T00:00:00Z') / 1000

const DAY = `SELECT observed_at, price_code FROM token_prices FINAL WHERE token = 7
  AND observed_at >= toDateTime64(${START}, 3, 'UTC') AND observed_at < toDateTime64(${START + 86_400}, 3, 'UTC')
FORMAT JSONCompactEachRow SETTINGS max_threads = 1`

export const server: Benchmark = {
  name: 'server',
  about: 'The bundled ClickHouse server: cost of a statement, an insert and a start.',
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'statements', (database) => measure(context, database))),
}

async function measure({ quick, say }: BenchContext, database: BenchDatabase): Promise<Findings> {
  const points = quick ? 2_000 : 20_000
  say(`storing ${TOKENS} x ${points} points`)
  const stored = await store(database, TOKENS, points)
  const rows: BenchRow[] = []
  for (const connections of CONNECTIONS) {
    const seconds = quick ? 1 : 3
    const side = (name: string, request: Request): Side => ({
      name,
      measure: () => countAnswers(request, connections, seconds),
    })
    const ping = side('/ping', { url: new URL('/ping', database.config.clickhouse.url).href })
    const one = side('one row', toStatement(database, 'SELECT 1 FORMAT JSONCompactEachRow'))
    const day = side(`${DAY_POINTS} rows of one token`, toStatement(database, DAY))
    const at = `${connections} connection${connections === 1 ? '' : 's'}`
    rows.push(await compare({ what: `a statement, ${at}`, unit: 'req/s', a: one, b: ping, rounds: 3 }))
    rows.push(await compare({ what: `a day of prices, ${at}`, unit: 'req/s', a: day, b: one, rounds: 3 }))
  }
  rows.push(await compareInserts(database, quick))
  rows.push(
    await compareWithItself(
      timed('one row', () => read(database), 50),
      'ms',
      5,
    ),
  )
  rows.push(await compareStarts(quick))
  return {
    rows,
    notes: [
      `${stored.toLocaleString('en-US')} points of ${TOKENS} tokens are stored; statements go directly to the server over HTTP, as the API's user.`,
      'With one connection a statement never waits; 32 connections show the limit of two cores.',
    ],
  }
}

const SERIES = `INSERT INTO token_quotes_in (token, observed_at, is_latest, price, volume_24h, market_cap)
SELECT toUInt32(n % {tokens: UInt32} + 1), fromUnixTimestamp64Milli((${START} + intDiv(n, {tokens: UInt32}) * ${STEP}) * 1000, 'UTC'), false,
  round(10 + sin(n / 1000) + n % 13 / 100, 4), NULL, NULL
FROM (SELECT number AS n FROM numbers({rows: UInt64}))`

async function store({ db }: BenchDatabase, tokens: number, points: number): Promise<number> {
  const rows = tokens * points
  await db.command({ name: 'series', sql: SERIES, params: { tokens, rows } })
  return rows
}

interface Request {
  readonly url: string
  readonly headers?: Record<string, string>
}

function toStatement({ config }: BenchDatabase, sql: string): Request {
  const { url, readUser, readPassword, database } = config.clickhouse
  const search = new URLSearchParams({ query: sql, database })
  return { url: `${url}/?${search}`, headers: { 'X-ClickHouse-User': readUser, 'X-ClickHouse-Key': readPassword } }
}

/** Responses per second; any status except 200 is an error. */
async function countAnswers(request: Request, connections: number, duration: number): Promise<number> {
  const result = await autocannon({ ...request, connections, duration })
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx + result.errors} answers were errors`)
  return result.requests.average
}

const read = ({ reader }: BenchDatabase) => reader.rows({ name: 'one', sql: 'SELECT 1 AS one', schema: z.unknown() })

/** One insert of many rows against the same number of rows in inserts of a thousand, with prepared text. */
function compareInserts({ db }: BenchDatabase, quick: boolean): Promise<BenchRow> {
  const rows = quick ? 10_000 : 100_000
  const toText = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => `{"n":${from + n},"text":"row ${from + n}"}\n`).join('')
  const insert = async (size: number) => {
    const startedAt = performance.now()
    for (let from = 0; from < rows; from += size) {
      const data = Readable.from([toText(from, size)])
      await db.load({ table: 'inserted', columns: ['n', 'text'], format: 'JSONEachRow', data })
    }
    return rows / ((performance.now() - startedAt) / 1000)
  }
  const create = db.command({
    name: 'create',
    sql: 'CREATE TABLE IF NOT EXISTS inserted (n UInt32, text String) ENGINE = MergeTree ORDER BY n',
  })
  return create.then(() =>
    compare({
      what: 'inserts',
      unit: 'rows/s',
      a: { name: 'of 1,000 rows', measure: () => insert(1_000) },
      b: { name: `of ${rows.toLocaleString('en-US')} rows`, measure: () => insert(rows) },
      rounds: 3,
    }),
  )
}

/** From the start of the process to its first response. */
async function compareStarts(quick: boolean): Promise<BenchRow> {
  const dataDir = await mkdtemp(join(tmpdir(), 'dao-data-bench-start-'))
  const start = async (folder?: string) => {
    const startedAt = performance.now()
    const engine = await startOwnClickHouse(folder === undefined ? {} : { dataDir: folder })
    const taken = performance.now() - startedAt
    await engine.stop()
    return taken
  }
  try {
    const first = await startOwnClickHouse({ dataDir })
    const db = createDatabase(parseConfig(first.settings).clickhouse, 'write', { database: 'default' })
    await db.command({ name: 'create', sql: 'CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n' })
    const rows = quick ? 100_000 : 10_000_000
    await db.command({
      name: 'fill',
      sql: 'INSERT INTO kept SELECT number FROM numbers({rows: UInt64})',
      params: { rows },
    })
    await db.close()
    await first.kill()
    return await compare({
      what: 'from a start to the first answer',
      unit: 'ms',
      a: { name: 'a folder with data, after kill -9', measure: () => start(dataDir) },
      b: { name: 'an empty folder', measure: () => start() },
      rounds: 3,
    })
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}
