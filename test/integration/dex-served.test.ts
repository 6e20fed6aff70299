import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { dexDataRoute } from '../../api/routes/tokens/dex-data.ts'
import { historicDexTradesRoute } from '../../api/routes/tokens/historic-dex-trades.ts'
import { toId } from '../../shared/ids.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import prices from '../../workers/jobs/prices.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createServedPipeline, type ServedPipeline } from '../support/served-pipeline.ts'

const HOUR = 3_600_000
const NOW = Date.parse('2024-05-06T07:08:09Z')

const record = z.object({
  _id: z.string(),
  name: z.string(),
  dexData: z.object({
    totalTrades: z.number(),
    totalMakers: z.number(),
    totalTakers: z.number(),
    totalDexs: z.number(),
    inflow: z.record(z.string(), z.number()),
    outflow: z.record(z.string(), z.number()),
    price: z.number().nullable(),
    lastUpdated: z.string(),
  }),
})
const trade = z.object({
  recordedAt: z.string(),
  transactionHash: z.string(),
  _id: z.string(),
  amount: z.number(),
  token: z.string(),
  amountUsd: z.number().nullable(),
  type: z.string(),
  price: z.number().nullable(),
})

let pipeline: ServedPipeline
const get = (path: string) => fetch(`${pipeline.url}/data/tokens/${path}`)
async function records(query: string) {
  const body: unknown = await (await get(`dex-data?${query}`)).json()
  dexDataRoute.response.parse(body)
  return z.array(record).parse(body)
}
async function trades(query: string) {
  const body: unknown = await (await get(`historic-dex-trades?${query}`)).json()
  historicDexTradesRoute.response.parse(body)
  return z.array(trade).parse(body)
}
const stored = z.object({ chain: z.string(), transaction_hash: z.string(), log_index: z.number(), at: z.string() })
const readStored = (symbol: string) =>
  pipeline.database.db.rows({
    name: 'stored',
    sql: `SELECT chain, transaction_hash, log_index, toDateTime64(traded_at, 3, 'UTC') AS at FROM dex_trades FINAL
          WHERE token = {token:UInt64} ORDER BY traded_at DESC, block_number DESC, log_index DESC`,
    params: { token: pipeline.tokenOf(symbol).key },
    schema: stored,
  })

beforeAll(async () => {
  pipeline = await createServedPipeline({ registry: loadRegistry(), now: NOW })
  await pipeline.collect(prices)
  await pipeline.collect(dexTrades)
})
afterAll(() => pipeline?.close())

describe('GET /data/tokens/dex-data', () => {
  it('lists tokens with trades by market cap, ten by default', async () => {
    const listed = await records('')
    expect(listed).toHaveLength(10)
    const tokens: unknown = await (await fetch(`${pipeline.url}/data/tokens?limit=500`)).json()
    const byMarketCap = z
      .array(z.object({ _id: z.string() }))
      .parse(tokens)
      .map(({ _id }) => _id)
    const all = (await records('limit=500')).map(({ _id }) => _id)
    expect(all.length).toBeGreaterThanOrEqual(30)
    expect(all).toEqual(byMarketCap.filter((id) => all.includes(id)))
    expect(listed.map(({ _id }) => _id)).toEqual(all.slice(0, 10))
  })

  it("returns the sums of a token's trades", async () => {
    const [found] = await records('name=Uniswap')
    const all = await trades('name=Uniswap&limit=10000')
    const sum = (type: string) => all.reduce((usd, one) => usd + (one.type === type ? (one.amountUsd ?? 0) : 0), 0)
    expect(found?._id).toBe(pipeline.tokenOf('UNI').id)
    expect(found?.dexData).toMatchObject({
      totalTrades: all.length,
      price: all[0]?.price,
      lastUpdated: '2024-05-06T07:00:00.000Z',
    })
    expect(found?.dexData.inflow.amountUsdMax).toBeCloseTo(sum('BUY'), 6)
    expect(found?.dexData.outflow.amountUsdMax).toBeCloseTo(sum('SELL'), 6)
    expect(found?.dexData.totalTakers).toBeGreaterThan(1)
  })

  it('selects by id and name, with exact names first, and returns an empty list for unknown ones', async () => {
    const uni = pipeline.tokenOf('UNI').id
    expect((await records(`id=${uni}&name=aave`)).map(({ name }) => name)).toContain('Uniswap')
    expect((await records('name=uniswap&name=a&limit=500'))[0]?.name).toBe('Uniswap')
    expect(await records(`id=${'0'.repeat(24)}`)).toEqual([])
    expect((await get('dex-data?limit=501')).status).toBe(400)
  })
})

