import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { formatUnits } from 'viem'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { toId, toKey } from '../../shared/ids.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import { runJob } from '../../workers/run-job.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { type Chain, type ChainLog, encodeV2Swap, FACTORIES, type NodeHabits } from '../upstream/chain.ts'
import { createLoggedChain } from '../upstream/logged-chain.ts'
import { type RecordedSwap, readSwaps, toRecordedChain } from '../upstream/recorded-swaps.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR ?? resolve(import.meta.dirname, '../../../shared/data')
const recordings = join(dataDir, 'dex-swaps-uni-weth-univ2-2021')
if (!existsSync(recordings)) console.log(`recorded swaps are not tested: there are none in ${dataDir}`)

const HOUR = 3_600_000
const UNI = '0x1f9840a85d5af5bf1d1762f925bdaddc4201f984'
const WETH = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'
const ONE = 10n ** 18n

type Writable<T> = { -readonly [K in keyof T]: T[K] }

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options: Parameters<typeof createPipeline>[0]) {
  const pipeline = await createPipeline(options)
  closers.push(pipeline.close)
  const collectors = dexTrades.connect(pipeline.context)
  const ids = (symbols?: readonly string[]) =>
    symbols && pipeline.registry.tokens.filter(({ symbol }) => symbols.includes(symbol)).map(({ id }) => id)
  return {
    ...pipeline,
    runSlot: (slot = Math.floor(pipeline.clock.now / HOUR) * HOUR) =>
      runJob(dexTrades, collectors, pipeline.context, { kind: 'slot', slot }),
    runRange: (from: number, to: number, symbols?: readonly string[]) =>
      runJob(dexTrades, collectors, pipeline.context, {
        kind: 'range',
        from,
        to,
        interval: '1h',
        entities: ids(symbols),
      }),
  }
}

const storedTrade = z.object({
  token: z.number(),
  traded_at: z.string(),
  block_number: z.number(),
  transaction_hash: z.string(),
  log_index: z.number(),
  exchange: z.string(),
  taker: z.string(),
  side: z.string(),
  amount: z.number(),
  amount_usd: z.number().nullable(),
  price: z.number().nullable(),
})
const readTrades = ({ database }: Pipeline) =>
  database.db.rows({
    name: 'trades',
    sql: 'SELECT * FROM dex_trades FINAL ORDER BY traded_at, log_index, transaction_hash',
    schema: storedTrade,
  })
async function dump({ database }: Pipeline) {
  const tables = ['dex_trades', 'dex_data'].map((table) => `SELECT * FROM ${table} FINAL ORDER BY ALL`)
  const schema = z.record(z.string(), z.unknown())
  return JSON.stringify(await Promise.all(tables.map((sql) => database.db.rows({ name: 'dump', sql, schema }))))
}
const aggregates = z.object({
  total_trades: z.number(),
  makers: z.number(),
  takers: z.number(),
  dexs: z.number(),
  inflow_max: z.number(),
  outflow_max: z.number(),
})
async function readAggregates({ database }: Pipeline) {
  const [row] = await database.db.rows({ name: 'aggregates', sql: 'SELECT * FROM dex_data FINAL', schema: aggregates })
  return row
}

