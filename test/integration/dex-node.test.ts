import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createHttpClients } from '../../workers/http/client.ts'
import { SWAP_TOPICS } from '../../workers/providers/evm/dex/swaps.ts'
import { findBlockAt } from '../../workers/providers/evm/logs/find-block.ts'
import { TooWide } from '../../workers/providers/evm/logs/log-pages.ts'
import { createNode } from '../../workers/providers/evm/logs/node.ts'
import { createJsonRpc } from '../../workers/providers/evm/rpc/json-rpc.ts'
import { createObservedClients, sendJson, startProviderServer } from '../provider-server.ts'
import { silent } from '../support/silent.ts'

const dir = process.env.UPSTREAM_DATA_DIR ?? resolve(import.meta.dirname, '../../../shared/data')
const recordings = join(dir, 'fixtures-ethereum-logs-rotki')
if (!existsSync(recordings)) console.log(`recorded node answers are not tested: there are none in ${dir}`)

const { signal } = new AbortController()
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

const rpcCall = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()) })
type Call = z.infer<typeof rpcCall>
type Reply = { result: unknown } | { error: { code: number; message: string } }
type Sent = { body: unknown; status?: number; headers?: Record<string, string> }
const logFilter = z.object({ fromBlock: z.string().transform(Number), toBlock: z.string().transform(Number) })

const CAP = 1e6

/** A node whose replies the test defines, per call or as a complete body. */
async function startNode(
  answer: (call: Call) => Reply,
  more: { fullReply?: (calls: readonly Call[]) => Sent | undefined; batchSize?: number; timeoutMs?: number } = {},
) {
  const sentRequests: Call[] = []
  const server = await startProviderServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      const input: unknown = JSON.parse(text)
      const calls = (Array.isArray(input) ? input : [input]).map((call) => rpcCall.parse(call))
      sentRequests.push(...calls)
      const fullReply = more.fullReply?.(calls)
      if (fullReply !== undefined) {
        if (fullReply.body !== undefined) sendJson(response, fullReply.body, fullReply.status, fullReply.headers)
        return
      }
      const replies = calls.map((call) => ({ jsonrpc: '2.0', id: call.id, ...answer(call) }))
      sendJson(response, Array.isArray(input) ? replies.reverse() : replies[0])
    })
  })
  closers.push(server.close)
  const { http, calls } = createObservedClients()
  const { timeoutMs = 5_000, batchSize = 3 } = more
  const settings = { timeoutMs, maxBytes: CAP, requestsPerMinute: 60_000 }
  const client = http.open({ provider: 'rpc-test', baseUrl: `${server.baseUrl}/v3/secret-key`, ...settings })
  return {
    node: createNode(createJsonRpc('rpc-test', client, batchSize)),
    sentRequests,
    calls,
    requests: server.requests,
  }
}

const hex = (value: number) => `0x${value.toString(16)}`
/** A second before the first block. */
const START = Date.parse('2015-07-30T00:00:00Z') / 1000
const blockOf = (number: number) => ({ result: { number: hex(number), timestamp: hex(START + number * 12) } })
const numberOf = ({ params: [tag] }: Call) => Number(tag)
const refuse = (code: number, message = 'no') => ({ error: { code, message } })

const HASH = `0x${'a'.repeat(64)}`
const LOG = {
  ...{ address: `0x${'9'.repeat(40)}`, topics: [], data: '0x', blockNumber: 7, transactionHash: HASH },
  ...{ logIndex: 0, blockTimestamp: undefined, removed: false },
}

