import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { indexTokenRoute } from '../../api/routes/index/token-data.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import type { BasketIndex } from '../../shared/registry/index-records.ts'
import indexToken from '../../workers/jobs/index-token.ts'
import prices from '../../workers/jobs/prices.ts'
import { runJob } from '../../workers/run/runner.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'
import { createSimulatedWorld } from '../upstream/simulated.ts'
import { createSimulatedIndexToken } from '../upstream/simulated-index-token.ts'

const NOW = Date.parse('2024-05-06T07:06:09Z')
const FEED = '0x5f4ec3df9cbd43714fe2740f5e3616155c5b8419'
const ETHER = 10n ** 18n

const reading = z.object({
  created_at: z.string(),
  block_number: z.number(),
  value: z.string(),
  total_supply: z.string(),
  value_usd: z.number(),
  eth_usd: z.number(),
  eth_source: z.string(),
})
const call = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()) })
type Call = z.infer<typeof call>

let pipeline: ServedPipeline
const closers: (() => Promise<void>)[] = []
beforeEach(async () => {
  pipeline = await createServedPipeline({ now: NOW })
})
afterEach(async () => {
  await Promise.all([pipeline.close(), ...closers.splice(0).map((close) => close())])
})

/** Runs the job with another node or index than the pipeline's. */
async function collect(change: { rpcUrl?: string; index?: Partial<BasketIndex> } = {}) {
  const { context, config, registry } = pipeline
  const { urls } = parseConfig({ RPC_URLS: `ethereum=${change.rpcUrl ?? `${pipeline.upstream.url}/rpc/ethereum`}` })
    .providers.rpc
  const changed = {
    ...context,
    config: { ...config, providers: { ...config.providers, rpc: { ...config.providers.rpc, urls } } },
    registry: { ...registry, index: { ...registry.index, ...change.index } },
  }
  const slot = Math.floor(NOW / 300_000) * 300_000
  return runJob(indexToken, indexToken.connect(changed), changed, { kind: 'slot', slot, again: true })
}
const stored = async () => {
  const sql = 'SELECT * EXCEPT collected_at FROM index_token FINAL ORDER BY created_at'
  return pipeline.database.db.rows({ name: 'readings', sql, schema: reading })
}

/** A node that forwards every call to the stand-in, replaces replies for a test and records the calls. */
async function startNode(change: (call: Call) => object | undefined = () => undefined) {
  const requests: Call[] = []
  const server = await startProviderServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const input: unknown = JSON.parse(Buffer.concat(chunks).toString())
    const calls = (Array.isArray(input) ? input : [input]).map((one) => call.parse(one))
    requests.push(...calls)
    const body = JSON.stringify(calls)
    const answer = await fetch(`${pipeline.upstream.url}/rpc/ethereum`, { method: 'POST', body })
    const replies = (await answer.json()) as { id: number }[]
    const changed = replies.map((reply) => {
      const own = change(calls.find(({ id }) => id === reply.id) ?? { id: 0, method: '', params: [] })
      return own === undefined ? reply : { jsonrpc: '2.0', id: reply.id, ...own }
    })
    sendJson(response, Array.isArray(input) ? changed : changed[0])
  })
  closers.push(server.close)
  return { url: server.baseUrl, requests }
}

const isFeed = ({ method, params: [target] }: Call) =>
  method === 'eth_call' && z.object({ to: z.string() }).parse(target).to === FEED
const toRound = (usd: bigint, updatedAt: number) =>
  `0x${[1n, usd, BigInt(updatedAt), BigInt(updatedAt), 1n].map((one) => one.toString(16).padStart(64, '0')).join('')}`

