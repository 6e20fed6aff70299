import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type EmbeddedProcess, startEmbeddedClickHouse } from '../support/embedded-clickhouse.ts'

let embedded: EmbeddedProcess
let client: ClickHouseClient

beforeAll(async () => {
  embedded = await startEmbeddedClickHouse()
  client = createClient({
    url: embedded.url,
    username: 'writer',
    password: '',
    log: { level: ClickHouseLogLevel.OFF },
    compression: { request: true },
  })
})
afterAll(async () => {
  await client.close()
  await embedded.stop()
})

async function single(query: string): Promise<Record<string, unknown>> {
  const result = await client.query({ query, format: 'JSONEachRow' })
  const [row] = await result.json<Record<string, unknown>>()
  return Object.fromEntries(Object.entries(row ?? {}).map(([name, value]) => [name, Number(value)]))
}

async function post(query: string, body: Buffer, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${embedded.url}/?${new URLSearchParams({ query })}`, {
    method: 'POST',
    headers: { 'X-ClickHouse-User': 'writer', ...headers },
    body: new Uint8Array(body),
  })
}

/** Bytes of memory that the server's process holds. */
function residentBytes(): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${embedded.pid}/status`, 'utf8'))
  return Number(line?.[1]) * 1024
}

it('inserts 100,000 rows from a gzip body and reports them', async () => {
  await client.command({ query: 'CREATE TABLE many (a UInt32, b String) ENGINE = MergeTree ORDER BY a' })
  const values = Array.from({ length: 100_000 }, (_, a) => ({ a, b: `it's; "${a}"\n` }))
  const { summary } = await client.insert({ table: 'many', values, format: 'JSONEachRow' })
  expect(summary?.written_rows).toBe('100000')
  expect(await single('SELECT count() AS n, sum(a) AS s FROM many')).toEqual({ n: 100_000, s: 4_999_950_000 })
})

it('inserts from a stream of objects', async () => {
  await client.command({ query: 'CREATE TABLE streamed (a UInt32) ENGINE = MergeTree ORDER BY a' })
  const source = Readable.from(
    (function* () {
      for (let a = 0; a < 50_000; a += 1) yield { a }
    })(),
  )
  await client.insert({ table: 'streamed', values: source, format: 'JSONEachRow' })
  expect(await single('SELECT uniqExact(a) AS n FROM streamed')).toEqual({ n: 50_000 })
})

it.each(['Parquet', 'RowBinary', 'Native', 'ArrowStream', 'CSVWithNames', 'JSONCompactEachRow'])(
  'takes %s back byte for byte, in the body or behind the statement, plain or compressed',
  async (format) => {
    await client.command({ query: 'CREATE OR REPLACE TABLE back (a UInt32, b String) ENGINE = MergeTree ORDER BY a' })
    const query = `SELECT toUInt32(number) AS a, concat('x;\\n\\0é', toString(number)) AS b FROM numbers(1000)`
    const exported = Buffer.from(await (await post(`${query} FORMAT ${format}`, Buffer.alloc(0))).arrayBuffer())
    const insert = `INSERT INTO back FORMAT ${format}`
    expect((await post(insert, exported)).status).toBe(200)
    expect((await post(insert, gzipSync(exported), { 'Content-Encoding': 'gzip' })).status).toBe(200)
    expect((await post('', Buffer.concat([Buffer.from(`${insert}\n`), exported]))).status).toBe(200)
    expect(await single(`SELECT count() AS n, uniqExact(a, b) AS u FROM back WHERE (a, b) IN (${query})`)).toEqual({
      n: 3_000,
      u: 1_000,
    })
  },
)

it('takes inline VALUES with expressions and a closing semicolon', async () => {
  await client.command({ query: 'CREATE TABLE inline (a UInt32, b String) ENGINE = MergeTree ORDER BY a' })
  await client.command({ query: "INSERT INTO inline (a, b) VALUES (1 + 1, 'a;b'), (3, upper('c'));" })
  await client.command({ query: 'INSERT INTO inline VALUES (4, {b:String})', query_params: { b: "d'" } })
  const result = await client.query({ query: 'SELECT b FROM inline ORDER BY a', format: 'JSONCompactEachRow' })
  expect(await result.json()).toEqual([['a;b'], ['C'], ["d'"]])
})