describe('batch of calls to a node', () => {
  it('is matched by id, in any order of the replies', async () => {
    const { node, sentRequests, requests } = await startNode((call) => blockOf(numberOf(call)))
    const blocks = await node.blocks([9, 2, 7, 4, 1], signal)
    expect([...blocks.values()]).toMatchObject([9, 2, 7, 4, 1].map((number) => ({ number })))
    expect(sentRequests).toHaveLength(5)
    expect(requests.map(({ url }) => url.pathname)).toEqual(['/v3/secret-key', '/v3/secret-key'])
  })

  it('takes one turn of the rate limit per call, as the node bills them', async () => {
    const taken: number[] = []
    const limit = { take: async (_: AbortSignal, cost = 1) => void taken.push(cost) }
    const server = await startProviderServer((request, response) => {
      void text(request).then((body) => {
        const input = z.union([rpcCall, z.array(rpcCall)]).parse(JSON.parse(body))
        const answer = (call: Call) => ({ jsonrpc: '2.0', id: call.id, ...blockOf(7) })
        sendJson(response, Array.isArray(input) ? input.map(answer) : answer(input))
      })
    })
    closers.push(server.close)
    const http = createHttpClients({ log: silent, limitsOf: () => ({ total: limit, history: limit }) })
    const client = http.open({
      provider: 'rpc-test',
      baseUrl: server.baseUrl,
      timeoutMs: 5_000,
      maxBytes: 1e6,
      requestsPerMinute: 1,
    })
    const node = createNode(createJsonRpc('rpc-test', client, 3))
    await node.blocks([1, 2, 3, 4, 5], signal)
    await node.finalized(signal)
    expect(taken).toEqual([3, 2, 1])
  })

  it('is resent for the calls that the node rejected for lack of capacity', async () => {
    const refused = new Set([2, 7])
    const { node, sentRequests } = await startNode((call) =>
      refused.delete(numberOf(call)) ? refuse(-32005, 'Rate limit exceeded') : blockOf(numberOf(call)),
    )
    expect([...(await node.blocks([9, 2, 7], signal)).values()]).toMatchObject([9, 2, 7].map((number) => ({ number })))
    expect(sentRequests.map(numberOf)).toEqual([9, 2, 7, 2, 7])
  })

  it('rejects each call if it is rejected as a whole', async () => {
    const { node } = await startNode(() => refuse(1), {
      fullReply: () => ({ body: refuse(-32600, 'batch too large') }),
    })
    const blocks = await node.blocks([1, 2], signal)
    for (const number of [1, 2]) expect(blocks.get(number)).toMatchObject({ code: 'provider_rejected' })
  })

  it('reports a call without a reply as malformed', async () => {
    const { node } = await startNode(() => refuse(1), { fullReply: () => ({ body: [{ id: 0, ...blockOf(1) }] }) })
    const blocks = await node.blocks([1, 2], signal)
    expect(blocks.get(1)).toMatchObject({ number: 1 })
    expect(blocks.get(2)).toMatchObject({ code: 'provider_malformed' })
  })
})

describe('node client', () => {
  it('reports a missing block or transaction as temporary', async () => {
    const { node } = await startNode(() => ({ result: null }))
    expect((await node.blocks([5], signal)).get(5)).toMatchObject({
      code: 'provider_unavailable',
      message: 'rpc-test: the node does not have block 5 yet',
    })
    const senders = await node.senders([{ ...LOG, transactionHash: HASH }], signal)
    expect(senders.get(HASH)).toMatchObject({ code: 'provider_unavailable' })
  })

  it('retries after a 429 response in the form of real nodes', async () => {
    const throttled = {
      body: { jsonrpc: '2.0', id: 1, error: { code: 429, event: -33300, message: 'Too Many Requests', details: '' } },
      status: 429,
      headers: { 'retry-after': '0' },
    }
    let remaining = 2
    const full = () => (remaining-- > 0 ? throttled : undefined)
    const { node, calls } = await startNode((call) => blockOf(numberOf(call)), { fullReply: full })
    expect((await node.blocks([3], signal)).get(3)).toEqual({ number: 3, timestamp: START + 36 })
    expect(calls).toMatchObject([{ outcome: 'ok', retries: 2, path: 'eth_getBlockByNumber' }])
    const always = await startNode(() => refuse(1), { fullReply: () => throttled })
    await expect(always.node.blocks([3], signal)).rejects.toMatchObject({ code: 'provider_unavailable' })
  })

  it('never includes the URL in an error, because it may contain a key', async () => {
    const { node } = await startNode(() => refuse(1), { fullReply: () => ({ body: { error: 'no' }, status: 403 }) })
    const error = await node.blocks([3], signal).catch((reason: unknown) => String(reason))
    expect(error).toContain('eth_getBlockByNumber')
    expect(error).not.toContain('secret')
  })

  it('returns the final block, or the twelfth before the newest if the node has no finalized tag', async () => {
    const tags: unknown[] = []
    const answer = (existing: boolean) => (call: Call) => {
      tags.push(call.params[0])
      if (call.method === 'eth_blockNumber') return { result: hex(1_000) }
      if (call.params[0] !== 'finalized') return blockOf(numberOf(call))
      return existing ? blockOf(936) : refuse(-32602, 'unknown block tag')
    }
    const modern = await startNode(answer(true))
    expect(await modern.node.finalized(signal)).toMatchObject({ number: 936 })
    const old = await startNode(answer(false))
    expect(await old.node.finalized(signal)).toMatchObject({ number: 988 })
    const nothing = await startNode((call) => (call.params[0] === 'finalized' ? { result: null } : answer(true)(call)))
    expect(await nothing.node.finalized(signal)).toMatchObject({ number: 988 })
  })
})