describe('Index Token with components', () => {
  it('is valued exactly at the stored prices, and served as it is stored', async () => {
    await pipeline.collect(prices)
    pipeline.clock.now += 170_000
    await pipeline.collect(indexToken)
    const [row] = await stored()
    const at = Date.parse(row?.created_at ?? '')
    expect(pipeline.clock.now - at).toBeGreaterThanOrEqual(12 * 12_000)
    expect(pipeline.clock.now - at).toBeLessThan(14 * 12_000)
    const { supply, components } = createSimulatedIndexToken(pipeline.registry.index, 1).stateAt(at)
    expect(row?.total_supply).toBe(
      `${supply / ETHER}.${String(supply % ETHER)
        .padStart(18, '0')
        .replace(/0+$/, '')}`,
    )
    expect(String(Number(row?.total_supply))).not.toBe(row?.total_supply)

    const quotes = await pipeline.database.db.rows({
      name: 'quotes',
      sql: 'SELECT t.contract_address AS address, q.price AS price FROM token_quotes AS q INNER JOIN tokens AS t ON t.key = q.token',
      schema: z.object({ address: z.string(), price: z.number() }),
    })
    const priceOf = new Map(quotes.map(({ address, price }) => [address, price]))
    const nav = [...components].reduce(
      (sum, [one, units]) => sum + (Number(units) / 1e18) * (priceOf.get(one) ?? NaN),
      0,
    )
    expect(row?.value_usd).toBeCloseTo(nav, 8)
    expect(Number(row?.value)).toBeCloseTo((nav * Number(supply)) / 1e18 / (row?.eth_usd ?? 0), 6)
    expect(row?.eth_source).toBe('chainlink')

    const response = await fetch(`${pipeline.url}/data/index/token-data`)
    const body: unknown = await response.json()
    indexTokenRoute.response.parse(body)
    expect(body).toEqual({
      value: row?.value,
      totalSupply: row?.total_supply,
      valueUsd: row?.value_usd,
      createdAt: row?.created_at,
    })
    expect(response.headers.get('x-data-as-of')).toBe(row?.created_at)
    expect(response.headers.get('x-data-stale')).toBeNull()
  })

  it('has the value of every component, also of one outside the registry', async () => {
    await pipeline.collect(prices)
    pipeline.clock.now += 170_000
    await pipeline.collect(indexToken)
    const foreign = pipeline.registry.index.compositions[0]?.elements[0]?.token.contractAddress ?? ''
    const { db } = pipeline.database
    const [own] = await stored()
    await db.command({ name: 'forget', sql: 'TRUNCATE TABLE index_token' })
    await db.command({
      name: 'forget',
      sql: `ALTER TABLE tokens DELETE WHERE contract_address = '${foreign}' SETTINGS mutations_sync = 2`,
    })
    await pipeline.collect(indexToken)
    const [row] = await stored()
    // DefiLlama's price of it is some minutes old.
    expect((row?.value_usd ?? 0) / (own?.value_usd ?? 1)).toBeCloseTo(1, 2)
    pipeline.upstream.faults.set('defillama-coins', { kind: 'empty' })
    await expect(collect()).rejects.toMatchObject({ message: expect.stringContaining(foreign) })
  })

  it('has the value of an ended component without collected prices', async () => {
    await pipeline.collect(prices)
    pipeline.clock.now += 170_000
    await pipeline.collect(indexToken)
    const [own] = await stored()
    const { db } = pipeline.database
    const change = (sql: string, key: number) =>
      db.command({ name: 'change', sql: `${sql} SETTINGS mutations_sync = 2`, params: { key } })
    const [one, ended] = pipeline.registry.index.compositions[0]?.elements.map(({ token }) => token) ?? []
    if (one === undefined || ended === undefined) throw new Error('the index has no two members')
    await change('ALTER TABLE token_prices DELETE WHERE token = {key: UInt64}', ended.key)
    await db.command({ name: 'forget', sql: 'TRUNCATE TABLE index_token' })
    // A live token should have a price.
    await expect(collect()).rejects.toMatchObject({ message: expect.stringContaining(ended.contractAddress) })
    await change('ALTER TABLE tokens UPDATE live = false WHERE key = {key: UInt64}', ended.key)
    await pipeline.collect(indexToken)
    const [row] = await stored()
    expect((row?.value_usd ?? 0) / (own?.value_usd ?? 1)).toBeCloseTo(1, 2)
    // If it still has a stored price of the time, that price is used.
    await change('ALTER TABLE tokens UPDATE live = false WHERE key = {key: UInt64}', one.key)
    pipeline.upstream.faults.set('defillama-coins', { kind: 'empty' })
    await expect(collect()).rejects.toMatchObject({
      message: expect.toSatisfy(
        (text: string) => text.includes(ended.contractAddress) && !text.includes(one.contractAddress),
      ),
    })
  })

  it('reads all values at one block', async () => {
    await pipeline.collect(prices)
    pipeline.clock.now += 170_000
    const { url, requests } = await startNode()
    await collect({ rpcUrl: url })
    const [row] = await stored()
    const tags = requests.flatMap(({ method, params }) =>
      method === 'eth_blockNumber' ? [] : [method === 'eth_getBlockByNumber' ? params[0] : params[1]],
    )
    expect(tags).toHaveLength(4 + 1 + (pipeline.registry.index.compositions[0]?.elements.length ?? 0))
    expect([...new Set(tags)]).toEqual([`0x${row?.block_number.toString(16)}`])
  })

  it('has no value if a component has no recent price', async () => {
    await expect(collect()).rejects.toMatchObject({ code: 'provider_unavailable' })
    pipeline.clock.now -= 40 * 60_000
    await pipeline.collect(prices)
    pipeline.clock.now += 40 * 60_000
    await expect(collect()).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await stored()).toEqual([])
  })
})

