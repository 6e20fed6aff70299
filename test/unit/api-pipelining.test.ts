import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { createPipelining } from '../../api/serving/pipelining.ts'

const get = (path: string | number) => `GET /${path} HTTP/1.1\r\nHost: a\r\n\r\n`
let server: Server

/** A server that answers in turn; what it began, and a connection to it. */
async function start(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const begun: (string | undefined)[] = []
  const pipelining = createPipelining()
  server = createServer((request, response) =>
    pipelining.take(request, response, () => {
      begun.push(request.url)
      answer(request, response)
    }),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  return { begun, socket, pipelining }
}
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

it('answers the requests of a connection one after the other, in their order', async () => {
  let [underWay, most] = [0, 0]
  const { begun, socket } = await start(async (request, response) => {
    underWay += 1
    most = Math.max(most, underWay)
    response.once('close', () => {
      underWay -= 1
    })
    const body = await text(request)
    await turn()
    response.end(`<${request.url} ${body}>`)
  })
  socket.write(Array.from({ length: 20 }, (_, index) => get(index)).join(''))
  socket.write('POST /put HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody')
  socket.write('GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  const told = await text(socket)
  expect(told.match(/(?<=<\/)[^>]*/g)).toEqual([
    ...Array.from({ length: 20 }, (_, index) => `${index} `),
    'put body',
    'last ',
  ])
  expect(begun).toHaveLength(22)
  expect(most).toBe(1)
})

it('never begins what waits behind a response that does not end, and closes who sends too much ahead', async () => {
  const { begun, socket } = await start((_, response) => void response.write('begun'))
  const closed = once(socket, 'close')
  // About as many as there are in one packet.
  socket.on('error', () => {}).write(Array.from({ length: 1_300 }, (_, index) => get(index)).join(''))
  await closed
  expect(begun).toEqual(['/0'])
})

it('forgets what waits when the connection ends', async () => {
  let left = () => {}
  const leaving = new Promise<void>((resolve) => {
    left = resolve
  })
  const { begun, socket } = await start((_, response) => void response.once('close', left).write('begun'))
  socket.once('data', () => socket.destroy()).write([1, 2, 3].map(get).join(''))
  await leaving
  await turn()
  expect(begun).toEqual(['/1'])
})

it('is busy with a connection between two answers too, and no longer once the last has ended', async () => {
  const busy: boolean[] = []
  const { socket, pipelining } = await start((request, response) => {
    response.once('finish', () => busy.push(pipelining.unfinishedOf(request.socket) !== undefined))
    response.end('answer')
  })
  socket.write(`${[1, 2].map(get).join('')}GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  await text(socket)
  expect(busy).toEqual([true, true, false])
})
