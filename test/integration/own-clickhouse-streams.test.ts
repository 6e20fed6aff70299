import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type OwnClickHouse, startOwnClickHouse } from '../support/own-clickhouse.ts'

let server: OwnClickHouse
let writer: ClickHouseClient
let reader: ClickHouseClient

beforeAll(async () => {
  server = await startOwnClickHouse()
  const connect = ({ name: username, password }: { name: string; password: string }) =>
    createClient({ url: server.url, username, password, log: { level: ClickHouseLogLevel.OFF } })
  writer = connect(server.users.writer)
  reader = connect(server.users.reader)
})
afterAll(async () => {
  await Promise.all([writer.close(), reader.close()])
  await server.stop()
})

async function readNumber(query: string): Promise<number> {
  const result = await writer.query({ query, format: 'JSONCompactEachRow' })
  return Number((await result.json<[string]>())[0]?.[0])
}

function post(query: string, body: Buffer | ReadableStream, headers: Record<string, string> = {}): Promise<Response> {
  const { name, password } = server.users.writer
  return fetch(`${server.url}/?${new URLSearchParams({ query })}`, {
    method: 'POST',
    headers: { 'X-ClickHouse-User': name, 'X-ClickHouse-Key': password, ...headers },
    body: body instanceof Buffer ? new Uint8Array(body) : body,
    ...(body instanceof Buffer ? {} : { duplex: 'half' as const }),
  })
}

it.each(['Parquet', 'Native', 'ArrowStream', 'JSONCompactEachRow'])(
  'takes %s back byte for byte, plain or compressed',
  async (format) => {
    await writer.command({ query: 'CREATE OR REPLACE TABLE back (a UInt32, b String) ENGINE = MergeTree ORDER BY a' })
    const query = `SELECT toUInt32(number) AS a, concat('x;\\n\\0é', toString(number)) AS b FROM numbers(1000)`
    const exported = Buffer.from(await (await post(`${query} FORMAT ${format}`, Buffer.alloc(0))).arrayBuffer())
    const insert = `INSERT INTO back FORMAT ${format}`
    expect((await post(insert, exported)).status).toBe(200)
    expect((await post(insert, gzipSync(exported), { 'Content-Encoding': 'gzip' })).status).toBe(200)
    expect(await readNumber(`SELECT count() FROM back WHERE (a, b) IN (${query})`)).toBe(2_000)
    expect(await readNumber('SELECT uniqExact(a, b) FROM back')).toBe(1_000)
  },
)

it('inserts from a stream of objects', async () => {
  await writer.command({ query: 'CREATE TABLE streamed (a UInt32) ENGINE = MergeTree ORDER BY a' })
  const values = Readable.from(Array.from({ length: 50_000 }, (_, a) => ({ a })))
  await writer.insert({ table: 'streamed', values, format: 'JSONEachRow' })
  expect(await readNumber('SELECT uniqExact(a) FROM streamed')).toBe(50_000)
})

it('stores nothing of a body that is broken, cut off or compressed wrongly', async () => {
  await writer.command({ query: 'CREATE TABLE nothing (a UInt32) ENGINE = MergeTree ORDER BY a' })
  const insert = 'INSERT INTO nothing FORMAT JSONEachRow'
  const body = Buffer.from('{"a":1}\n'.repeat(10_000))
  expect((await post(insert, Buffer.from('{"a":1}\n{"a":oops}\n'))).status).toBe(400)
  expect((await post(insert, gzipSync(body).subarray(0, -6), { 'Content-Encoding': 'gzip' })).ok).toBe(false)
  const broken = new ReadableStream({
    start: (controller) => controller.enqueue(body),
    pull: (controller) => controller.error(new Error('the source failed')),
  })
  await expect(post(insert, broken)).rejects.toThrow()
  expect(await readNumber('SELECT count() FROM nothing')).toBe(0)
})

/** Bytes of memory that the server's process holds. */
function residentBytes(): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))
  return Number(line?.[1]) * 1024
}

it('holds little of a long answer, however slowly it is read', async () => {
  const query = 'SELECT number, repeat(toString(number), 20) AS text FROM numbers(2000000) FORMAT JSONEachRow'
  const read = async () => {
    const { stream } = await reader.exec({ query })
    let [bytes, chunks, peak] = [0, 0, 0]
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (chunks++ % 50 === 0) peak = Math.max(peak, residentBytes())
    }
    return { bytes, peak }
  }
  // Once before, so that the buffers of a statement of this kind are not counted as growth.
  await read()
  const before = residentBytes()
  const { bytes, peak } = await read()
  expect(bytes).toBeGreaterThan(250_000_000)
  expect(peak - before).toBeLessThan(120_000_000)
})

it('ends a statement of the reader when its client leaves, before and during the answer', async () => {
  const running = (query: string) =>
    readNumber(`SELECT count() FROM system.processes WHERE user = 'reader' AND startsWith(query, '${query}')`)
  const gone = (query: string) => expect.poll(() => running(query), { timeout: 20_000 }).toBe(0)

  const silent = 'SELECT sum(sipHash64(number)) FROM numbers(1000000000000)'
  const abort = new AbortController()
  const waiting = reader.exec({ query: silent, abort_signal: abort.signal })
  const left = expect(waiting).rejects.toThrow()
  await expect.poll(() => running(silent), { timeout: 20_000 }).toBe(1)
  abort.abort()
  await left
  await gone(silent)

  const endless = 'SELECT number, sipHash64(number) FROM numbers(1000000000000)'
  const { stream } = await reader.exec({ query: `${endless} FORMAT CSV` })
  expect(await running(endless)).toBe(1)
  stream.destroy()
  await gone(endless)
})
