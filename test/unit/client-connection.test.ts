import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createConnection } from '../../clients/typescript/src/connection.ts'
import { ConnectionError, ProblemError, UnexpectedAnswerError } from '../../clients/typescript/src/failure.ts'
import { type StubService, startStubService, type Turn } from '../support/stub-service.ts'

const services: StubService[] = []
afterEach(async () => {
  for (const service of services.splice(0)) await service.close()
})

async function start(turns: readonly Turn[], options: Omit<Parameters<typeof createConnection>[0], 'baseUrl'> = {}) {
  const service = await startStubService(...turns)
  services.push(service)
  const connection = createConnection({ baseUrl: service.url, ...options })
  return { ...service, connection, answer: () => connection.answer(`${service.url}/data/tokens`) }
}

const json =
  (value: unknown, headers: Record<string, string> = {}): Turn =>
  (response) =>
    response
      .writeHead(200, { 'content-type': 'application/json; charset=utf-8', ...headers })
      .end(JSON.stringify(value))

const refuse =
  (status: number, headers: Record<string, string> = {}, code?: string): Turn =>
  (response) => {
    const problem = { title: '', status, detail: 'Not now.', code, requestId: 'r-1' }
    const type = code === undefined ? 'text/html' : 'application/problem+json'
    response
      .writeHead(status, { 'content-type': type, 'x-request-id': 'r-1', ...headers })
      .end(code === undefined ? '<h1>Bad gateway</h1>' : JSON.stringify(problem))
  }

const breakOff: Turn = (response) => response.destroy()
const cutShort: Turn = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('[1,')
const breakMidway: Turn = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
  response.write('[1,', () => response.destroy())
}