it('stores nothing of a body that is broken, cut off or compressed wrongly', async () => {
  await client.command({ query: 'CREATE TABLE nothing (a UInt32) ENGINE = MergeTree ORDER BY a' })
  const insert = 'INSERT INTO nothing FORMAT JSONEachRow'
  const body = Buffer.from('{"a":1}\n'.repeat(10_000))
  expect((await post(insert, Buffer.from('{"a":1}\n{"a":oops}\n'))).status).toBe(400)
  expect((await post(insert, gzipSync(body).subarray(0, -6), { 'Content-Encoding': 'gzip' })).ok).toBe(false)
  const broken = new ReadableStream({
    start(controller) {
      controller.enqueue(body)
    },
    pull(controller) {
      controller.error(new Error('the source failed'))
    },
  })
  const url = `${embedded.url}/?${new URLSearchParams({ query: insert })}`
  const init = { method: 'POST', headers: { 'X-ClickHouse-User': 'writer' }, body: broken, duplex: 'half' as const }
  await expect(fetch(url, init)).rejects.toThrow()
  expect(await single('SELECT count() AS n FROM nothing')).toEqual({ n: 0 })
  expect(readdirSync(join(embedded.dataDir, 'clickhouse/embedded-spool'))).toEqual([])
})

it('streams 2,000,000 rows no faster than they are read, in flat memory', async () => {
  const query = 'SELECT number, repeat(toString(number), 20) AS text FROM numbers(2000000) FORMAT JSONEachRow'
  // Once before, so that the buffers and arenas of a query of this kind are not counted as growth.
  await once(((await client.exec({ query })).stream as Readable).resume(), 'end')
  const { stream } = await client.exec({ query })
  const source = stream as Readable
  const before = residentBytes()
  let peak = 0
  let bytes = 0
  let newlines = 0
  for await (const chunk of source as AsyncIterable<Buffer>) {
    if (bytes % 7 === 0) peak = Math.max(peak, residentBytes())
    bytes += chunk.length
    for (const byte of chunk) newlines += byte === 10 ? 1 : 0
  }
  expect(newlines).toBe(2_000_000)
  expect(bytes).toBeGreaterThan(250_000_000)
  expect(peak - before).toBeLessThan(120_000_000)
})

it('stops a statement when its client goes away, before and during the result', async () => {
  const isRunning = async (query: string) =>
    (await single(`SELECT count() AS n FROM system.processes WHERE startsWith(query, '${query}')`)).n === 1

  const silent = 'SELECT sum(sipHash64(number)) FROM numbers(1000000000000)'
  const abort = new AbortController()
  const waiting = client.exec({ query: silent, abort_signal: abort.signal })
  await expect.poll(() => isRunning(silent)).toBe(true)
  abort.abort()
  await expect(waiting).rejects.toThrow()
  await expect.poll(() => isRunning(silent), { timeout: 20_000 }).toBe(false)

  const endless = 'SELECT * FROM system.numbers'
  const { stream } = await client.exec({ query: `${endless} FORMAT CSV` })
  expect(await isRunning(endless)).toBe(true)
  stream.destroy()
  await expect.poll(() => isRunning(endless), { timeout: 20_000 }).toBe(false)
  expect(await single('SELECT 1 AS n')).toEqual({ n: 1 })
})

it('answers while a scalar subquery is computed', async () => {
  const slow = client.query({ query: 'SELECT (SELECT sum(sipHash64(number)) FROM numbers(300000000)) AS x' })
  let done = false
  const finished = slow
    .then((result) => result.text())
    .finally(() => {
      done = true
    })
  await fetch(`${embedded.url}/ping`)
  expect(await single('SELECT 1 AS n')).toEqual({ n: 1 })
  expect(done).toBe(false)
  await finished
})
