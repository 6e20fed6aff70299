import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { DAY_MS } from '../../shared/intervals.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const STEP = 300_000
const UNTIL = Date.parse('2024-03-09T00:00:00Z')
const DAYS = 18
/** About one megabyte. */
const POINTS = 4_900
const SLOW = 16

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let [memory, engine]: TestApi[] = []
const agent = new Agent({ keepAlive: true })

beforeAll(async () => {
  database = await createApiDatabase(config)
  const keys = database.registry.tokens.slice(0, 2).map(({ key }) => key)
  await storeMarket(database.writer, { keys, until: UNTIL, points: DAYS * 288, stepMs: STEP })
  const options = { ...database, changeFeed: createHandFeed(), now: () => NOW }
  memory = await startApi({ ...options, config })
  engine = await startApi({ ...options, config: { ...config, api: { ...config.api, cacheBytes: 0 } } })
})
afterAll(async () => {
  agent.destroy()
  await Promise.all([memory?.close(), engine?.close()])
  await database?.drop()
})

/** Opens a response and returns it after the headers, without reading the body. */
async function open(path: string, encoding = 'identity'): Promise<IncomingMessage> {
  const request = get(`${memory?.url}${path}`, { agent, headers: { 'accept-encoding': encoding } })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

const toHash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const read = async (response: IncomingMessage) => toHash(await buffer(response))
const readEngine = async (path: string) => {
  const response = await fetch(`${engine?.url}${path}`, { headers: { 'accept-encoding': 'identity' } })
  expect(response.status).toBe(200)
  return toHash(Buffer.from(await response.arrayBuffer()))
}

/** Sequential: the service rejects some of these requests if all are sent concurrently on a busy machine. */
async function readInTurn(paths: readonly string[]): Promise<string[]> {
  const read: string[] = []
  for (const path of paths) read.push(await readEngine(path))
  return read
}

/** Sends a request on a separate connection that is not read yet. */
function sendRequest(path: string): Socket {
  const { hostname, port } = new URL(memory?.url ?? '')
  const socket = connect({ host: hostname, port: Number(port) })
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`)
  return socket
}

const END_OF_HEAD = '\r\n\r\n'

/** Returns the hash of the body of the only response on the connection. */
async function readBody(socket: Socket): Promise<string> {
  const bytes = await buffer(socket)
  return toHash(bytes.subarray(bytes.indexOf(END_OF_HEAD) + END_OF_HEAD.length))
}

/** A unique range of prices for each number. */
function toPath(number: number, points: number): string {
  const token = database.registry.tokens[number % 2]
  const from = UNTIL - DAYS * DAY_MS + 2 * STEP + number * STEP
  const [start, end] = [from, from + points * STEP].map((at) => new Date(at).toISOString())
  return `/data/tokens/historic-financial?id=${token?.id}&interval=5m&start=${start}&end=${end}`
}

const toList = (number: number) => `/data/tokens?limit=100&filter=financialData.price!=${1e9 + number}`

it('responses built from chunks are complete for slow readers while others are written', async () => {
  // Fill the cache with every chunk and with the records of the list.
  for (const number of [0, 1]) await read(await open(toPath(number, DAYS * 288)))
  for (const number of [0, 1]) await read(await open(toPath(40 + number, POINTS)))
  await read(await open(toList(0)))

  // Far more bytes than the connections buffer: most of the data waits in the service.
  const slow = Array.from({ length: SLOW }, (_, number) => toPath(2 + number, POINTS))
  const sockets = slow.map(sendRequest)
  const quick = Array.from({ length: 60 }, (_, number) =>
    number % 3 === 0 ? toList(1 + number) : toPath(100 + number, number % 3 === 1 ? POINTS : 288),
  )
  const read_ = await Promise.all(quick.map(async (path) => read(await open(path))))
  expect(read_).toEqual(await readInTurn(quick))
  // Disconnected clients and compressed responses do not affect the others.
  for (const number of [200, 201, 202, 203]) (await open(toPath(number, POINTS))).destroy()
  const compressed = await Promise.all([204, 205].map((number) => open(toPath(number, POINTS), 'gzip')))
  expect(compressed.map(({ headers }) => headers['content-encoding'])).toEqual(['gzip', 'gzip'])
  for (const response of compressed) await read(response)

  expect(await Promise.all(sockets.map(readBody))).toEqual(await readInTurn(slow))
})

it('cached responses do not change while others are built', async () => {
  const path = toPath(300, 288)
  const first = await read(await open(path))
  const second = await open(path)
  expect(await read(second)).toBe(first)
  for (let number = 301; number < 340; number += 1) await read(await open(toPath(number, 288)))
  const cached = await open(path)
  expect(String(cached.headers['server-timing'])).toMatch(/^cache/)
  expect(await read(cached)).toBe(first)
  expect(first).toBe(await readEngine(path))
})