describe('Index Token with ether', () => {
  const { token } = { token: { chain: 'ethereum', contractAddress: '0x1494ca1f11d487c2bbe4543e90080aeba4ba3c2b' } }
  const index = { token: { ...token, mode: 'eth' as const } }

  it('has the exact ether of its contract, wrapped or not', async () => {
    await collect({ index })
    const [row] = await stored()
    const state = createSimulatedIndexToken(pipeline.registry.index, 1).stateAt(Date.parse(row?.created_at ?? ''))
    const wei = state.ether + state.wrappedEther
    expect(row?.value).toBe(
      `${wei / ETHER}.${String(wei % ETHER)
        .padStart(18, '0')
        .replace(/0+$/, '')}`,
    )
    const expected = ((Number(wei) / 1e18) * (row?.eth_usd ?? 0)) / (Number(state.supply) / 1e18)
    expect(row?.value_usd).toBeCloseTo(expected, 9)
  })

  it.each([7199, 7200])('accepts a price feed that was updated %i seconds ago', async (age) => {
    const seconds = await blockTime()
    const { url } = await startNode((one) =>
      isFeed(one) ? { result: toRound(200_012_345_678n, seconds - age) } : undefined,
    )
    await collect({ index, rpcUrl: url })
    expect(await stored()).toMatchObject([{ eth_usd: 2000.12345678, eth_source: 'chainlink' }])
  })

  it.each([
    ['a feed older than two hours', (seconds: number) => ({ result: toRound(200_000_000_000n, seconds - 7201) })],
    ['a feed without a price', (seconds: number) => ({ result: toRound(0n, seconds) })],
    ['a feed that refuses', () => ({ error: { code: 3, message: 'execution reverted' } })],
    ['no feed at all', () => ({ result: '0x' })],
  ])('uses another ether price instead of %s', async (_, reply) => {
    const seconds = await blockTime()
    const { url } = await startNode((one) => (isFeed(one) ? reply(seconds) : undefined))
    await collect({ index, rpcUrl: url })
    const [row] = await stored()
    expect(row?.eth_source).toBe('defillama')
    const world = createSimulatedWorld(pipeline.registry, 1)
    const ether = world.assets.find(({ coingeckoId }) => coingeckoId === 'ethereum')
    // DefiLlama's prices are some minutes old.
    const minutes = [0, 5, 10, 15]
    const recent = minutes.map((ago) => ether && world.history(ether)?.lastAt((seconds - ago * 60) * 1000)?.price)
    expect(recent).toContain(row?.eth_usd)
  })

  it('has no row if no provider has the ether price', async () => {
    const { url } = await startNode((one) => (isFeed(one) ? { result: '0x' } : undefined))
    pipeline.upstream.faults.set('defillama-coins', { kind: 'empty' })
    await expect(collect({ index, rpcUrl: url })).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await stored()).toEqual([])
  })

  it.each([
    ['an hour at most', 59, true],
    ['more than an hour', 61, false],
  ])('is stored or retried if the node lags behind its slot by %s', async (_, minutes, isStored) => {
    const block = (await headBlock()) - 12
    const slot = Math.floor(NOW / 300_000) * 300_000
    const late = block - Math.ceil(((await blockTime()) - (slot / 1000 - minutes * 60)) / 12)
    const { url } = await startNode(({ method }) =>
      method === 'eth_blockNumber' ? { result: `0x${(late + 12).toString(16)}` } : undefined,
    )
    const run = collect({ index, rpcUrl: url })
    if (isStored) await run
    else {
      const says = expect.stringContaining('rpc-ethereum: the node lags behind')
      await expect(run).rejects.toMatchObject({ code: 'provider_unavailable', message: says })
    }
    expect((await stored()).map(({ block_number }) => block_number)).toEqual(isStored ? [late] : [])
    // A bucket that is recorded as stored is never requested again.
    const states = z.object({ state: z.string() })
    const sql = "SELECT toString(state) AS state FROM coverage FINAL WHERE dataset = 'index-token'"
    const reports = await pipeline.database.db.rows({ name: 'reports', sql, schema: states })
    expect(reports.map(({ state }) => state)).toEqual(isStored ? ['stored'] : [])
  })

  it("counts a slot that was not collected as missed, although the next slot's block lies in its time", async () => {
    await collect({ index })
    const bucket = Math.floor(NOW / 300_000)
    const [row] = await stored()
    expect(Math.floor(Date.parse(String(row?.created_at)) / 300_000)).toBe(bucket - 1)
    const entity = { ...pipeline.registry.index, ...index }
    const missing = [{ entity, runs: [{ first: bucket - 1, last: bucket - 1 }] }]
    const ledger = openLedger(pipeline.database.db, indexToken.dataset)
    expect(await ledger.recordMissed(missing, { provider: 'unknown', now: NOW })).toEqual({ slots: 1, entities: 1 })
  })

  it('is malformed if the contract does not exist, with the reason', async () => {
    const elsewhere = { ...index.token, contractAddress: `0x${'9'.repeat(40)}` }
    const reason = await collect({ index: { token: elsewhere } }).catch((error: unknown) => error)
    expect(reason).toMatchObject({ code: 'provider_malformed' })
    expect(String(reason)).toContain('totalSupply: there is no such contract')
  })

  it('is unserved without a node of its chain', async () => {
    const elsewhere = { ...index.token, chain: 'arbitrum' }
    expect(await collect({ index: { token: elsewhere } })).toMatchObject({ rows: 0, uncovered: 1 })
  })
})

async function callNode(method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method, params })
  const answer = await fetch(`${pipeline.upstream.url}/rpc/ethereum`, { method: 'POST', body })
  return z.object({ result: z.unknown() }).parse(await answer.json()).result
}

const headBlock = async () => Number(await callNode('eth_blockNumber', []))

async function blockTime(): Promise<number> {
  const block = await callNode('eth_getBlockByNumber', [`0x${((await headBlock()) - 12).toString(16)}`, false])
  return Number(z.object({ timestamp: z.string() }).parse(block).timestamp)
}

it('GET /data/index/token-data returns 404 before the first reading', async () => {
  const response = await fetch(`${pipeline.url}/data/index/token-data`)
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({
    code: 'no_data',
    detail: expect.stringContaining('not been read yet'),
  })
})
