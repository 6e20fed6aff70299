import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { type ClickHouseClient, ClickHouseLogLevel, createClient, isProgressRow, TupleParam } from '@clickhouse/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OwnClickHouse, startOwnClickHouse } from '../support/own-clickhouse.ts'

let server: OwnClickHouse
const clients: ClickHouseClient[] = []

type Options = Parameters<typeof createClient>[0]

const connect = (options: Options = {}) => connectAs('writer', options)

function connectAs(role: 'writer' | 'reader', options: Options = {}): ClickHouseClient {
  const { name: username, password } = server.users[role]
  const log = { level: ClickHouseLogLevel.OFF }
  const client = createClient({ url: server.url, username, password, log, ...options })
  clients.push(client)
  return client
}

async function rows<T>(client: ClickHouseClient, query: string, query_params: Record<string, unknown> = {}) {
  return (await client.query({ query, query_params, format: 'JSONEachRow' })).json<T>()
}

/** The server's response to a plain HTTP request of the writer. */
function request(search: string, headers: Record<string, string> = {}, body?: Buffer): Promise<Response> {
  const { name, password } = server.users.writer
  return fetch(`${server.url}/?${search}`, {
    method: 'POST',
    headers: { 'X-ClickHouse-User': name, 'X-ClickHouse-Key': password, ...headers },
    body: body === undefined ? null : new Uint8Array(body),
  })
}

beforeAll(async () => {
  server = await startOwnClickHouse()
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()))
  await server.stop()
})

describe('ClickHouse client of the embedded server', () => {
  it('keeps a temporary table within its session', async () => {
    const [one, second] = [connect({ session_id: 'one' }), connect({ session_id: 'other' })]
    await one.command({ query: 'CREATE TEMPORARY TABLE kept (a UInt8)' })
    await one.insert({ table: 'kept', values: [{ a: 1 }, { a: 2 }], format: 'JSONEachRow' })
    expect(await rows(one, 'SELECT toUInt8(sum(a)) AS sum FROM kept')).toEqual([{ sum: 3 }])
    await expect(rows(second, 'SELECT * FROM kept')).rejects.toMatchObject({ code: '60', type: 'UNKNOWN_TABLE' })
  })

  it('cancels a statement by its id', async () => {
    const query_id = 'the endless one'
    const running = connect().query({ query: 'SELECT count() FROM system.numbers', query_id })
    const stopped = expect(running).rejects.toMatchObject({ code: '394', type: 'QUERY_WAS_CANCELLED' })
    const killer = connect()
    const isRunning = async () =>
      (await rows(killer, 'SELECT 1 FROM system.processes WHERE query_id = {query_id:String}', { query_id })).length
    await expect.poll(isRunning, { timeout: 20_000 }).toBe(1)
    await killer.command({ query: 'KILL QUERY WHERE query_id = {query_id:String} SYNC', query_params: { query_id } })
    await stopped
    expect(await isRunning()).toBe(0)
  })

  it('receives counts of written and read rows, and the progress of a statement', async () => {
    const client = connect()
    await client.command({ query: 'CREATE TABLE counted (a UInt32) ENGINE = MergeTree ORDER BY a' })
    const values = Array.from({ length: 1_000 }, (_, a) => ({ a }))
    const { summary } = await client.insert({ table: 'counted', values, format: 'JSONEachRow' })
    expect(summary).toMatchObject({ written_rows: '1000' })
    const result = await client.query({
      query: 'SELECT a, sleepEachRow(0.001) AS slow FROM counted',
      format: 'JSONEachRowWithProgress',
      clickhouse_settings: { max_block_size: '100', wait_end_of_query: 1 },
    })
    expect(JSON.parse(String(result.response_headers['x-clickhouse-summary']))).toMatchObject({ read_rows: '1000' })
    const lines = await result.json<{ a: number }>()
    expect(lines.filter((line) => 'row' in line)).toHaveLength(1_000)
    expect(lines.filter(isProgressRow).at(-1)?.progress.read_rows).toBe('1000')
  })

  it('binds parameters of every kind exactly', async () => {
    const hard = 'a\'b\\c\nd\te\rf\0é😀\\N"`{x:String}'
    const values = Array.from({ length: 3_000 }, (_, index) => `it's ${index}`)
    const result = await connect().query({
      query: `SELECT {s:String} AS s, {n:Nullable(String)} AS n, {a:Array(Nullable(String))} AS a, {i:Int64} + 1 AS i,
        {f:Float64} AS f, {b:Bool} AS b, {t:Tuple(Int32, String)} AS t, {m:Map(String, UInt8)} AS m,
        toString({d:DateTime64(3)}) AS d, (SELECT toUInt8(count()) FROM system.{table:Identifier}) AS one,
        length({values:Array(String)}) AS length, {values:Array(String)}[2] AS second`,
      query_params: {
        s: hard,
        n: null,
        a: [hard, null, ''],
        i: -42,
        f: 0.1,
        b: true,
        t: new TupleParam([7, hard]),
        m: { k: 1 },
        d: new Date('2024-05-06T07:08:09.123Z'),
        table: 'one',
        values,
      },
      format: 'JSONEachRow',
      // Sent as a multipart body: 3,000 texts are too long for a URL.
      use_multipart_params: true,
    })
    expect(await result.json()).toEqual([
      {
        ...{ s: hard, n: null, a: [hard, null, ''], i: -41, f: 0.1, b: true, t: [7, hard], m: { k: 1 } },
        ...{ d: '2024-05-06 07:08:09.123', one: 1, length: 3000, second: "it's 1" },
      },
    ])
  })

  it('reads complete responses in every format and compression', async () => {
    const query = 'SELECT number AS n FROM numbers(200000)'
    for (const client of [connect(), connect({ compression: { response: true, request: true } })]) {
      const json = await (await client.query({ query, format: 'JSON' })).json<{ n: string }>()
      expect(json.data).toHaveLength(200_000)
      const csv = await (await client.query({ query, format: 'CSVWithNames' })).text()
      expect(csv.split('\n')).toHaveLength(200_002)
    }
  })

  it('detects a failure in the middle of a response', async () => {
    const query =
      'SELECT throwIf(number = 300000) AS x, randomString(100) AS noise FROM numbers(400000) SETTINGS max_threads = 1'
    for (const client of [connect(), connect({ compression: { response: true } })]) {
      const full = await client.query({ query, format: 'JSONEachRow' })
      await expect(full.text()).rejects.toThrow()
      const parsed = await client.query({ query, format: 'JSONEachRow' })
      await expect(once(parsed.stream().resume(), 'end')).rejects.toThrow()
      const held = client.query({ query, format: 'CSV', clickhouse_settings: { wait_end_of_query: 1 } })
      await expect(held).rejects.toMatchObject({ code: '395' })
    }
  })
})

