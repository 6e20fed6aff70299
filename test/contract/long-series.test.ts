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
import type { Database } from '../../shared/store/clickhouse.ts'
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
const commits = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
let path: string
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
  api = await startApi({ config, ...database, commits, now: () => NOW })
  path = `/data/tokens/historic-financial?id=${uni.id}&interval=5m&start=2022-02-01`
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

it('streams half a million points in flat memory', async () => {
  const response = await open(api.url + path)
  expect(response.headers['x-series-points']).toBe(String(POINTS))
  let bytes = 0
  const samples: number[] = []
  // Only what is still held after a collection tells: when the collector runs by itself is nobody's promise.
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
  // Server and client share this process, so what is on its way counts twice; a whole body held would be over 100 MB.
  expect(Math.max(...samples)).toBeLessThan(80_000_000)
})

it('is whole, valid and tagged by its data', async () => {
  const response = await fetch(`${api.url}${path}&limit=6000`)
  const tag = response.headers.get('etag') ?? ''
  const body = await response.json()
  historicFinancialRoute.response.parse(body)
  expect((body as { data: unknown[] }).data).toHaveLength(6000)
  const again = await fetch(`${api.url}${path}&limit=6000`, { headers: { 'if-none-match': tag } })
  expect(again.status).toBe(304)
  expect(tag).toMatch(/-gzip"$/)
  const shorter = await fetch(`${api.url}${path}&limit=6001`, { method: 'HEAD' })
  expect(shorter.headers.get('x-series-points')).toBe('6001')
  expect(shorter.headers.get('etag')).not.toBe(tag)
})

it('ends the query when the client leaves', async () => {
  let source: Readable | undefined
  const db: Database = {
    ...database.db,
    stream: async (statement) => {
      source = await database.db.stream(statement)
      return source
    },
  }
  const watched = await startApi({ config, ...database, db, commits, now: () => NOW })
  try {
    const response = await open(watched.url + path)
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

/** A database that breaks off after so many thousand rows, which come one thousand after the other. */
function createBreaking(thousands: number): Database {
  const write = async function* () {
    yield Buffer.from('[\n')
    for (let n = 0; n < thousands; n += 1) yield THOUSAND_ROWS
    throw new Error('connection lost')
  }
  return { ...database.db, stream: async () => Readable.from(write()) }
}

it('breaks off when the database does, and never looks whole', async () => {
  const db = createBreaking(100)
  const broken = await startApi({ config, ...database, db, commits, now: () => NOW })
  try {
    const response = await fetch(broken.url + path)
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow()
  } finally {
    await broken.close()
  }
})

it('breaks off by a reset where nothing else tells a client that it is not whole', async () => {
  const broken = await startApi({ config, ...database, db: createBreaking(100), commits, now: () => NOW })
  try {
    // Not with Node's own client, which takes a reset behind bytes that it has not read yet for an end.
    const { port } = new URL(broken.url)
    const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET %s HTTP/1.0\r\n\r\n' '${path}' >&3; cat <&3`
    const client = spawn('bash', ['-c', script], { env: { ...process.env, LC_ALL: 'C' } })
    const [answer, told, [status]] = await Promise.all([text(client.stdout), text(client.stderr), once(client, 'exit')])
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(answer.slice(0, 2_000).toLowerCase()).not.toMatch(/^(content-length|transfer-encoding):/m)
    expect(told).toContain('reset by peer')
    expect(status).toBe(1)
  } finally {
    await broken.close()
  }
})

/** All that comes for the series and for what is sent behind its request while it is on its way. */
async function readWith(behind: string): Promise<string> {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
  // More than the buffers on its way hold.
  socket.write(`GET ${path}&limit=120000 HTTP/1.1\r\nHost: a\r\n\r\n`)
  await once(socket, 'readable')
  socket.write(`${behind}\r\n\r\n`)
  const read: Buffer[] = []
  for await (const bytes of socket) read.push(bytes as Buffer)
  return String(Buffer.concat(read))
}

it('breaks off when what comes behind its request is none, and nothing is written into it', async () => {
  const answer = await readWith('what?')
  expect(answer).toContain(' 200 ')
  expect(answer).not.toContain(' 400 ')
  expect(answer.endsWith('\r\n0\r\n\r\n')).toBe(false)
})

it('what is no request, behind two that are, is not refused in the place of an answer', async () => {
  const short = '/data/chains'
  await (await fetch(api.url + short)).text()
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
  const request = `GET ${short} HTTP/1.1\r\nHost: a\r\n\r\n`
  socket.write(`${request}${request}what?\r\n\r\n`)
  // The connection is closed behind what was answered.
  expect(await text(socket)).not.toContain(' 400 ')
})

it.each([
  ['without a Host', 'GET /data/tokens HTTP/1.1'],
  ['that expects wonders', 'GET /data/tokens HTTP/1.1\r\nHost: a\r\nExpect: wonders'],
])('ends before a request %s behind its own is refused', async (_what, behind) => {
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
  ['while nothing of it is sent yet', () => createBreaking(1)],
])('that fails %s is 503', async (_when, toDatabase) => {
  const db: Database = toDatabase()
  const broken = await startApi({ config, ...database, db, commits, now: () => NOW })
  try {
    const response = await fetch(broken.url + path)
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('5')
  } finally {
    await broken.close()
  }
})

it('is made anew when it has few points and its data changes on the way', async () => {
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
  const changing = await startApi({ config, ...database, db, commits, now: () => NOW })
  const sparse = path.replace(/id=\w+/, `id=${aave?.id}`)
  try {
    const response = await fetch(changing.url + sparse)
    const body = (await response.json()) as { data: unknown[] }
    expect([response.status, body.data.length, response.headers.get('x-series-points')]).toEqual([200, 3, '3'])
    expect(readings).toBe(3)
    const again = await fetch(changing.url + sparse)
    expect(again.headers.get('etag')).toBe(response.headers.get('etag'))
    await again.arrayBuffer()
  } finally {
    await changing.close()
  }
})

it('breaks off when its data changes on the way, so that a tag never names other bytes', async () => {
  const correct = () =>
    storeMarket(database.writer, { keys: [key], until: NOW - 3_060_000, points: 1, stepMs: 300_000 })
  const db: Database = {
    ...database.db,
    stream: async (statement) => {
      await correct()
      return database.db.stream(statement)
    },
  }
  const changing = await startApi({ config, ...database, db, commits, now: () => NOW })
  try {
    const response = await fetch(changing.url + path)
    expect(response.status).toBe(200)
    const ended = await response.arrayBuffer().then(
      () => 'whole',
      () => 'broken off',
    )
    expect(ended).toBe('broken off')
    const again = await fetch(changing.url + path)
    expect(again.headers.get('etag')).not.toBe(response.headers.get('etag'))
    expect((await again.arrayBuffer()).byteLength).toBeGreaterThan(100_000_000)
  } finally {
    await changing.close()
  }
})