describe('a connection', () => {
  it.each([
    ['429 with seconds', refuse(429, { 'retry-after': '0' }, 'rate_limited')],
    ['503 with a time', refuse(503, { 'retry-after': new Date(0).toUTCString() }, 'unavailable')],
    ['503 without a time', refuse(503, {}, 'unavailable')],
    ['a gateway that has nobody behind it', refuse(502)],
    ['a connection that breaks', breakOff],
    ['an answer that breaks off', breakMidway],
    ['an answer that a gateway cut short', cutShort],
  ] as const satisfies readonly (readonly [string, Turn])[])('asks again after %s', async (_, turn) => {
    const { answer, requests } = await start([turn, turn, json([1])])
    expect((await answer()).data).toEqual([1])
    expect(requests.length).toBe(3)
  })

  it.each([
    ['a login page', 'text/html', '<p>Log in</p>'],
    ['text', 'text/plain', 'OK'],
  ])('asks once where %s answers in place of the service, and tells what came', async (_, type, body) => {
    const { answer, requests, url } = await start([
      (response) => response.writeHead(200, { 'content-type': type }).end(body),
    ])
    const error = await answer().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(UnexpectedAnswerError)
    expect(error).toMatchObject({ status: 200, mediaType: type, url: `${url}/data/tokens` })
    expect((error as Error).message).toContain(`${url}/data/tokens answered 200 with ${type} instead of JSON`)
    expect((error as Error).message).toContain(body)
    expect(requests.length).toBe(1)
  })

  it('ends a try with its timeout, whether nothing comes or the body stops, and asks again', async () => {
    const silent: Turn = () => undefined
    const stops: Turn = (response) =>
      void response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' }).write('[1,')
    const { answer, requests } = await start([silent, stops, json([1])], { timeoutMs: 300 })
    expect((await answer()).data).toEqual([1])
    expect(requests.length).toBe(3)
    const { connection, url } = await start([silent], { retries: 0 })
    await expect(connection.answer(`${url}/data/tokens`, { timeoutMs: 50 })).rejects.toMatchObject({
      name: 'ConnectionError',
      cause: expect.objectContaining({ message: 'No answer within 50 ms' }),
    })
    await expect(connection.download(`${url}/data/tokens`, { timeoutMs: 50 })).rejects.toBeInstanceOf(ConnectionError)
  })

  it('keeps the status of a refusal whose problem was cut short', async () => {
    const { answer, requests } = await start([
      (response) => response.writeHead(400, { 'content-type': 'application/problem+json' }).end('{"code":'),
    ])
    await expect(answer()).rejects.toMatchObject({ name: 'ProblemError', status: 400, problem: undefined })
    expect(requests.length).toBe(1)
  })

  it('waits for as long as it is told', async () => {
    const { answer } = await start([refuse(429, { 'retry-after': '1' }, 'rate_limited'), json([1])])
    const began = performance.now()
    expect((await answer()).data).toEqual([1])
    expect(performance.now() - began).toBeGreaterThan(990)
  })

  it('gives up after so many tries, with what the last one said', async () => {
    const { answer, requests } = await start([refuse(503, { 'retry-after': '0' }, 'unavailable')], { retries: 2 })
    const error = await answer().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ProblemError)
    expect(error).toMatchObject({
      status: 503,
      code: 'unavailable',
      message: 'Not now.',
      requestId: 'r-1',
      retryAfter: 0,
    })
    expect(requests.length).toBe(3)
  })

  it('does not wait for longer than it may: the error tells when to ask again', async () => {
    const { answer, requests } = await start([refuse(429, { 'retry-after': '61' }, 'rate_limited')])
    await expect(answer()).rejects.toMatchObject({ status: 429, retryAfter: 61 })
    expect(requests.length).toBe(1)
  })

  it.each([400, 401, 404, 409, 500])('asks once where it is answered %s', async (status) => {
    const { answer, requests } = await start([refuse(status, {}, 'internal')])
    await expect(answer()).rejects.toBeInstanceOf(ProblemError)
    expect(requests.length).toBe(1)
  })

  it('tells of a refusal that is not the service’s own', async () => {
    const { answer } = await start([refuse(502)], { retries: 0 })
    await expect(answer()).rejects.toMatchObject({ status: 502, code: undefined, problem: undefined })
  })

  it('tells why there is no answer', async () => {
    const { answer } = await start([breakOff], { retries: 1 })
    const error = await answer().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ConnectionError)
    expect((error as Error).cause).toBeInstanceOf(TypeError)
  })

  it('ends with its signal, in a request, in a wait and before both', async () => {
    const reason = new Error('enough')
    const silentService = await start([() => undefined])
    const waiting = await start([refuse(503, { 'retry-after': '30' }, 'unavailable')])
    for (const { connection, url, requests } of [silentService, waiting]) {
      const stop = new AbortController()
      const asked = connection.answer(`${url}/data/tokens`, { signal: stop.signal })
      await expect.poll(() => requests.length).toBe(1)
      stop.abort(reason)
      await expect(asked).rejects.toBe(reason)
      await expect(connection.answer(`${url}/data/tokens`, { signal: stop.signal })).rejects.toBe(reason)
      expect(requests.length).toBe(1)
    }
  })

  it('asks for a download again until its bytes come, and not once they break off', async () => {
    const { connection, url, requests } = await start([refuse(503, { 'retry-after': '0' }, 'unavailable'), breakMidway])
    const { body } = await connection.download(`${url}/data/tokens?format=csv`)
    expect(requests.length).toBe(2)
    await expect(new Response(body).text()).rejects.toBeInstanceOf(TypeError)
    expect(requests.length).toBe(2)
  })

  it('ends a download with its signal, also midway', async () => {
    const { connection, url, requests } = await start([
      (response) => void response.writeHead(200, { 'content-type': 'text/csv' }).write('a,b\n'),
    ])
    const stop = new AbortController()
    const { body } = await connection.download(`${url}/data/tokens?format=csv`, { signal: stop.signal })
    const reader = body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('a,b\n')
    const gone = once(requests[0]?.socket as Socket, 'close')
    stop.abort()
    await expect(reader?.read()).rejects.toMatchObject({ name: 'AbortError' })
    await gone
  })

  it('sends its key', async () => {
    const { answer, requests } = await start([json([])], { apiKey: 'daod_1_2' })
    await answer()
    expect(requests[0]?.headers['x-api-key']).toBe('daod_1_2')
  })

  it('forgets first what was not used for longest, and keeps nothing that is too large', async () => {
    const tagged: Turn = (response, request) => {
      const tag = `"${request.url}"`
      if (request.headers['if-none-match'] === tag) return void response.writeHead(304, { etag: tag }).end()
      json('x'.repeat(Number(new URL(request.url ?? '', 'http://x').searchParams.get('size')) - 2), { etag: tag })(
        response,
        request,
      )
    }
    const { connection, url, requests } = await start([tagged], { memory: 100 })
    const ask = async (path: string) => {
      const { data } = await connection.answer(url + path)
      expect(String(data).length + 2).toBe(Number(path.split('=').at(-1)))
      return requests.at(-1)?.headers['if-none-match'] !== undefined
    }
    expect([await ask('/a?size=40'), await ask('/b?size=40'), await ask('/a?size=40')]).toEqual([false, false, true])
    expect(await ask('/c?size=40')).toBe(false)
    expect([await ask('/a?size=40'), await ask('/c?size=40'), await ask('/b?size=40')]).toEqual([true, true, false])
    expect([await ask('/d?size=101'), await ask('/d?size=101'), await ask('/b?size=40')]).toEqual([false, false, true])
  })
})