describe.skipIf(!existsSync(recordings))('2,000 recorded swaps of UNI and WETH', () => {
  const swaps = () => readSwaps(dataDir) ?? []
  const now = Date.parse('2021-06-22T14:00:30Z')
  const settings = { DEX_FIRST_RUN_HOURS: '240' }
  /** Side and amount of each transaction, from the other file: what its makers made of the same swaps. */
  function readSides() {
    const csv = gunzipSync(readFileSync(join(recordings, 'trades_buy_sell.csv.gz'))).toString()
    const lines = csv.trimEnd().split('\n').slice(1)
    return new Map(
      lines.map((line) => {
        const [, , side = '', , uni, , , hash] = line.split(',')
        return [hash, { side: side.toUpperCase(), amount: Number(uni) }]
      }),
    )
  }
  const relative = (value: number | undefined, expected: number) => Math.abs((value ?? Number.NaN) / expected - 1)
  const sum = (of: readonly RecordedSwap[], isBuy: boolean) =>
    of.reduce((usd, swap) => usd + (swap.uni > 0n === isBuy ? swap.usd : 0), 0)
  /** Swaps of one second have one price of ether here, although it was not quite the same for each of them. */
  function isAloneOnItsSide(swap: RecordedSwap, _: number, all: readonly RecordedSwap[]) {
    return all.every(({ at, uni }) => at !== swap.at || uni > 0n === swap.uni > 0n)
  }

  it('come out with the same sides, amounts, hashes, times and dollars', async () => {
    const run = await start({ now, dataDir, settings })
    expect(await run.runSlot()).toMatchObject({ rows: 2_000, rejected: 0 })
    const trades = new Map((await readTrades(run)).map((trade) => [trade.transaction_hash, trade]))
    const sides = readSides()
    expect(trades.size).toBe(2_000)
    for (const swap of swaps()) {
      const trade = trades.get(swap.hash)
      const told = sides.get(swap.hash)
      expect(trade).toMatchObject({ side: told?.side, log_index: swap.logIndex, block_number: swap.block })
      expect(trade?.amount).toBe(Math.abs(Number(formatUnits(swap.uni, 18))))
      // The other file has fewer digits of small amounts.
      expect(relative(trade?.amount, told?.amount ?? Number.NaN)).toBeLessThan(1e-7)
      expect(Date.parse(trade?.traded_at ?? '')).toBe(swap.at * 1000)
      expect(relative(trade?.amount_usd ?? undefined, swap.usd)).toBeLessThan(2e-3)
    }
    const count = (side: string) => [...trades.values()].filter((trade) => trade.side === side).length
    expect([count('BUY'), count('SELL')]).toEqual([849, 1_151])
    const total = await readAggregates(run)
    expect(total).toMatchObject({ total_trades: 2_000, makers: 1, takers: 2_000, dexs: 1 })
    const [bought, sold] = [sum(swaps(), true), sum(swaps(), false)]
    expect(relative((total?.inflow_max ?? 0) + (total?.outflow_max ?? 0), bought + sold)).toBeLessThan(1e-9)
    expect(relative(total?.inflow_max, bought)).toBeLessThan(1e-4)
    expect(relative(total?.outflow_max, sold)).toBeLessThan(1e-4)
  })

  it('add up to the same inflow and outflow wherever the price of their second is their own', async () => {
    const own = swaps().filter(isAloneOnItsSide)
    console.log(`${own.length} of 2,000 swaps share their second with no swap of the other side`)
    expect(own.length).toBeGreaterThan(1_800)
    const run = await start({ now, dataDir, settings, chains: { ethereum: toRecordedChain(own) } })
    await run.runSlot()
    const total = await readAggregates(run)
    expect(relative(total?.inflow_max, sum(own, true))).toBeLessThan(1e-9)
    expect(relative(total?.outflow_max, sum(own, false))).toBeLessThan(1e-9)
  })

  it('change nothing when any range is read again, in pages of any size', async () => {
    const recorded = toRecordedChain(swaps())
    const habits: Writable<NodeHabits> = {}
    const run = await start({ now, dataDir, settings, chains: { ethereum: { ...recorded, habits } } })
    await run.runSlot()
    const before = await dump(run)
    const day = Date.parse('2021-06-14T00:00:00Z')
    habits.mostLogs = 37
    await run.runRange(day, day + 24 * HOUR)
    habits.mostBlocks = 1_000
    habits.logTimes = false
    await run.runRange(day + 12 * HOUR, day + 60 * HOUR, ['UNI', 'AAVE'])
    await Promise.all([
      run.runRange(day + 190 * HOUR, day + 200 * HOUR),
      run.runSlot(),
      run.runRange(day, now, ['UNI']),
    ])
    expect(await dump(run)).toBe(before)
  })
})