describe('GET /data/tokens/historic-dex-trades', () => {
  it("lists a token's trades, newest first, with ids derived from their logs", async () => {
    const rows = await readStored('UNI')
    const found = await trades('name=uniswap&limit=10000')
    expect(found.map((one) => [one._id, one.transactionHash, one.recordedAt])).toEqual(
      rows.map((row) => [toId('trade', row.chain, row.transaction_hash, row.log_index), row.transaction_hash, row.at]),
    )
    expect(new Set(found.map(({ token }) => token))).toEqual(new Set([pipeline.tokenOf('UNI').id]))
    expect(await trades(`id=${pipeline.tokenOf('UNI').id}&limit=7`)).toEqual(found.slice(0, 7))
  })

  it('returns the trades of the range: start inclusive, end exclusive', async () => {
    const all = await trades('name=uniswap&limit=10000')
    const [first, third] = [all[0]?.recordedAt ?? '', all[2]?.recordedAt ?? '']
    expect(await trades(`name=uniswap&start=${third}`)).toEqual(all.filter(({ recordedAt }) => recordedAt >= third))
    const within = all.filter(({ recordedAt }) => recordedAt >= third && recordedAt < first)
    expect(await trades(`name=uniswap&start=${third}&end=${first}`)).toEqual(within)
    expect(await trades('name=uniswap&end=2024-01-01')).toEqual([])
    expect((await get('historic-dex-trades?name=uniswap&start=2024-02-01&end=2024-01-01')).status).toBe(400)
  })

  it('requires one known token and a limit within its bounds', async () => {
    expect((await get('historic-dex-trades')).status).toBe(400)
    expect((await get('historic-dex-trades?name=nobody-has-this-name')).status).toBe(404)
    expect((await get('historic-dex-trades?name=uniswap&limit=10001')).status).toBe(400)
  })

  it('returns each trade once, even if it is stored several times and not merged yet', async () => {
    const before = await trades('name=uniswap&limit=7')
    // One more record, so that no cached response is used.
    await pipeline.database.db.command({ name: 'stop', sql: 'SYSTEM STOP MERGES dex_trades' })
    const repeated = 'INSERT INTO dex_trades SELECT * FROM dex_trades FINAL WHERE token = {token:UInt64}'
    for (let copy = 0; copy < 9; copy += 1) {
      const params = { token: pipeline.tokenOf('UNI').key }
      await pipeline.database.db.command({ name: 'again', sql: repeated, params })
    }
    expect((await trades('name=uniswap&limit=8')).slice(0, 7)).toEqual(before)
    await pipeline.database.db.command({ name: 'start', sql: 'SYSTEM START MERGES dex_trades' })
  })

  it('has the age of the collection, and is never stale for a range that has ended', async () => {
    const open = await get('historic-dex-trades?name=uniswap&limit=1')
    expect(open.headers.get('x-data-as-of')).toBe('2024-05-06T07:00:00.000Z')
    expect(open.headers.get('x-data-stale')).toBeNull()
    const closed = await get('historic-dex-trades?name=uniswap&end=2024-05-05T20:00:00Z')
    expect(closed.headers.get('x-data-stale')).toBeNull()
  })
})

it('dex routes return the same bytes after ranges are collected again', async () => {
  const paths = ['dex-data?limit=500', 'historic-dex-trades?name=uniswap&limit=10000', 'historic-dex-trades?name=aave']
  const read = async () => Promise.all(paths.map(async (path) => (await get(path)).text()))
  const before = await read()
  const collectors = dexTrades.connect(pipeline.context)
  for (const [from, to] of [
    [23, 11],
    [13, 2],
    [20, 0],
  ] as const) {
    const range = { kind: 'range', from: NOW - from * HOUR, to: NOW - to * HOUR, interval: '1h' }
    await runJob(dexTrades, collectors, pipeline.context, range)
  }
  await pipeline.collect(dexTrades)
  expect(await read()).toEqual(before)
})
