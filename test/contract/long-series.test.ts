import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { historicFinancialRoute } from '../../api/routes/tokens/historic-financial.ts'
import { DataError } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/store.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'

const NOW = Date.parse('2026-12-01T00:02:00Z')
const POINTS = 500_000
const MEASURE_EVERY = 10_000_000

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let path: string
/** The same points as a stream of ClickHouse: JSON answers are assembled from cached chunks. */
let table: string
let key: number

const open = (url: string, headers: Record<string, string> = {}) =>
  new Promise<IncomingMessage>((resolve, reject) => get(url, { headers }, resolve).on('error', reject))

beforeAll(async () => {
  database = await createApiDatabase(config)
  const uni = getToken(database.registry, 'UNI')
  key = uni.key
  await storeMarket(database.writer, {
    keys: [key],
    until: NOW - 60_000,
    points: POINTS,
    stepMs: 300_000,
  })
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
  path = `/data/tokens/historic-financial?id=${uni.id}&interval=5m&start=2022-02-01`
  table = `${path}&format=ndjson`
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

it('a long series streams half a million points in constant memory', async () => {
  const response = await open(api.url + path)
  expect(response.headers['x-series-points']).toBe(String(POINTS))
  let bytes = 0
  const samples: number[] = []
  // Measure after a forced collection: the time of automatic collections is not defined.
  const held = () => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = held()
  for await (const chunk of response) {
    const [length, tenth] = [(chunk as Buffer).length, Math.floor(bytes / MEASURE_EVERY)]
    bytes += length
    if (Math.floor(bytes / MEASURE_EVERY) > tenth) samples.push(held() - before)
  }
  expect(bytes).toBeGreaterThan(100_000_000)
  // Server and client share this process, so data in transit counts twice. A buffered body would be over 100 MB.
  expect(Math.max(...samples)).toBeLessThan(80_000_000)
})

it('a long series is complete and valid, with an ETag of its data', async () => {
  const response = await fetch(`${api.url}${path}&limit=6000`)
  const tag = response.headers.get('etag') ?? ''
  const body = await response.json()
  historicFinancialRoute.response.parse(body)
  expect((body as { data: unknown[] }).data).toHaveLength(6000)
  const repeated = await fetch(`${api.url}${path}&limit=6000`, { headers: { 'if-none-match': tag } })
  expect(repeated.status).toBe(304)
  expect(tag).toMatch(/-gzip"$/)
  const shorter = await fetch(`${api.url}${path}&limit=6001`, { method: 'HEAD' })
  expect(shorter.headers.get('x-series-points')).toBe('6001')
  expect(shorter.headers.get('etag')).not.toBe(tag)
})

it('a long table aborts its query when the client disconnects', async () => {
  let source: Readable | undefined
  const db: Database = {
    ...database.db,
    stream: async (statement) => {
      source = await database.db.stream(statement)
      return source
    },
  }
  const watched = await startApi({ config, ...database, db, changeFeed, now: () => NOW })
  try {
    const response = await open(watched.url + table)
    await once(response, 'readable')
    expect(source?.destroyed).toBe(false)
    const closed = new Promise((resolve) => source?.once('close', resolve))
    response.on('error', () => {}).destroy()
    await closed
    expect(source?.readableEnded).toBe(false)
  } finally {
    await watched.close()
  }
})

const THOUSAND_ROWS = Buffer.from('{"n":1},\n'.repeat(1_000))

/** A database whose stream fails after the given number of chunks of a thousand rows. */
function createBreaking(thousands: number): Database {
  const write = async function* () {
    yield Buffer.from('[\n')
    for (let n = 0; n < thousands; n += 1) yield THOUSAND_ROWS
    // The error of every stream of the real database.
    throw new DataError('storage', 'the stream broke off', { cause: new Error('connection lost') })
  }
  return { ...database.db, stream: async () => Readable.from(write()) }
}

it('a long table is aborted if the database fails, and never looks complete', async () => {
  const db = createBreaking(100)
  const broken = await startApi({ config, ...database, db, changeFeed, now: () => NOW })
  try {
    const response = await fetch(broken.url + table)
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow()
  } finally {
    await broken.close()
  }
})

it('a long table is aborted with a TCP reset if the response has no length and no chunked encoding', async () => {
  const broken = await startApi({ config, ...database, db: createBreaking(100), changeFeed, now: () => NOW })
  try {
    // Node's own client treats a reset after unread bytes as a normal end, so use bash.
    const { port } = new URL(broken.url)
    const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET %s HTTP/1.0\r\n\r\n' '${table}' >&3; cat <&3`
    const client = spawn('bash', ['-c', script], { env: { ...process.env, LC_ALL: 'C' } })
    const [answer, received, [status]] = await Promise.all([
      text(client.stdout),
      text(client.stderr),
      once(client, 'exit'),
    ])
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(answer.slice(0, 2_000).toLowerCase()).not.toMatch(/^(content-length|transfer-encoding):/m)
    expect(received).toContain('reset by peer')
    expect(status).toBe(1)
  } finally {
    await broken.close()
  }
})

/** Sends `behind` on the same connection while the series is sent, and returns all bytes of the connection. */
async function readWith(behind: string): Promise<string> {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
  // More points than the socket buffers take.
  socket.write(`GET ${path}&limit=120000 HTTP/1.1\r\nHost: a\r\n\r\n`)
  await once(socket, 'readable')
  socket.write(`${behind}\r\n\r\n`)
  const read: Buffer[] = []
  for await (const bytes of socket) read.push(bytes as Buffer)
  return String(Buffer.concat(read))
}

it('a long series is complete before malformed bytes behind its request are answered with 400', async () => {
  const answer = await readWith('what?')
  expect(answer.split('\r\n0\r\n\r\n')).toEqual([
    expect.stringContaining(' 200 '),
    expect.stringMatching(/^HTTP\/1\.1 400 /),
  ])
})

it('a long answer has no more listeners than Node expects', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  await Promise.all([readWith('what?'), fetch(api.url + table).then((response) => response.arrayBuffer())])
  process.off('warning', note)
  expect(warnings).toEqual([])
})

it('malformed bytes after two valid requests do not replace one of the responses', async () => {
  const short = '/data/chains'
  await (await fetch(api.url + short)).text()
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
  const request = `GET ${short} HTTP/1.1\r\nHost: a\r\n\r\n`
  socket.write(`${request}${request}what?\r\n\r\n`)
  // The connection is closed after the responses.
  const statuses = (await text(socket)).match(/HTTP\/1\.1 \d+/g)
  expect(statuses).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400'])
})

it.each([
  ['without a Host', 'GET /data/tokens HTTP/1.1'],
  ['with an unknown Expect header', 'GET /data/tokens HTTP/1.1\r\nHost: a\r\nExpect: wonders'],
])('a long series is complete before the next request %s is rejected', async (_what, behind) => {
  const answer = await readWith(behind)
  expect(answer.split('\r\n0\r\n\r\n')).toEqual([
    expect.stringContaining(' 200 '),
    expect.stringMatching(/^HTTP\/1\.1 400 /),
  ])
})

it.each([
  [
    'before its first byte',
    () => ({
      ...database.db,
      stream: async () =>
        new Readable({
          read() {
            this.destroy(new Error('connection lost'))
          },
        }),
    }),
  ],
  ['before anything is sent', () => createBreaking(1)],
])('a long table whose database fails %s returns 503', async (_when, toDatabase) => {
  const db: Database = toDatabase()
  const broken = await startApi({ config, ...database, db, changeFeed, now: () => NOW })
  try {
    const response = await fetch(broken.url + table)
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('5')
  } finally {
    await broken.close()
  }
})

it('a short table is built again if its data changes during the read', async () => {
  const aave = getToken(database.registry, 'AAVE')
  const store = (points: number) =>
    storeMarket(database.writer, { keys: [aave.key], until: NOW - 60_000, points, stepMs: 300_000 })
  await store(1)
  let readings = 0
  const db: Database = {
    ...database.db,
    stream: async (statement) => {
      readings += 1
      if (readings <= 2) await store(1 + readings)
      return database.db.stream(statement)
    },
  }
  const changing = await startApi({ config, ...database, db, changeFeed, now: () => NOW })
  const sparse = table.replace(/id=\w+/, `id=${aave?.id}`)
  try {
    const response = await fetch(changing.url + sparse)
    const lines = (await response.text()).trimEnd().split('\n')
    expect([response.status, lines.length, response.headers.get('x-series-points')]).toEqual([200, 3, '3'])
    expect(readings).toBe(3)
    const repeated = await fetch(changing.url + sparse)
    expect(repeated.headers.get('etag')).toBe(response.headers.get('etag'))
    await repeated.arrayBuffer()
  } finally {
    await changing.close()
  }
})

it('a long series has the same ETag only for the same bytes, also if its data changes during the read', async () => {
  let price = 7
  const db: Database = {
    ...database.db,
    stream: async (statement) => {
      price += 1
      const correction = { keys: [key], until: NOW - 3_060_000, points: 1, stepMs: 300_000, price }
      await storeMarket(database.writer, correction)
      return database.db.stream(statement)
    },
  }
  const changing = await startApi({ config, ...database, db, changeFeed, now: () => NOW })
  const recent = path.replace('2022-02-01', '2026-10-25')
  const read = async () => {
    const response = await fetch(changing.url + recent)
    expect(response.status).toBe(200)
    return { tag: response.headers.get('etag'), text: await response.text() }
  }
  try {
    const first = await read()
    expect(JSON.parse(first.text).data.length).toBeGreaterThan(5_000)
    expect(await read()).toEqual(first)
    changeFeed.commit('prices', { from: NOW - 3_060_000, to: NOW - 3_060_000 })
    const second = await read()
    expect(second.text === first.text).toBe(false)
    expect(second.tag).not.toBe(first.tag)
  } finally {
    await changing.close()
  }
})

it('a long series in gzip decodes to the same text as without, and is the same without a cache', async () => {
  const uncached = await startApi({
    ...{ ...database, changeFeed, now: () => NOW },
    config: { ...config, api: { ...config.api, cacheBytes: 0 } },
  })
  try {
    const read = async (url: string, encoding: string) => {
      const response = await fetch(`${url}${path}&limit=7000`, { headers: { 'accept-encoding': encoding } })
      return { tag: response.headers.get('etag')?.replace('-gzip', ''), text: await response.text() }
    }
    const first = await read(api.url, 'gzip')
    expect(JSON.parse(first.text).data).toHaveLength(7000)
    for (const other of [read(api.url, 'identity'), read(api.url, 'br'), read(uncached.url, 'gzip')])
      expect((await other).text === first.text).toBe(true)
    expect((await read(uncached.url, 'identity')).tag).toBe(first.tag)
  } finally {
    await uncached.close()
  }
})

it('a long series whose database fails returns 503 and never a part of it', async () => {
  const broken = await startApi({ config, ...database, db: createBreaking(1), changeFeed, now: () => NOW })
  try {
    expect((await fetch(broken.url + path)).status).toBe(503)
  } finally {
    await broken.close()
  }
})