const START = Date.parse('2024-05-06T00:00:00Z') / 1000
const FIRST_BLOCK = 19_800_000
const POOL = `0x${'5'.repeat(40)}`
const hashOf = (n: number) => `0x${n.toString(16).padStart(64, '0')}`

/** UNI for ether in the n-th block after the first; blocks come every 12 seconds. */
function swapAt(n: number, more: Partial<ChainLog> = {}): ChainLog {
  return {
    address: POOL,
    ...encodeV2Swap(BigInt(n) * ONE, -ONE / 100n),
    blockNumber: FIRST_BLOCK + n,
    transactionHash: hashOf(n),
    transactionIndex: 0,
    logIndex: 5,
    ...more,
  }
}
function toChain(logs: readonly ChainLog[], more: { habits?: NodeHabits; missing?: ReadonlySet<number> } = {}): Chain {
  const times = new Map([0, 1_000_000].map((n) => [FIRST_BLOCK + n, START + n * 12]))
  const pools = [{ factory: FACTORIES.uniswapV2, tokens: [UNI, WETH], fee: null, address: POOL } as const]
  return createLoggedChain({ logs, times, pools, ...more })
}
/** The clock when the n-th block is the newest. */
const nowAt = (n: number) => (START + n * 12 + 1) * 1000

