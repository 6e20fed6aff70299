import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createApiServer } from '../../api/server.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createHandFeed, emptyLog } from '../support/api.ts'
import { noDatabase } from '../support/no-database.ts'
import { silent } from '../support/silent.ts'

const CLIENTS = 80
/** Their answers wait for a place that nobody gives back: the first to ask has it, everybody else is refused. */
const FIRST = '/data/tokens'
const [REFUSED, NEXT, LAST] = ['/data/daos?limit=1', '/data/daos?limit=2', '/data/daos?limit=3'] as const
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

const registry = loadRegistry()
const never = () => new Promise<never>(() => {})
const stuck: Database = { ...noDatabase, rows: never, stream: never }
let server: Server
let port: number
let clients: Socket[]
/** The requests that were read in each turn of the event loop. */
let turns: { path: string; client: Socket }[][]
let turning: NodeJS.Immediate
/** Whether somebody new connects in each turn. */
let isSought: boolean
const read = (path: string) =>
  turns.map((turn) => turn.filter((one) => one.path === path)).filter(({ length }) => length > 0)
const flat = (path: string) => read(path).flatMap((turn) => turn.map(({ client }) => client))

async function join(localAddress: string): Promise<Socket> {
  const client = connect({ port, host: '127.0.0.1', localAddress })
  clients.push(client.resume())
  await once(client, 'connect')
  return client
}

beforeEach(async () => {
  server = createApiServer({
    ...{ config: parseConfig({}), db: stuck, registry, commits: createHandFeed(), commitLog: emptyLog, log: silent },
    ...{ metrics: createMetrics('test'), queue: { places: 1, most: 0, clock: () => performance.now() } },
  })
  ;[clients, turns, isSought] = [[], [[]], false]
  server.on('request', ({ url, socket }) => {
    const client = clients.find(({ localPort }) => localPort === socket.remotePort) as Socket
    turns.at(-1)?.push({ path: String(url), client })
    // On its way when the one before is refused.
    if (url === REFUSED) client.write(get(NEXT))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  port = (server.address() as AddressInfo).port
  ;(await join('127.0.0.2')).write(get(FIRST))
  await expect.poll(() => flat(FIRST)).toHaveLength(1)
  for (let count = 0; count < CLIENTS; count += 1) await join('127.0.0.1')
  const turn = () => {
    turns.push([])
    if (isSought) clients.push(connect(port, '127.0.0.1').resume())
    turning = setImmediate(turn)
  }
  turn()
})
afterEach(() => {
  clearImmediate(turning)
  for (const client of clients) client.destroy()
  server.closeAllConnections()
  server.close()
})

it.each([
  ['four', 'somebody connects in', true, 4],
  ['thirty-two', 'nobody connects in', false, 32],
])('reads no more than %s of those who were just refused in a turn that %s', async (_most, _who, seeks, most) => {
  const flood = clients.slice(1)
  isSought = seeks
  for (const client of flood) client.write(get(REFUSED))
  await expect.poll(() => flat(NEXT)).toHaveLength(CLIENTS)
  // All were refused before the first of them was read again.
  expect(Math.max(...read(REFUSED).map(({ length }) => length))).toBeGreaterThan(most)
  expect(Math.max(...read(NEXT).map(({ length }) => length))).toBeLessThanOrEqual(most)
  // In the order of their refusals.
  const order = (path: string) => flat(path).map((client) => clients.indexOf(client))
  expect(order(NEXT)).toEqual(order(REFUSED))
})

it('goes on past those who left meanwhile, and reads the others as ever', async () => {
  const [gone, others] = [clients.slice(1, 11), clients.slice(11)]
  for (const client of clients.slice(1)) client.write(get(REFUSED))
  await expect.poll(() => flat(REFUSED)).toHaveLength(CLIENTS)
  for (const client of gone) client.destroy()
  await expect.poll(() => new Set(flat(NEXT)).size).toBeGreaterThanOrEqual(others.length)
  for (const client of others) client.write(get(LAST))
  await expect.poll(() => flat(LAST)).toHaveLength(others.length)
})

it('lets nobody wait behind the many connections of another client', async () => {
  const flood = clients.slice(1)
  const modest = await join('127.0.0.3')
  isSought = true
  for (const client of [...flood, modest]) client.write(get(REFUSED))
  await expect.poll(() => flat(NEXT)).toHaveLength(CLIENTS + 1)
  expect(flat(REFUSED).indexOf(modest)).toBe(CLIENTS)
  expect(flat(NEXT).indexOf(modest)).toBeLessThan(8)
})
