import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createObservedClients, type Handler, sendJson, startProviderServer } from '../provider-server.ts'
import { connectClient, inTurn, KEY, ok, refuse } from '../support/provider-client.ts'

const { signal } = new AbortController()

const hang: Handler = () => undefined
const stall: Handler = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write('{"begun":')
}
const reset: Handler = (request) => request.socket.resetAndDestroy()
const truncate: Handler = (request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
  response.write('{"begun":', () => request.socket.destroy())
}

describe('HTTP client: successful responses', () => {
  it('sends query, headers and body, and parses JSON', async () => {
    let received = ''
    const { client, server, calls } = await connectClient((request, response) => {
      request.on('data', (chunk) => {
        received += chunk
      })
      request.on('end', () => sendJson(response, { ok: true }, 200, { 'x-ratelimit-remaining': '41' }))
    })
    const query = { id: '1,2', page: 3, missing: undefined }
    const answer = await client.json({ path: '/things', route: '/{things}', query, body: { a: 1 }, signal })
    expect(answer).toEqual({ ok: true })
    expect(JSON.parse(received)).toEqual({ a: 1 })
    expect(Object.fromEntries(server.requests[0]?.url.searchParams ?? [])).toEqual({ id: '1,2', page: '3' })
    expect(server.requests[0]?.headers).toMatchObject({ 'x-api-key': KEY, 'content-type': 'application/json' })
    expect(calls).toMatchObject([
      { provider: 'acme', path: '/{things}', outcome: 'ok', status: 200, retries: 0, remainingQuota: 41 },
    ])
  })

  it('keeps the path of the base URL', async () => {
    const server = await startProviderServer(ok)
    onTestFinished(server.close)
    const { http } = createObservedClients()
    const settings = { provider: 'acme', timeoutMs: 5000, maxBytes: 1000, requestsPerMinute: 60_000 }
    await http.open({ ...settings, baseUrl: `${server.baseUrl}/api/v3/` }).json({ path: '/things', signal })
    expect(server.requests[0]?.url.pathname).toBe('/api/v3/things')
  })

  it('reads text of any type', async () => {
    const { client } = await connectClient((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('hé'),
    )
    expect(await client.text({ path: '/page', signal })).toBe('hé')
  })

  it('returns undefined for statuses that mean absence', async () => {
    const { client, calls } = await connectClient(refuse(404))
    expect(await client.json({ path: '/things', signal, absent: [404] })).toBeUndefined()
    expect(calls).toMatchObject([{ outcome: 'ok', status: 404 }])
  })

  it('follows a redirect on the same host', async () => {
    const { client, server } = await connectClient((_, response, url) => {
      if (url.pathname === '/new') sendJson(response, { ok: true })
      else response.writeHead(301, { location: '/new' }).end()
    })
    expect(await client.json({ path: '/old', signal })).toEqual({ ok: true })
    expect(server.requests[1]?.headers['x-api-key']).toBe(KEY)
  })
})

describe('HTTP client: temporary failures', () => {
  it.each([
    ['429 without Retry-After', refuse(429)],
    ['429 with a Retry-After of 0', refuse(429, { 'retry-after': '0' })],
    ['429 with a Retry-After', refuse(429, { 'retry-after': '1' })],
    ['408', refuse(408)],
    [
      '500 with a page',
      ((_, response) => response.writeHead(500, { 'content-type': 'text/html' }).end('<p>')) as Handler,
    ],
    ['a reset connection', reset],
    ['a truncated body', truncate],
  ])('retries after %s', async (_, failing) => {
    const { client, server, calls } = await connectClient(inTurn(failing, ok))
    expect(await client.json({ path: '/things', signal })).toEqual({ ok: true })
    expect(server.requests).toHaveLength(2)
    expect(calls).toMatchObject([{ outcome: 'ok', status: 200, retries: 1 }])
  })

  it('reports the quota of the last answer that has one', async () => {
    const answer =
      (status: number, quota: string): Handler =>
      (_, response) =>
        sendJson(response, {}, status, quota === '' ? {} : { 'x-ratelimit-remaining': quota })
    const { client, calls } = await connectClient(inTurn(answer(429, '2'), answer(429, '1'), answer(200, '')))
    await client.json({ path: '/things', signal })
    expect(calls).toMatchObject([{ outcome: 'ok', retries: 2, remainingQuota: 1 }])
  })

  it.each([
    ['an answer that does not come', hang],
    ['a body that does not end', stall],
  ])('gives up on %s', async (_, failing) => {
    const { fail, calls } = await connectClient(failing, { timeoutMs: 50 })
    const error = await fail({ retries: 1 })
    expect(error.code).toBe('provider_unavailable')
    expect(error.message).toBe('acme /things: no whole answer within 50 ms')
    expect(calls).toMatchObject([{ outcome: 'unavailable', retries: 1 }])
  })

  it('gives up after three retries by default', async () => {
    const { fail, server, calls } = await connectClient(refuse(503))
    expect(await fail()).toMatchObject({ code: 'provider_unavailable', retryAfterMs: undefined })
    expect(server.requests).toHaveLength(4)
    expect(calls).toMatchObject([{ outcome: 'unavailable', status: 503, retries: 3 }])
  })

  it('leaves a wait of over a minute to the caller', async () => {
    const { fail, server } = await connectClient(refuse(429, { 'retry-after': '90' }))
    expect(await fail()).toMatchObject({ code: 'provider_unavailable', retryAfterMs: 90_000 })
    expect(server.requests).toHaveLength(1)
  })

  it('includes the reason if the connection is refused', async () => {
    const { fail, server } = await connectClient(ok)
    await server.close()
    const error = await fail({ retries: 0 })
    expect(error.code).toBe('provider_unavailable')
    expect(error.message).toContain('ECONNREFUSED')
  })
})

describe('HTTP client: permanent failures', () => {
  it.each([400, 401, 402, 403, 404, 422, 304])('does not retry after %i', async (status) => {
    const { fail, server, calls } = await connectClient(refuse(status))
    const error = await fail()
    expect(error.code).toBe('provider_rejected')
    expect(error.message).toContain(`acme /things: status ${status}`)
    expect(server.requests).toHaveLength(1)
    expect(calls).toMatchObject([{ outcome: 'rejected', status, retries: 0 }])
  })

  it('never follows a redirect to another host', async () => {
    const another = await connectClient(ok)
    const { fail } = await connectClient((_, response) => {
      response.writeHead(302, { location: `${another.server.baseUrl}/things` }).end()
    })
    const error = await fail()
    expect(error.code).toBe('provider_rejected')
    expect(error.message).toContain(new URL(another.server.baseUrl).host)
    expect(another.server.requests).toEqual([])
  })

  it('stops a redirect loop after four requests', async () => {
    const { fail, server } = await connectClient((_, response) =>
      response.writeHead(302, { location: '/things' }).end(),
    )
    expect((await fail()).code).toBe('provider_rejected')
    expect(server.requests).toHaveLength(4)
  })

  it("uses the provider's own reading of its errors", async () => {
    const readError = (status: number, body: string) =>
      status === 429 && body.includes('status 429')
        ? ({ code: 'provider_rejected', says: 'no more' } as const)
        : undefined
    const { fail, server } = await connectClient(refuse(429), { readError })
    expect(await fail()).toMatchObject({ code: 'provider_rejected', message: 'acme /things: status 429: no more' })
    expect(server.requests).toHaveLength(1)
  })

  it('redacts keys in messages and queries', async () => {
    const { fail } = await connectClient((_, response) =>
      sendJson(response, { message: `bad key ${KEY} or q-secret` }, 401),
    )
    const { message } = await fail({ query: { apiKey: 'q-secret', id: 7 } })
    expect(message).toContain('/things?apiKey=[redacted]&id=7')
    expect(message).toContain('bad key [redacted] or [redacted]')
    expect(message).not.toContain(KEY)
    expect(message).not.toContain('q-secret')
  })

  it('names the header with an invalid value, but not the value', async () => {
    await expect(connectClient(ok, { headers: { 'x-api-key': 'se\ncret' } })).rejects.toMatchObject({
      code: 'config',
      message: expect.not.stringContaining('cret'),
    })
  })
})

describe('HTTP client: malformed responses', () => {
  const answer =
    (contentType: string, body: string | Buffer, headers: Record<string, string> = {}): Handler =>
    (_, response) =>
      response.writeHead(200, { 'content-type': contentType, ...headers }).end(body)

  it.each([
    ['a page', answer('text/html', '<h1>Maintenance</h1>'), 'expected JSON, received text/html: <h1>Maintenance</h1>'],
    ['broken JSON', answer('application/json', '{"a":1'), 'not JSON: {"a":1'],
    ['nothing', answer('application/json', ''), 'not JSON: an empty body'],
    ['too much', answer('application/json', `"${'x'.repeat(2000)}"`), 'the answer is over the cap of 1000 bytes'],
    [
      'too much, compressed',
      answer('application/json', gzipSync(`"${'x'.repeat(100_000)}"`), { 'content-encoding': 'gzip' }),
      'the answer is over the cap of 1000 bytes',
    ],
  ])('rejects %s', async (_, handler, reason) => {
    const { fail, server, calls } = await connectClient(handler)
    expect(await fail()).toMatchObject({ code: 'provider_malformed', message: `acme /things: ${reason}` })
    expect(server.requests).toHaveLength(1)
    expect(calls).toMatchObject([{ outcome: 'malformed', status: 200, retries: 0 }])
  })

  it('accepts a body of exactly the size limit', async () => {
    const { client } = await connectClient(answer('application/json', `"${'x'.repeat(998)}"`))
    expect(await client.json({ path: '/things', signal })).toHaveLength(998)
  })
})

describe('HTTP client: abort', () => {
  it.each([
    ['waiting for the answer', hang],
    ['reading the body', stall],
    ['waiting to try again', refuse(429, { 'retry-after': '30' })],
  ])('rejects with the reason while %s', async (_, handler) => {
    const controller = new AbortController()
    const reason = new Error('shutting down')
    const { client, calls } = await connectClient((request, response, url) => {
      handler(request, response, url)
      setImmediate(() => controller.abort(reason))
    })
    await expect(client.json({ path: '/things', signal: controller.signal })).rejects.toBe(reason)
    expect(calls).toMatchObject([{ outcome: 'aborted' }])
  })

  it('sends nothing if the signal is already aborted', async () => {
    const { client, server } = await connectClient(ok)
    await expect(client.json({ path: '/things', signal: AbortSignal.abort(new Error('stop')) })).rejects.toThrow('stop')
    expect(server.requests).toEqual([])
  })
})

describe('HTTP client: rate limit', () => {
  it('is shared by the clients of one provider but not with other providers', async () => {
    const server = await startProviderServer(ok)
    onTestFinished(server.close)
    const { http } = createObservedClients()
    const settings = { baseUrl: server.baseUrl, timeoutMs: 5000, maxBytes: 1000, requestsPerMinute: 1 }
    await http.open({ ...settings, provider: 'acme' }).json({ path: '/1', signal })
    const controller = new AbortController()
    const second = http.open({ ...settings, provider: 'acme' }).json({ path: '/2', signal: controller.signal })
    await http.open({ ...settings, provider: 'other' }).json({ path: '/3', signal })
    controller.abort(new Error('stop'))
    await expect(second).rejects.toThrow('stop')
    expect(server.requests.map(({ url }) => url.pathname)).toEqual(['/1', '/3'])
  })
})