describe('the trades of a chain', () => {
  it('are read up to the final block, and on from there', async () => {
    const run = await start({
      now: nowAt(1_000),
      chains: { ethereum: toChain([10, 900, 950, 1_040].map((n) => swapAt(n))) },
    })
    const blocks = async () => (await readTrades(run)).map(({ block_number }) => block_number - FIRST_BLOCK)
    await run.runSlot()
    expect(await blocks()).toEqual([10, 900])
    run.clock.now = nowAt(1_100)
    await run.runSlot()
    expect(await blocks()).toEqual([10, 900, 950])
    run.clock.now = nowAt(1_300)
    await run.runSlot()
    expect(await blocks()).toEqual([10, 900, 950, 1_040])
  })

  it('begin as far back as the setting says', async () => {
    const chain = toChain([swapAt(10), swapAt(9_300)])
    const run = await start({
      now: nowAt(10_000),
      chains: { ethereum: chain },
      settings: { DEX_FIRST_RUN_HOURS: '24' },
    })
    await run.runSlot()
    expect((await readTrades(run)).map(({ transaction_hash }) => transaction_hash)).toEqual([hashOf(9_300)])
    await run.runRange(START * 1000, START * 1000 + HOUR, ['UNI'])
    expect(await readTrades(run)).toHaveLength(2)
  })

  it('are found again where the node missed them a while ago, and never those it took back', async () => {
    const late = swapAt(880)
    let logs: ChainLog[] = [swapAt(900), swapAt(901, { removed: true })]
    const chain = {
      ...toChain([swapAt(900), swapAt(901), late]),
      logs: (from: number, to: number) => logs.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to),
    }
    const run = await start({ now: nowAt(1_000), chains: { ethereum: chain } })
    await run.runSlot()
    logs = [...logs, late]
    run.clock.now = nowAt(1_005)
    await run.runSlot()
    expect((await readTrades(run)).map(({ transaction_hash }) => transaction_hash)).toEqual([hashOf(880), hashOf(900)])
  })

  it("have their blocks' times where the logs do not tell them", async () => {
    const logs = [swapAt(10), swapAt(900)]
    const told = await start({ now: nowAt(1_000), chains: { ethereum: toChain(logs) } })
    const untold = await start({
      now: nowAt(1_000),
      chains: { ethereum: toChain(logs, { habits: { logTimes: false, finalizedTag: false } }) },
    })
    await Promise.all([told.runSlot(), untold.runSlot()])
    expect(await readTrades(untold)).toEqual(await readTrades(told))
    expect((await readTrades(told)).map(({ traded_at }) => Date.parse(traded_at) / 1000 - START)).toEqual([120, 10_800])
  })

  it('wait where the node lacks a block, and nothing is skipped', async () => {
    const missing = new Set([FIRST_BLOCK + 10])
    const chain = toChain([swapAt(10), swapAt(900)], { missing, habits: { logTimes: false } })
    const run = await start({ now: nowAt(1_000), chains: { ethereum: chain } })
    await expect(run.runSlot()).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await readTrades(run)).toEqual([])
    missing.clear()
    await run.runSlot()
    expect(await readTrades(run)).toHaveLength(2)
  })

  it('are one for each swap of a transaction, with its sender and the price of that time', async () => {
    const both = [swapAt(10), swapAt(10, { logIndex: 9, ...encodeV2Swap(-3n * ONE, ONE / 50n) })]
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain(both) } })
    expect(await run.runSlot()).toMatchObject({ rows: 2, rejected: 0 })
    const trades = await readTrades(run)
    expect(trades).toMatchObject([
      { side: 'BUY', amount: 10, log_index: 5 },
      { side: 'SELL', amount: 3, log_index: 9 },
    ])
    const [bought, sold] = trades
    expect((sold?.amount_usd ?? 0) / (bought?.amount_usd ?? 1)).toBeCloseTo(2, 12)
    expect(bought?.taker).toMatch(/^0x[0-9a-f]{40}$/)
    expect(bought?.token).toBe(toKey(toId('token', 'ethereum', UNI)))
    const id = z.object({ id: z.string() })
    const sql = `SELECT substring(lower(hex(SHA256(concat('trade', '\\x1f', chain, '\\x1f', transaction_hash, '\\x1f', toString(log_index))))), 1, 24) AS id FROM dex_trades FINAL ORDER BY log_index`
    const ids = await run.database.db.rows({ name: 'ids', sql, schema: id })
    expect(ids.map((row) => row.id)).toEqual([5, 9].map((index) => toId('trade', 'ethereum', hashOf(10), index)))
  })

  it('have no dollars while nobody tells the price of ether, and the job waits where its teller is away', async () => {
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain([swapAt(10)]) } })
    run.upstream.faults.set('defillama-coins', { kind: 'status', status: 503 })
    await expect(run.runSlot()).rejects.toMatchObject({ code: 'provider_unavailable' })
    run.upstream.faults.clear()
    run.upstream.faults.set('defillama-coins', { kind: 'empty' })
    await run.runSlot()
    expect(await readTrades(run)).toMatchObject([{ amount_usd: null, price: null }])
  })

  it('of a node that fails are read from where they stopped, in the next run', async () => {
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain([swapAt(10), swapAt(1_100)]) } })
    await run.runSlot()
    run.upstream.faults.set('rpc', { kind: 'status', status: 500 })
    run.clock.now = nowAt(1_200)
    await expect(run.runSlot()).rejects.toMatchObject({ code: 'provider_unavailable' })
    run.upstream.faults.clear()
    run.clock.now = nowAt(1_500)
    await run.runSlot()
    expect(await readTrades(run)).toHaveLength(2)
  })
})

describe('a simulated day', () => {
  it('has trades of many tokens, and its pools are looked up once a day', async () => {
    const run = await start({ now: Date.parse('2024-05-06T07:08:09Z') })
    const report = await run.runSlot()
    const sql =
      'SELECT uniqExact(token) AS tokens, uniqExact(exchange) AS dexs, countIf(amount_usd IS NULL) AS unknown FROM dex_trades FINAL'
    const schema = z.object({ tokens: z.number(), dexs: z.number(), unknown: z.number() })
    const [counts] = await run.database.db.rows({ name: 'counts', sql, schema })
    console.log(`${report.rows} trades of ${counts?.tokens} tokens`)
    expect(counts?.tokens).toBeGreaterThanOrEqual(30)
    expect(counts).toMatchObject({ dexs: 3, unknown: 0 })
    const before = await dump(run)
    run.upstream.requests.clear()
    await run.runSlot()
    expect(await dump(run)).toBe(before)
    expect(run.upstream.requests.count('rpc')).toBeLessThan(10)
  })
})