describe('plain HTTP request to the embedded server', () => {
  it('passes any bytes through a parameter unchanged', async () => {
    const sent = 'a%5C0%FF%FE%C3%28%5C%5C%5Ct' // a \0 FF FE C3 ( \ tab, with ClickHouse's own escapes
    const answer = await request(`param_p=${sent}&query=SELECT+{p:String}+FORMAT+RawBLOB`)
    expect(Buffer.from(await answer.arrayBuffer()).toString('hex')).toBe('6100fffec3285c09')
  })

  it.each(['gzip', 'deflate', 'br', 'zstd', 'lz4'])('receives a response compressed with %s', async (encoding) => {
    const answer = await request('enable_http_compression=1&query=SELECT+1', { 'Accept-Encoding': encoding })
    expect([answer.status, answer.headers.get('content-encoding')]).toEqual([200, encoding])
  })

  it.each([
    ['no HTTP', 'nonsense'],
    ['an unknown version', 'GET / HTTP/9.9\r\n\r\n'],
    ['an endless address', `GET /${'x'.repeat(100_000)} HTTP/1.1\r\n\r\n`],
    ['endless headers', `GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(10_000)}\r\n`],
    ['a length below 0', 'POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n'],
    ['a chunk without length', 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nno number'],
    ['half a body', 'POST / HTTP/1.1\r\nAuthorization: Basic !!!\r\nContent-Length: 9\r\n\r\nSELECT'],
    ['broken escapes', 'GET /?query=%ZZ&param_%00=%FF HTTP/1.1\r\nContent-Encoding: nonsense\r\n\r\n'],
  ])('leaves the server running when it consists of %s', async (_, bytes) => {
    const { hostname, port } = new URL(server.url)
    const socket = connectSocket(Number(port), hostname).on('error', () => {})
    socket.resume().end(bytes)
    await once(socket, 'close')
    expect(await (await request('query=SELECT+1')).text()).toBe('1\n')
  })

  it('fails without a delay for an unknown format, also when repeated', async () => {
    const searches = ['query=SELECT+1+FORMAT+Foo', 'query=SELECT+1&default_format=Foo']
    const answers = await Promise.all([...searches, ...searches, ...searches].map((search) => request(search)))
    const codes = answers.map((answer) => answer.headers.get('x-clickhouse-exception-code'))
    expect(codes).toEqual(['73', '73', '73', '73', '73', '73'])
    expect(await (await request('query=SELECT+1')).text()).toBe('1\n')
  })
})

it.each(['Parquet', 'Native', 'ArrowStream', 'JSONCompactEachRow'])(
  'embedded server exports and imports %s byte for byte, plain and compressed',
  async (format) => {
    const run = (query: string, headers?: Record<string, string>, body?: Buffer) =>
      request(String(new URLSearchParams({ query })), headers, body)
    await run('CREATE OR REPLACE TABLE back (a UInt32, b String) ENGINE = MergeTree ORDER BY a')
    const query = `SELECT toUInt32(number) AS a, concat('x;\\n\\0é', toString(number)) AS b FROM numbers(1000)`
    const exported = Buffer.from(await (await run(`${query} FORMAT ${format}`)).arrayBuffer())
    const insert = `INSERT INTO back FORMAT ${format}`
    expect((await run(insert, {}, exported)).status).toBe(200)
    expect((await run(insert, { 'Content-Encoding': 'gzip' }, gzipSync(exported))).status).toBe(200)
    const stored = await run(`SELECT count(), uniqExact(a, b) FROM back WHERE (a, b) IN (${query})`)
    expect(await stored.text()).toBe('2000\t1000\n')
  },
)

/** Resident memory of the server's process, in bytes. */
function residentBytes(): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))
  return Number(line?.[1]) * 1024
}

