import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createRefused } from '../../api/serving/refused.ts'

const CLIENTS = 30
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

const refused = createRefused()
let clients: Socket[]
/** The requests that were read in each turn of the event loop. */
let turns: { path: string; client: Socket }[][]
let turning: NodeJS.Immediate
const server = createServer((request, response) => {
  const client = clients.find(({ localPort }) => localPort === request.socket.remotePort) as Socket
  turns.at(-1)?.push({ path: String(request.url), client })
  if (request.url === '/refused') {
    // On its way when the one before is refused.
    client.write(get('/next'))
    refused.hold(request.socket)
  }
  response.end()
})
const read = (path: string) =>
  turns.map((turn) => turn.filter((one) => one.path === path)).filter(({ length }) => length > 0)

beforeEach(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  turns = [[]]
  clients = Array.from({ length: CLIENTS }, () => connect(port, '127.0.0.1'))
  for (const client of clients) client.write(get('/first'))
  await expect.poll(() => read('/first').flat()).toHaveLength(CLIENTS)
  const turn = () => {
    turns.push([])
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

it('reads no more than four of those who were just refused in a turn, in the order of their refusals', async () => {
  for (const client of clients) client.write(get('/refused'))
  await expect.poll(() => read('/next').flat()).toHaveLength(CLIENTS)
  // All were refused before the first of them was read again.
  expect(Math.max(...read('/refused').map(({ length }) => length))).toBeGreaterThan(4)
  expect(Math.max(...read('/next').map(({ length }) => length))).toBeLessThanOrEqual(4)
  const order = (path: string) => read(path).flatMap((turn) => turn.map(({ client }) => clients.indexOf(client)))
  expect(order('/next')).toEqual(order('/refused'))
})

it('goes on past those who left meanwhile, and reads the others as ever', async () => {
  const [gone, others] = [clients.slice(0, 10), clients.slice(10)]
  for (const client of clients) client.write(get('/refused'))
  await expect.poll(() => read('/refused').flat()).toHaveLength(CLIENTS)
  for (const client of gone) client.destroy()
  await expect
    .poll(() => new Set(read('/next').flatMap((turn) => turn.map(({ client }) => client))).size)
    .toBeGreaterThanOrEqual(others.length)
  for (const client of others) client.write(get('/last'))
  await expect.poll(() => read('/last').flat()).toHaveLength(others.length)
})