describe('node that is rate limited', () => {
  const filter = { addresses: [LOG.address], topics: ['0xbb'] }

  it.each([
    [-32005, 'Rate limit exceeded'],
    [-32005, 'daily request count exceeded, request rate limited'],
    [-32000, 'Your app has exceeded its compute units per second capacity'],
  ])('does not halve a page after error %i %s', async (code, message) => {
    const { node, sentRequests } = await startNode(() => refuse(code, message))
    const page = node.logs(filter, { from: 1, to: 2_000, last: false }, signal)
    await expect(page).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(sentRequests).toHaveLength(1)
  })

  it('halves a page with too many logs, which has the same error code', async () => {
    const { node } = await startNode(() => refuse(-32005, 'query returned more than 10000 results'))
    expect(await node.logs(filter, { from: 1, to: 2_000, last: false }, signal)).toBeInstanceOf(TooWide)
  })

  it('throws instead of choosing a final block, also after other errors', async () => {
    for (const [code, message] of [
      [-32016, 'over rate limit'],
      [-32000, 'header not found'],
    ] as const) {
      const { node } = await startNode((call) => (call.params[0] === 'finalized' ? refuse(code, message) : blockOf(9)))
      await expect(node.finalized(signal)).rejects.toThrow(message)
    }
  })
})

describe('search for the block of a time', () => {
  it.each([1, 12, 13, 5_000 * 12, 5_000 * 12 + 1, 999_999 * 12])(
    'finds the first block at or after second %i',
    async (at) => {
      const { node, sentRequests } = await startNode((call) => blockOf(numberOf(call)))
      const head = { number: 1_000_000, timestamp: START + 12_000_000 }
      expect(await findBlockAt(node, START + at, head, signal)).toBe(Math.max(1, Math.ceil(at / 12)))
      expect(sentRequests.length).toBeLessThan(25)
    },
  )

  it('returns the number after the newest block for a later time', async () => {
    const { node } = await startNode((call) => blockOf(numberOf(call)))
    expect(await findBlockAt(node, START + 1_201, { number: 100, timestamp: START + 1_200 }, signal)).toBe(101)
  })

  it('works on a chain that changed its block time', async () => {
    const timeOf = (number: number) => START + (number < 900_000 ? number * 13 : 900_000 * 13 + (number - 900_000) * 2)
    const { node, sentRequests } = await startNode((call) => {
      const number = numberOf(call)
      return { result: { number: hex(number), timestamp: hex(timeOf(number)) } }
    })
    const head = { number: 1_000_000, timestamp: timeOf(1_000_000) }
    expect(await findBlockAt(node, timeOf(950_123), head, signal)).toBe(950_123)
    expect(sentRequests.length).toBeLessThan(40)
  })
})

