import { EventEmitter, once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createApiServer } from '../../api/server.ts'
import { createRefused } from '../../api/serving/refused.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createHandFeed, emptyLog } from '../support/api.ts'
import { noDatabase } from '../support/no-database.ts'
import { silent } from '../support/silent.ts'

const CLIENTS = 80

/** Holds a rejected connection per client, in order. Returns the connections resumed in each turn of the event loop. */
async function refuseAtOnce(clients: readonly string[], connects: boolean): Promise<string[][]> {
  const refused = createRefused()
  const gate = new EventEmitter()
  refused.watch(gate as Server)
  const turns: string[][] = []
  const paused = new Set<string>()
  clients.forEach((client, number) => {
    const socket = new Socket()
    const name = `${client} ${number}`
    socket.pause = () => {
      paused.add(name)
      return socket
    }
    socket.resume = () => {
      turns.at(-1)?.push(name)
      paused.delete(name)
      return socket
    }
    refused.hold(client, socket)
  })
  do {
    if (connects) gate.emit('connection')
    turns.push([])
    await nextTurn()
  } while (paused.size > 0)
  return turns.filter(({ length }) => length > 0)
}

describe('createRefused', () => {
  const flood = Array.from({ length: CLIENTS }, () => 'a flood')

  it.each([
    ['four', 'with new connections', true, 4],
    ['thirty-two', 'without new connections', false, 32],
  ])('resumes at most %s connections in a turn %s, in order', async (_most, _who, connects, most) => {
    const turns = await refuseAtOnce(flood, connects)
    expect(Math.max(...turns.map(({ length }) => length))).toBe(most)
    // The first connections are not paused.
    expect(turns.flat()).toEqual(flood.map((client, number) => `${client} ${number}`).slice(most))
  })

  it('does not delay one client behind the connections of another', async () => {
    const [first] = await refuseAtOnce([...flood, 'somebody modest'], true)
    expect(first).toContain(`somebody modest ${CLIENTS}`)
  })
})

/** The response to this request occupies the only place, so all other requests are rejected. */
const FIRST = '/data/tokens'
const [REFUSED, LAST] = ['/data/daos?limit=1', '/data/daos?limit=3'] as const
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

it('createRefused skips disconnected clients and resumes the others', async () => {
  const never = () => new Promise<never>(() => {})
  const stuck: Database = { ...noDatabase, rows: never, stream: never }
  const commits = createHandFeed()
  const server = createApiServer({
    ...{ config: parseConfig({}), db: stuck, registry: loadRegistry(), commits, commitLog: emptyLog, log: silent },
    ...{ metrics: createMetrics('test'), queue: { places: 1, most: 0, clock: () => performance.now() } },
  })
  const clients: Socket[] = []
  onTestFinished(() => {
    for (const client of clients) client.destroy()
    server.closeAllConnections()
    server.close()
  })
  const asked: string[] = []
  server.on('request', ({ url }) => asked.push(String(url)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const join = async (localAddress: string) => {
    const client = connect({ port, host: '127.0.0.1', localAddress })
    clients.push(client.resume())
    await once(client, 'connect')
    return client
  }
  const count = (path: string) => asked.filter((one) => one === path).length

  ;(await join('127.0.0.2')).write(get(FIRST))
  await expect.poll(() => count(FIRST)).toBe(1)
  const many: Socket[] = []
  while (many.length < CLIENTS) many.push(await join('127.0.0.1'))
  const [others, gone] = [many.slice(10), many.slice(0, 10)]
  // The last connections are held, and disconnect at that moment. The first ones are not held.
  const all = [...others, ...gone]
  server.on('request', () => {
    if (count(REFUSED) === CLIENTS) for (const client of gone) client.destroy()
  })
  for (const client of all) client.write(get(REFUSED))
  await expect.poll(() => count(REFUSED)).toBe(CLIENTS)
  for (const client of others) client.write(get(LAST))
  await expect.poll(() => count(LAST)).toBe(others.length)
})
