import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createPipelining, onClose } from '../../api/http/pipelining.ts'

const get = (path: string | number) => `GET /${path} HTTP/1.1\r\nHost: a\r\n\r\n`
let server: Server

/** Starts a server with pipelining. Returns the started requests, the parsed requests and a connection. */
async function start(answer: (request: IncomingMessage, response: ServerResponse) => void, maxBytes?: number) {
  const started: (string | undefined)[] = []
  const parsed: (string | undefined)[] = []
  const pipelining = createPipelining(maxBytes)
  server = createServer((request, response) => {
    parsed.push(request.url)
    pipelining.take(request, response, () => {
      started.push(request.url)
      answer(request, response)
    })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET') return socket.destroy()
    pipelining.endAfterAnswers(socket, () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\nno request'))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A server that closes a connection with unread bytes resets it.
  const join = () => connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  return { started, parsed, socket: join(), join }
}
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

describe('createPipelining', () => {
  it('answers the requests of a connection one at a time, in order', async () => {
    let [underWay, most] = [0, 0]
    const { started, socket } = await start(async (request, response) => {
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
    const received = await text(socket)
    expect(received.match(/(?<=<\/)[^>]*/g)).toEqual([
      ...Array.from({ length: 20 }, (_, index) => `${index} `),
      'put body',
      'last ',
    ])
    expect(started).toHaveLength(22)
    expect(most).toBe(1)
  })

  it('answers all 301 requests of one chunk', async () => {
    const { started, socket } = await start((request, response) => response.end(`<${request.url}>`))
    const paths = Array.from({ length: 300 }, (_, index) => `/${index}`)
    socket.write(
      `${paths.map((path) => get(path.slice(1))).join('')}GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    )
    expect((await text(socket)).match(/(?<=<)[^>]*/g)).toEqual([...paths, '/last'])
    expect(started).toHaveLength(301)
  })

  it('stops reading a connection while its requests wait', async () => {
    const { started, parsed, socket } = await start((_, response) => void response.write('begun'))
    const large = `GET /large HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(10_000)}\r\n\r\n`
    socket.on('error', () => {}).write(`${get('first')}${large.repeat(2_000)}`)
    await once(socket, 'data')
    // Wait until the kernel accepts no more bytes: the server has stopped reading.
    await expect.poll(() => socket.writableLength).toBeGreaterThan(1_000_000)
    const [read, remaining] = [parsed.length, socket.writableLength]
    for (let turns = 0; turns < 100; turns += 1) await turn()
    expect([parsed.length, socket.writableLength]).toEqual([read, remaining])
    // At most two chunks of 64 kB: one with the first request and one with the second.
    expect(read).toBeLessThan(15)
    expect(started).toEqual(['/first'])
    socket.destroy()
  })

  it('closes the connection with the largest waiting requests if all together exceed the memory limit', async () => {
    const { started, parsed, join } = await start((_, response) => void response.write('begun'), 100_000)
    const modest = join()
    modest.write([1, 2, 3].map(get).join(''))
    await expect.poll(() => parsed.length).toBe(3)
    const greedy = join()
    const closed = once(greedy.on('error', () => {}).resume(), 'close')
    greedy.write(Array.from({ length: 100 }, (_, index) => get(`greedy/${index}`)).join(''))
    await closed
    expect(started).toEqual(['/1', '/greedy/0'])
    expect(modest.destroyed).toBe(false)
    modest.destroy()
  })

  it('drops the waiting requests of a closed connection', async () => {
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const { started, socket } = await start((_, response) => {
      response.write('begun')
      // A paused connection detects the close when it writes, like an event stream every few seconds.
      const beat = setInterval(() => response.write('.'), 1)
      response.once('close', () => {
        clearInterval(beat)
        end()
      })
    })
    socket.once('data', () => socket.resetAndDestroy()).write([1, 2, 3].map(get).join(''))
    await ended
    await turn()
    expect(started).toEqual(['/1'])
  })

  it('answers the requests before malformed bytes, then rejects the bytes', async () => {
    const { started, socket } = await start(async (request, response) => {
      await turn()
      response.end(`<${request.url}>`)
    })
    socket.write(`${[1, 2].map(get).join('')}what?\r\n\r\n`)
    const received = await text(socket)
    expect(received.match(/(?<=<)[^>]*/g)).toEqual(['/1', '/2'])
    expect(received.endsWith('no request')).toBe(true)
    expect(started).toEqual(['/1', '/2'])
  })

  it('aborts the response to a request with a malformed body', async () => {
    const { socket } = await start((request, response) => {
      request.resume()
      response.write('begun')
    })
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    await once(socket, 'data')
    socket.write('no length\r\n')
    socket.on('error', () => {}).resume()
    await once(socket, 'close')
  })
})

it('onClose calls back once in the order of registration, without callbacks that were taken back', () => {
  const [response, other] = [new EventEmitter(), new EventEmitter()] as unknown as ServerResponse[]
  const called: string[] = []
  const forget = ['a', 'b', 'c'].map((name) => onClose(response as ServerResponse, () => void called.push(name)))
  onClose(other as ServerResponse, () => void called.push('of another response'))
  forget[1]?.()
  response?.emit('close')
  response?.emit('close')
  expect(called).toEqual(['a', 'c'])
})