describe('a chain without a node', () => {
  const swap = (hash: string, type: string, pair: string, bought: object, sold: object) => ({
    transactionHash: hash,
    transactionType: type,
    blockTimestamp: '2024-05-06T01:00:00.000Z',
    blockNumber: 19_800_300,
    walletAddress: '0xABCDEFabcdefABCDEFabcdefABCDEFabcdefABCD',
    pairAddress: pair,
    exchangeName: 'Uniswap v2',
    bought,
    sold,
    totalValueUsd: 30,
  })
  const uni = { address: UNI, amount: '3', usdAmount: 30 }
  const weth = { address: WETH, amount: '0.01', usdAmount: 30 }
  const pages = [
    [swap(hashOf(1), 'buy', POOL, uni, weth), swap(hashOf(2), 'buy', POOL, uni, weth)],
    [swap(hashOf(2), 'sell', POOL, weth, { ...uni, amount: '-6' }), swap(hashOf(2), 'buy', POOL, uni, weth)],
  ]

  it('has its trades from Moralis, page by page, each once', async () => {
    const server = await startProviderServer((request, response, url) => {
      const page = Number(url.searchParams.get('cursor') ?? '0')
      const isUni = url.pathname === `/erc20/${UNI}/swaps`
      const cursor = isUni && page === 0 ? '1' : null
      expect(request.headers['x-api-key']).toBe('key')
      sendJson(response, { cursor, result: isUni ? pages[page] : [] })
    })
    closers.push(server.close)
    const settings = {
      RPC_URLS: '',
      MORALIS_BASE_URL: server.baseUrl,
      MORALIS_API_KEY: 'key',
      MORALIS_REQUESTS_PER_MINUTE: '60000',
    }
    const run = await start({ now: Date.parse('2024-05-06T02:03:04Z'), settings })
    expect(await run.runSlot()).toMatchObject({ providers: ['moralis-swaps'], rejected: 0 })
    const before = await dump(run)
    expect(
      (await readTrades(run)).map(({ side, amount, amount_usd, price, exchange, taker }) => [
        side,
        amount,
        amount_usd,
        price,
        exchange,
        taker,
      ]),
    ).toEqual([
      ['BUY', 3, 30, 10, 'uniswap-v2', '0xabcdefabcdefabcdefabcdefabcdefabcdefabcd'],
      ['BUY', 3, 30, 10, 'uniswap-v2', '0xabcdefabcdefabcdefabcdefabcdefabcdefabcd'],
      ['SELL', 6, 30, 5, 'uniswap-v2', '0xabcdefabcdefabcdefabcdefabcdefabcdefabcd'],
    ])
    await run.runRange(Date.parse('2024-05-06T00:00:00Z'), Date.parse('2024-05-06T02:00:00Z'), ['UNI'])
    expect(await dump(run)).toBe(before)
  })

  it('is named together with the key that is missing', async () => {
    const run = await start({ settings: { RPC_URLS: '', MORALIS_API_KEY: '' } })
    const error = await run.runSlot().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(DataError)
    expect(error).toMatchObject({
      code: 'provider_rejected',
      message: expect.stringMatching(/MORALIS_API_KEY.*RPC_URLS.*ethereum/),
    })
  })

  it('is the only one that Moralis is asked for', async () => {
    const asked: string[] = []
    const server = await startProviderServer((_, response, url) => {
      asked.push(url.searchParams.get('chain') ?? '')
      sendJson(response, { cursor: null, result: [] })
    })
    closers.push(server.close)
    const settings = { MORALIS_BASE_URL: server.baseUrl, MORALIS_API_KEY: 'key', MORALIS_REQUESTS_PER_MINUTE: '60000' }
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain([swapAt(10)]) }, settings })
    await run.runSlot()
    expect(await readTrades(run)).toHaveLength(1)
    expect(asked.length).toBeGreaterThan(0)
    expect(asked).not.toContain('eth')
    await run.runRange(START * 1000, START * 1000 + HOUR)
    expect(asked).not.toContain('eth')
  })
})
