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

describe('createConnection', () => {
  it.each([
    ['429 with seconds', refuse(429, { 'retry-after': '0' }, 'rate_limited')],
    ['503 with a time', refuse(503, { 'retry-after': new Date(0).toUTCString() }, 'unavailable')],
    ['503 without a time', refuse(503, {}, 'unavailable')],
    ['a 502 from a gateway', refuse(502)],
    ['a closed connection', breakOff],
    ['an aborted body', breakMidway],
    ['a truncated body', cutShort],
  ] as const satisfies readonly (readonly [string, Turn])[])('retries after %s', async (_, turn) => {
    const { answer, requests } = await start([turn, turn, json([1])])
    expect((await answer()).data).toEqual([1])
    expect(requests.length).toBe(3)
  })

  it.each([
    ['a login page', 'text/html', '<p>Log in</p>'],
    ['text', 'text/plain', 'OK'],
  ])('does not retry if %s is returned instead of JSON, and reports it', async (_, type, body) => {
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

  it('aborts an attempt at its timeout, before or during the body, and retries', async () => {
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

  it('keeps the status of an error response with an incomplete problem document', async () => {
    const { answer, requests } = await start([
      (response) => response.writeHead(400, { 'content-type': 'application/problem+json' }).end('{"code":'),
    ])
    await expect(answer()).rejects.toMatchObject({ name: 'ProblemError', status: 400, problem: undefined })
    expect(requests.length).toBe(1)
  })

  it('waits for the Retry-After of a 429', async () => {
    const { answer } = await start([refuse(429, { 'retry-after': '1' }, 'rate_limited'), json([1])])
    const began = performance.now()
    expect((await answer()).data).toEqual([1])
    expect(performance.now() - began).toBeGreaterThan(990)
  })

  it('fails after the configured retries with the last error', async () => {
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

  it('does not wait longer than its limit: the error contains Retry-After', async () => {
    const { answer, requests } = await start([refuse(429, { 'retry-after': '61' }, 'rate_limited')])
    await expect(answer()).rejects.toMatchObject({ status: 429, retryAfter: 61 })
    expect(requests.length).toBe(1)
  })

  it.each([400, 401, 404, 409, 500])('does not retry after status %s', async (status) => {
    const { answer, requests } = await start([refuse(status, {}, 'internal')])
    await expect(answer()).rejects.toBeInstanceOf(ProblemError)
    expect(requests.length).toBe(1)
  })

  it('reports an error response without a problem document', async () => {
    const { answer } = await start([refuse(502)], { retries: 0 })
    await expect(answer()).rejects.toMatchObject({ status: 502, code: undefined, problem: undefined })
  })

  it('reports the cause of a failed connection', async () => {
    const { answer } = await start([breakOff], { retries: 1 })
    const error = await answer().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ConnectionError)
    expect((error as Error).cause).toBeInstanceOf(TypeError)
  })

  it('aborts on its signal during a request, during a wait and before both', async () => {
    const reason = new Error('enough')
    const silentService = await start([() => undefined])
    const waiting = await start([refuse(503, { 'retry-after': '30' }, 'unavailable')])
    for (const { connection, url, requests } of [silentService, waiting]) {
      const stop = new AbortController()
      const pending = connection.answer(`${url}/data/tokens`, { signal: stop.signal })
      await expect.poll(() => requests.length).toBe(1)
      stop.abort(reason)
      await expect(pending).rejects.toBe(reason)
      await expect(connection.answer(`${url}/data/tokens`, { signal: stop.signal })).rejects.toBe(reason)
      expect(requests.length).toBe(1)
    }
  })

  it('retries a download until its first bytes, and not after the body fails', async () => {
    const { connection, url, requests } = await start([refuse(503, { 'retry-after': '0' }, 'unavailable'), breakMidway])
    const { body } = await connection.download(`${url}/data/tokens?format=csv`)
    expect(requests.length).toBe(2)
    await expect(new Response(body).text()).rejects.toBeInstanceOf(TypeError)
    expect(requests.length).toBe(2)
  })

  it('aborts a download on its signal during the body', async () => {
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

  it('sends its API key', async () => {
    const { answer, requests } = await start([json([])], { apiKey: 'daod_1_2' })
    await answer()
    expect(requests[0]?.headers['x-api-key']).toBe('daod_1_2')
  })

  it('evicts the least recently used response, and does not cache responses over the limit', async () => {
    const tagged: Turn = (response, request) => {
      const tag = `"${request.url}"`
      if (request.headers['if-none-match'] === tag) return void response.writeHead(304, { etag: tag }).end()
      json('x'.repeat(Number(new URL(request.url ?? '', 'http://x').searchParams.get('size')) - 2), { etag: tag })(
        response,
        request,
      )
    }
    const { connection, url, requests } = await start([tagged], { memory: 100 })
    const sendRequest = async (path: string) => {
      const { data } = await connection.answer(url + path)
      expect(String(data).length + 2).toBe(Number(path.split('=').at(-1)))
      return requests.at(-1)?.headers['if-none-match'] !== undefined
    }
    expect([await sendRequest('/a?size=40'), await sendRequest('/b?size=40'), await sendRequest('/a?size=40')]).toEqual(
      [false, false, true],
    )
    expect(await sendRequest('/c?size=40')).toBe(false)
    expect([await sendRequest('/a?size=40'), await sendRequest('/c?size=40'), await sendRequest('/b?size=40')]).toEqual(
      [true, true, false],
    )
    expect([
      await sendRequest('/d?size=101'),
      await sendRequest('/d?size=101'),
      await sendRequest('/b?size=40'),
    ]).toEqual([false, false, true])
  })
})