it('embedded server streams a long response with little memory', async () => {
  const query = 'SELECT number, repeat(toString(number), 20) AS text FROM numbers(4000000) FORMAT JSONEachRow'
  const reader = connectAs('reader')
  const read = async () => {
    const { stream } = await reader.exec({ query })
    let [bytes, chunks, peak] = [0, 0, 0]
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (chunks++ % 50 === 0) peak = Math.max(peak, residentBytes())
    }
    return { bytes, peak }
  }
  // Warm-up, so that the buffers of this kind of statement do not count as growth.
  await read()
  const before = residentBytes()
  const { bytes, peak } = await read()
  expect(bytes).toBeGreaterThan(600_000_000)
  // Blocks in flight take 60 to 130 MB, depending on how busy the machine is; a whole response would take its size.
  expect(peak - before).toBeLessThan(bytes / 3)
})

it("embedded server cancels the reader's statement when its client disconnects, before and during the response", async () => {
  const [writer, reader] = [connect(), connectAs('reader')]
  const ofReader = "SELECT query FROM system.processes WHERE user = 'reader' AND startsWith(query, {query:String})"
  const running = async (query: string) => (await rows(writer, ofReader, { query })).length
  const gone = (query: string) => expect.poll(() => running(query), { timeout: 20_000 }).toBe(0)

  const silent = 'SELECT sum(sipHash64(number)) FROM numbers(1000000000000)'
  const abort = new AbortController()
  const waiting = reader.exec({ query: silent, abort_signal: abort.signal })
  const remaining = expect(waiting).rejects.toThrow()
  await expect.poll(() => running(silent), { timeout: 20_000 }).toBe(1)
  abort.abort()
  await remaining
  await gone(silent)

  const endless = 'SELECT number, sipHash64(number) FROM numbers(1000000000000)'
  const { stream } = await reader.exec({ query: `${endless} FORMAT CSV` })
  expect(await running(endless)).toBe(1)
  stream.destroy()
  await gone(endless)
})