describe('request for a page of logs', () => {
  const pool = [`0x${'9'.repeat(40)}`]
  const rangeOf = ({ params: [filter] }: Call) => logFilter.parse(filter)
  async function readAll(started: Awaited<ReturnType<typeof startNode>>, from: number, to: number) {
    const accepted: [number, number][] = []
    for (let at = from; at <= to; ) {
      const { end } = await started.node.pager.read(at, to, (first, until, last) =>
        started.node.logs({ addresses: pool, topics: SWAP_TOPICS }, { from: first, to: until, last }, signal),
      )
      accepted.push([at, end])
      at = end + 1
    }
    return accepted
  }
  const covered = (pages: readonly [number, number][]) =>
    pages.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at))
  const blocks = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at)

  it('is requested with both topics and all pools', async () => {
    const started = await startNode(() => ({ result: [] }))
    await readAll(started, 1, 10)
    expect(started.sentRequests).toMatchObject([
      {
        method: 'eth_getLogs',
        params: [
          {
            address: pool,
            topics: [[expect.stringMatching(/^0xd78ad9/), expect.stringMatching(/^0xc42079/)]],
            fromBlock: '0x1',
            toBlock: '0xa',
          },
        ],
      },
    ])
  })

  it.each([-32005, -32602, -32000, -32603])('is halved on error %i', async (code) => {
    const answer = (call: Call) => {
      const { fromBlock, toBlock } = rangeOf(call)
      return toBlock - fromBlock >= 300 ? refuse(code) : { result: [] }
    }
    expect(covered(await readAll(await startNode(answer), 1, 3_000))).toEqual(blocks(1, 3_000))
  })

  it('is halved after a response that is too large or too slow', async () => {
    const fullReply = (calls: readonly Call[]): Sent | undefined => {
      const [call] = calls
      const { fromBlock, toBlock } = rangeOf(call ?? { id: 0, method: '', params: [] })
      if (toBlock - fromBlock > 1_500) return { body: undefined }
      if (toBlock - fromBlock > 600) return { body: {}, status: 413 }
      return toBlock - fromBlock > 200 ? { body: { id: 0, result: ' '.repeat(CAP) } } : undefined
    }
    const started = await startNode(() => ({ result: [] }), { fullReply, timeoutMs: 150 })
    expect(covered(await readAll(started, 1, 3_000))).toEqual(blocks(1, 3_000))
  })

  it.each([500, 502, 504])('is halved after gateway error %i, in this reading and the next', async (status) => {
    const fullReply = ([call]: readonly Call[]): Sent | undefined => {
      const { fromBlock, toBlock } = rangeOf(call ?? { id: 0, method: '', params: [] })
      return toBlock - fromBlock >= 600 ? { body: {}, status } : undefined
    }
    const started = await startNode(() => ({ result: [] }), { fullReply })
    const read = () => readAll(started, 1, 6_000)
    // 2,000 and 1,000 blocks are too many.
    await expect(read()).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(covered(await read())).toEqual(blocks(1, 6_000))
  })

  it('fails for one rejected block, temporarily if the node lacked capacity', async () => {
    const busy = await startNode(() => refuse(-32005, 'query returned more than 10000 results'))
    await expect(readAll(busy, 1, 8)).rejects.toMatchObject({ code: 'provider_unavailable' })
    const pruned = await startNode(() => refuse(4444, 'pruned history unavailable'))
    await expect(readAll(pruned, 1, 8)).rejects.toMatchObject({ code: 'provider_unconfigured' })
  })

  it('is malformed if it is not a list', async () => {
    const started = await startNode(() => ({ result: { logs: [] } }))
    await expect(readAll(started, 1, 2)).rejects.toMatchObject({ code: 'provider_malformed' })
  })

  const GOOD = {
    ...{ address: pool[0], topics: [], data: '0x', blockNumber: '0x1', transactionHash: HASH, logIndex: '0x0' },
    blockTimestamp: hex(START + 12),
  }
  const readLogs = async (result: unknown[], addresses = pool) => {
    const answer = ({ params: [filter] }: Call) => {
      const requested = z.object({ address: z.array(z.string()) }).parse(filter).address
      const isRequested = (one: unknown) =>
        one === null || requested.includes(String(Reflect.get(Object(one), 'address')))
      // The null log belongs to the last contract.
      return {
        result: result.filter(
          (one) => isRequested(one) && (one !== null || requested.includes(addresses.at(-1) ?? '')),
        ),
      }
    }
    const { node } = await startNode(answer)
    return node.logs({ addresses, topics: SWAP_TOPICS }, { from: 1, to: 2, last: false }, signal)
  }

  it.each([
    ['no data', { data: null }],
    ['data of half a word', { data: '0x12' }],
    ['a number that is none', { logIndex: 'first' }],
    ['a number that is too large', { blockNumber: `0x${'f'.repeat(60)}` }],
    ['no topics', { topics: undefined }],
    ['half a hash', { transactionHash: '0xab' }],
  ])('marks only the log with %s as faulty', async (_, more) => {
    const logs = await readLogs([GOOD, { ...GOOD, logIndex: '0x1', ...more }, { ...GOOD, logIndex: '0x2' }])
    expect(logs).toMatchObject([{ logIndex: 0 }, { fault: expect.any(String), address: pool[0] }, { logIndex: 2 }])
    expect([0, 2].map((at) => Reflect.get(Array.isArray(logs) ? logs[at] : {}, 'fault'))).toEqual([
      undefined,
      undefined,
    ])
  })

  it('finds the contract of a log without an address', async () => {
    const rest = ['1', '2', '3', '4'].map((digit) => `0x${digit.repeat(40)}`)
    const logs = await readLogs([{ ...GOOD, address: rest[0] }, null], rest)
    expect(logs).toMatchObject([{ address: rest[0] }, { address: rest[3], fault: expect.any(String) }])
  })

  it.each([
    ['zero', '0x0'],
    ['a time in milliseconds', hex((START + 12) * 1000)],
    ['a number', START],
    ['a date', '2024-05-06T00:00:00Z'],
    ['null', null],
  ])('has no time for a log whose time is %s', async (_, blockTimestamp) => {
    expect(await readLogs([GOOD, { ...GOOD, blockTimestamp }])).toMatchObject([
      { blockTimestamp: START + 12 },
      { blockTimestamp: undefined, logIndex: 0 },
    ])
  })

  it('marks a log of a block outside of the requested range as faulty', async () => {
    expect(await readLogs([GOOD, { ...GOOD, blockNumber: '0x9' }])).toMatchObject([
      { logIndex: 0 },
      { fault: expect.any(String), address: pool[0] },
    ])
  })

  it('drops logs of contracts that were not requested', async () => {
    const { node } = await startNode(() => ({ result: [GOOD, { ...GOOD, address: `0x${'7'.repeat(40)}` }] }))
    const filter = { addresses: pool, topics: SWAP_TOPICS }
    expect(await node.logs(filter, { from: 1, to: 2, last: false }, signal)).toMatchObject([{ address: pool[0] }])
  })

  const recorded = z.array(z.object({ method: z.string(), body: z.unknown() }))
  const refusal = z.object({ error: z.object({ code: z.literal(-32000), message: z.string() }) })

  it.skipIf(!existsSync(recordings))(
    'is halved after the recorded error of a node with a limit of 1,000 blocks',
    async () => {
      const file = gunzipSync(readFileSync(join(recordings, 'getLogs_responses.json.gz'))).toString()
      const bodies = recorded.parse(JSON.parse(file)).map(({ body }) => body)
      const refused = bodies.flatMap((body) => refusal.safeParse(body).data ?? [])
      expect(refused.map(({ error }) => error.message)).toEqual(['eth_getLogs is limited to a 1000 blocks range'])
      const body = bodies.find((each) => refusal.safeParse(each).success)
      const fullReply = ([call]: readonly Call[]): Sent | undefined => {
        const { fromBlock, toBlock } = rangeOf(call ?? { id: 0, method: '', params: [] })
        return toBlock - fromBlock >= 1_000 ? { body } : undefined
      }
      const pages = await readAll(await startNode(() => ({ result: [] }), { fullReply }), 50_000, 59_999)
      expect(covered(pages)).toEqual(blocks(50_000, 59_999))
      expect(pages.every(([from, to]) => to - from < 1_000)).toBe(true)
    },
  )
})
