import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createHttpClients,
  type HttpRequest,
  type HttpSettings,
  type NotedAnswer,
  notingAnswers,
} from '../../workers/http/client.ts'
import { toShownHost } from '../../workers/http/noted-answers.ts'
import { silent } from '../support/silent.ts'

/** A key with characters that URLs and JSON escape. */
const KEY = 'k3y/with+"quotes"&more=0123456789'
const signal = new AbortController().signal

let url: string
/** Echoes everything of a request, in all encodings. */
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString()
    const status = Number(new URL(request.url ?? '', 'http://host').searchParams.get('status') ?? 200)
    response.writeHead(status, { 'content-type': 'application/json' })
    const echo = {
      url: request.url,
      decoded: decodeURIComponent(request.url ?? ''),
      headers: request.headers,
      body,
      KEY,
    }
    response.end(JSON.stringify({ ...echo, encoded: encodeURIComponent(KEY), value: 'kept' }))
  })
})
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => server.close())

async function noteOne(settings: Partial<HttpSettings>, request: Partial<HttpRequest>): Promise<NotedAnswer[]> {
  const noted: NotedAnswer[] = []
  const limits = { timeoutMs: 5_000, maxBytes: 1_000_000, requestsPerMinute: 60_000 }
  const client = createHttpClients({ log: silent, backoffMs: 0 }).open({
    provider: 'one',
    baseUrl: url,
    ...limits,
    ...settings,
  })
  const send = () => client.json({ path: '/path', signal, retries: 0, ...request })
  await notingAnswers(
    (answer) => void noted.push(answer),
    () => send().catch(() => undefined),
  )
  return noted
}

const FORMS = [
  KEY,
  encodeURIComponent(KEY),
  new URLSearchParams({ a: KEY }).toString().slice(2),
  JSON.stringify(KEY).slice(1, -1),
]

describe('noted answers', () => {
  const places: Record<string, { settings?: () => Partial<HttpSettings>; request?: Partial<HttpRequest> }> = {
    'a header of the provider': { settings: () => ({ headers: { 'x-api-key': KEY } }) },
    'a bearer token': { settings: () => ({ headers: { authorization: `Bearer ${KEY}` } }) },
    'a header of the request': { request: { headers: { 'x-cg-pro-api-key': KEY } } },
    'a query parameter': { request: { query: { apiKey: KEY, id: 7 } } },
    'a short query parameter': { request: { query: { key: KEY } } },
    'the path of the base URL': { settings: () => ({ baseUrl: `${url}/v2/${encodeURIComponent(KEY)}` }) },
    'the query of the path': {
      settings: () => ({ secrets: [KEY] }),
      request: { path: `/path?token=${encodeURIComponent(KEY)}` },
    },
    'the password of the base URL': {
      settings: () => ({ baseUrl: url.replace('://', `://account-name:${encodeURIComponent(KEY)}@`), secrets: [KEY] }),
    },
    'the body of the request': {
      settings: () => ({ secrets: [KEY] }),
      request: { body: { apiKey: KEY, list: [{ text: KEY }] } },
    },
  }
  for (const [place, { settings, request }] of Object.entries(places)) {
    for (const status of [200, 403])
      it(`contain no key that was in ${place}, after status ${status}`, async () => {
        // The provider repeats its key only if it has received it.
        const secrets = { secrets: [KEY], ...settings?.() }
        const query = { ...request?.query, status }
        const [answer] = await noteOne(secrets, { ...request, query })
        const text = JSON.stringify({ ...answer, body: undefined })
        for (const form of FORMS) {
          expect(text).not.toContain(JSON.stringify(form).slice(1, -1))
          expect(answer?.body).not.toContain(form)
        }
        expect(JSON.stringify(answer)).not.toContain('account-name')
        expect(answer?.body).toContain('kept')
        expect(answer).toMatchObject({ provider: 'one', status, attempt: 1 })
        expect(answer?.query).toContain(`status=${status}`)
      })
  }

  it('have the reason of a request without a response', async () => {
    const [answer] = await noteOne({ baseUrl: url.replace('http:', 'https:') }, {})
    expect(answer).toMatchObject({ status: 0, code: 'provider_unavailable', body: '' })
    expect(answer?.reason).toMatch(/^the connection failed \(\w+/)
  })

  it('number the attempts of a request', async () => {
    const answers = await noteOne({}, { query: { status: 503 }, retries: 2 })
    expect(answers.map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, 503],
      [2, 503],
      [3, 503],
    ])
  })

  it('name only the domain of a host that the operator chose', () => {
    expect(toShownHost('my-account-name.ethereum-mainnet.quiknode.pro')).toBe('*.quiknode.pro')
    expect(toShownHost('api.ethplorer.io')).toBe('api.ethplorer.io')
    expect(toShownHost('127.0.0.1:8545')).toBe('127.0.0.1:8545')
    expect(toShownHost('[::1]:8545')).toBe('[::1]:8545')
  })
})
