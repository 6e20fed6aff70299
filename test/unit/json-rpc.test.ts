import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createHttpClients } from '../../workers/http/client.ts'
import { createJsonRpc } from '../../workers/providers/evm/rpc/json-rpc.ts'
import { startProviderServer } from '../provider-server.ts'
import { silent } from '../support/silent.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const { signal } = new AbortController()
const rpcCall = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()) })
type Call = z.infer<typeof rpcCall>
interface Sent {
  readonly status?: number
  readonly body: unknown
  readonly type?: string
}

/** Starts a node with the given responses. Returns a client and the number of calls in each request. */
async function startNode(answer: (calls: readonly Call[], isBatch: boolean) => Sent, batchSize = 10) {
  const sizes: number[] = []
  const server = await startProviderServer((request, response) => {
    void text(request).then((sent) => {
      const input = z.union([z.array(rpcCall), rpcCall]).parse(JSON.parse(sent))
      const calls = Array.isArray(input) ? input : [input]
      sizes.push(calls.length)
      const { status = 200, body, type = 'application/json' } = answer(calls, Array.isArray(input))
      response.writeHead(status, { 'content-type': type }).end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  closers.push(server.close)
  const settings = { baseUrl: server.baseUrl, timeoutMs: 5_000, maxBytes: 10_000, requestsPerMinute: 60_000 }
  const client = createHttpClients({ log: silent, backoffMs: 0 }).open({ provider: 'node', ...settings })
  return { rpc: createJsonRpc('node', client, batchSize), sizes }
}

/** Returns the result of a call for this response of the node; 400 and 413 may be rejections. */
async function call(status: number, body: string, type = 'application/json') {
  const { rpc } = await startNode(() => ({ status, body, type }))
  return rpc.call({ method: 'eth_getLogs', params: [] }, signal, { answers: [400, 413] })
}

const toError = (code: number, message: string) => ({ error: { code, message } })

describe('call that accepts error statuses as rejections', () => {
  const refusal = toError(-32602, 'range too wide')

  it.each([200, 400, 404, 500])('returns the error of the node with status %i', async (status) => {
    expect(await call(status, JSON.stringify({ jsonrpc: '2.0', id: 0, ...refusal }))).toMatchObject(refusal)
  })

  it.each([
    ['an HTML page', '<html>too large</html>', 'text/html'],
    ['JSON of a gateway', '{"message":"too large"}', 'application/json'],
  ])('returns the status as the error if the body is %s', async (_, body, type) => {
    expect(await call(413, body, type)).toMatchObject({ error: { code: 413 } })
  })

  it('throws for a success of another shape', async () => {
    await expect(call(200, '{"status":"maintenance"}')).rejects.toMatchObject({ code: 'provider_malformed' })
  })

  it.each([
    [401, 'provider_rejected', toError(-32600, 'Must be authenticated!')],
    [429, 'provider_unavailable', toError(-32005, 'rate limited')],
    [503, 'provider_unavailable', toError(-32603, 'internal error')],
  ])('fails for status %i with %s, regardless of the body', async (status, code, body) => {
    await expect(call(status, JSON.stringify({ jsonrpc: '2.0', id: 0, ...body }))).rejects.toMatchObject({ code })
  })

  it('accepts a result next to a null error', async () => {
    expect(await call(200, '{"id":0,"error":null,"result":"0x1"}')).toEqual({ result: '0x1' })
  })
})

/** The reply to each call is its only parameter. */
const toReply = ({ id, params: [result] }: Call) => ({ jsonrpc: '2.0', id, result })
const toCalls = (count: number) => Array.from({ length: count }, (_, n) => ({ method: 'eth_call', params: [n] }))
const toResults = (count: number) => Array.from({ length: count }, (_, result) => ({ result }))

/** The ways in which nodes reject a batch that is too large. */
const BATCH_REFUSALS: [string, Sent][] = [
  [
    'a single error with status 500 and code 31',
    {
      status: 500,
      body: { id: null, jsonrpc: '2.0', ...toError(31, 'Batch of more than 3 requests are not allowed on free tier') },
    },
  ],
  ['a single error with status 200', { body: { jsonrpc: '2.0', id: null, ...toError(-32600, 'batch too large') } }],
  ['the id of its first call', { body: { jsonrpc: '2.0', id: 0, ...toError(-32600, 'batch too large') } }],
  ['a code that is otherwise temporary', { body: { id: null, ...toError(-32005, 'Batch size limit exceeded') } }],
  ['a list of one error', { body: [{ jsonrpc: '2.0', id: null, ...toError(-32600, 'batch too large') }] }],
  ['a list with status 400', { status: 400, body: [{ id: null, ...toError(-32600, 'no batches') }] }],
  [
    'an HTML page with status 413',
    { status: 413, body: '<html>413 Request Entity Too Large</html>', type: 'text/html' },
  ],
  ['an error that is a text', { body: { error: 'batch requests are limited' } }],
  ['an empty list', { body: [] }],
]

describe('batch that the node rejects for its size', () => {
  it.each(BATCH_REFUSALS)('is sent in batches of three from then on: %s', async (_, refusal) => {
    const { rpc, sizes } = await startNode((calls) => (calls.length > 3 ? refusal : { body: calls.map(toReply) }))
    expect(await rpc.batch(toCalls(10), signal)).toEqual(toResults(10))
    expect(sizes).toEqual([10, 3, 3, 3, 1])
    expect(await rpc.batch(toCalls(6), signal)).toEqual(toResults(6))
    expect(sizes.slice(5)).toEqual([3, 3])
  })

  it.each(BATCH_REFUSALS)('is sent call by call if three are too many as well: %s', async (_, refusal) => {
    const { rpc, sizes } = await startNode((calls) => (calls.length > 1 ? refusal : { body: calls.map(toReply) }))
    expect(await rpc.batch(toCalls(7), signal)).toEqual(toResults(7))
    expect(await rpc.batch(toCalls(2), signal)).toEqual(toResults(2))
    expect(sizes.slice(-9)).toEqual(Array(9).fill(1))
  })

  it('uses the limit in the rejection', async () => {
    const refusal = { body: { id: null, ...toError(-32600, 'Batch size too large. Max 5 allowed') } }
    const { rpc, sizes } = await startNode((calls) => (calls.length > 5 ? refusal : { body: calls.map(toReply) }))
    expect(await rpc.batch(toCalls(10), signal)).toEqual(toResults(10))
    expect(sizes).toEqual([10, 5, 5])
  })

  it('tries a larger batch after a hundred if the node named no limit', async () => {
    const refusal = { body: { id: null, ...toError(-32600, 'batch too large') } }
    let most = 3
    const { rpc, sizes } = await startNode((calls) => (calls.length > most ? refusal : { body: calls.map(toReply) }))
    await rpc.batch(toCalls(10), signal)
    most = 10
    for (let n = 0; n < 40; n += 1) await rpc.batch(toCalls(9), signal)
    expect(sizes.at(-1)).toBe(9)
  })

  it('returns the error of the node for each call if single calls are rejected too', async () => {
    const error = { code: -32601, message: 'the method eth_call does not exist' }
    const { rpc, sizes } = await startNode(() => ({ body: { id: null, error } }))
    expect(await rpc.batch(toCalls(10), signal)).toEqual(Array(10).fill({ error }))
    expect(sizes.length).toBeLessThan(15)
    sizes.length = 0
    await rpc.batch(toCalls(10), signal)
    // The error does not depend on the batch size.
    expect(sizes[0]).toBe(10)
  })
})

describe('reply of a batch', () => {
  it.each([
    ['is null', () => null],
    ['is missing', () => undefined],
    ['has no id', ({ params }: Call) => ({ jsonrpc: '2.0', result: params[0] })],
    ['is a text', () => 'error'],
  ])('that %s is requested again', async (_, toBad) => {
    let isBad = true
    const { rpc, sizes } = await startNode((calls) => {
      const body = calls.map((one) => (one.params[0] === 1 && isBad ? toBad(one) : toReply(one)))
      isBad = false
      return { body: body.filter((one) => one !== undefined) }
    })
    expect(await rpc.batch(toCalls(3), signal)).toEqual(toResults(3))
    expect(sizes).toEqual([3, 1])
  })

  it('is an error of its call only if it never arrives', async () => {
    const { rpc } = await startNode((calls) => ({
      body: calls.map((one) => (one.params[0] === 1 ? null : toReply(one))),
    }))
    const [first, second, third] = await rpc.batch(toCalls(3), signal)
    expect([first, third]).toEqual([{ result: 0 }, { result: 2 }])
    expect(second).toMatchObject({ error: { isUnreadable: true } })
  })

  it('is an error of its call only if the node rejects the whole batch because of it', async () => {
    const error = { code: -32000, message: 'transaction indexing is in progress' }
    const { rpc, sizes } = await startNode((calls) =>
      calls.some(({ params }) => params[0] === 4) ? { body: { id: null, error } } : { body: calls.map(toReply) },
    )
    const expected = toResults(7).map((reply, n) => (n === 4 ? { error } : reply))
    expect(await rpc.batch(toCalls(7), signal)).toEqual(expected)
    sizes.length = 0
    await rpc.batch(toCalls(7), signal)
    expect(sizes[0]).toBe(7)
  })

  it('may have a text as id and be out of order', async () => {
    const { rpc } = await startNode((calls) => ({
      body: calls.map((one) => ({ ...toReply(one), id: String(one.id) })).reverse(),
    }))
    expect(await rpc.batch(toCalls(4), signal)).toEqual(toResults(4))
  })

  it('to an unknown call is ignored, and only the first of two replies counts', async () => {
    const { rpc } = await startNode((calls) => ({
      body: [{ id: 77, result: 'x' }, ...calls.map(toReply), { id: 0, result: 'y' }],
    }))
    expect(await rpc.batch(toCalls(2), signal)).toEqual(toResults(2))
  })
})

describe('batch with replies without ids', () => {
  it('is sent call by call instead of assuming an order', async () => {
    const { rpc, sizes } = await startNode((calls) => ({
      body: calls.map(({ params }) => ({ jsonrpc: '2.0', result: params[0] })).reverse(),
    }))
    expect(await rpc.batch(toCalls(3), signal)).toEqual(toResults(3))
    expect(sizes.slice(-3)).toEqual([1, 1, 1])
  })
})
