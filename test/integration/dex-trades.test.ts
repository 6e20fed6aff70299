import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toId, toKey } from '../../shared/ids.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createDexPipeline, dump, readAggregates, readTrades } from '../support/dex-pipeline.ts'
import type { PipelineOptions } from '../support/pipeline.ts'
import { type ChainLog, encodeV2Swap, encodeV3Swap } from '../upstream/chain.ts'
import { FIRST_BLOCK, hashOf, nowAt, ONE, START, swapAt, toChain, UNI } from '../upstream/small-chain.ts'

const HOUR = 3_600_000

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options?: PipelineOptions) {
  const run = await createDexPipeline(options)
  closers.push(run.close)
  return run
}

describe('trades of a chain', () => {
  it('are read up to the final block, and from there in the next run', async () => {
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

  it.each([
    ['alchemy', 10],
    ['infura', 100],
    ['quicknode', 5],
    ['drpc', 100],
  ] as const)('are read from %s in pages of %i blocks, the limit in its first error', async (host, mostBlocks) => {
    const chain = toChain([swapAt(10), swapAt(900)], { habits: { host, mostBlocks } })
    const requests: number[] = []
    const logs = (from: number, to: number, addresses: ReadonlySet<string>) => {
      requests.push(to - from + 1)
      return chain.logs(from, to, addresses)
    }
    const run = await start({ now: nowAt(1_000), chains: { ethereum: { ...chain, logs } } })
    await run.runSlot()
    expect(await readTrades(run)).toHaveLength(2)
    expect(Math.max(...requests)).toBe(mostBlocks)
    // Only the last page of a reading is smaller.
    expect(requests.filter((width) => width < mostBlocks).length).toBeLessThan(requests.length / 10 + 3)
  })

  it('start at the configured number of hours', async () => {
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

  it('include logs that the node missed before, but not removed ones', async () => {
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

  it('have the times of their blocks if logs have none', async () => {
    const logs = [swapAt(10), swapAt(900)]
    const observed = await start({ now: nowAt(1_000), chains: { ethereum: toChain(logs) } })
    const withoutAnswer = await start({
      now: nowAt(1_000),
      chains: { ethereum: toChain(logs, { habits: { logTimes: false, finalizedTag: false } }) },
    })
    await Promise.all([observed.runSlot(), withoutAnswer.runSlot()])
    expect(await readTrades(withoutAnswer)).toEqual(await readTrades(observed))
    expect((await readTrades(observed)).map(({ traded_at }) => Date.parse(traded_at) / 1000 - START)).toEqual([
      120, 10_800,
    ])
  })

  it('wait for a block that the node lacks, and skip none', async () => {
    const missing = new Set([FIRST_BLOCK + 10])
    const chain = toChain([swapAt(10), swapAt(900)], { missing, habits: { logTimes: false } })
    const run = await start({ now: nowAt(1_000), chains: { ethereum: chain } })
    await expect(run.runSlot()).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await readTrades(run)).toMatchObject([{ transaction_hash: hashOf(900) }])
    missing.clear()
    await run.runSlot()
    expect(await readTrades(run)).toHaveLength(2)
  })

  it('are stored once per swap of a transaction, with its sender and the price at that time', async () => {
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

  it('have null dollars without an ether price, and the job fails if the price provider is unavailable', async () => {
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain([swapAt(10)]) } })
    run.upstream.faults.set('defillama-coins', { kind: 'status', status: 503 })
    await expect(run.runSlot()).rejects.toMatchObject({ code: 'provider_unavailable' })
    run.upstream.faults.clear()
    run.upstream.faults.set('defillama-coins', { kind: 'empty' })
    await run.runSlot()
    expect(await readTrades(run)).toMatchObject([{ amount_usd: null, price: null }])
  })

  it('are valued by the reference pool at their logs, even without a price chart', async () => {
    const ether = (n: number, logIndex: number, dollars: number) =>
      swapAt(n, {
        address: '0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640',
        ...encodeV3Swap(BigInt(dollars) * 1_000_000n, -ONE),
        transactionHash: hashOf(100_000 + logIndex),
        logIndex,
      })
    const logs = [ether(10, 1, 3_000), swapAt(10), ether(10, 7, 3_100), swapAt(10, { logIndex: 9 })]
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain([...logs, swapAt(30)]) } })
    run.upstream.faults.set('defillama-coins', { kind: 'status', status: 503 })
    await run.runSlot()
    const dollars = async () => (await readTrades(run)).map(({ amount_usd }) => Number((amount_usd ?? 0).toFixed(9)))
    expect(await dollars()).toEqual([30, 31, 31])
    const before = await dump(run)
    run.upstream.faults.clear()
    await run.runRange((START + 30 * 12) * 1000, nowAt(500), ['UNI'])
    await run.runRange(START * 1000, nowAt(500))
    expect(await dump(run)).toBe(before)
  })

  it('are valued by the price chart if the reference pool had no trade for five minutes', async () => {
    const plain = await start({ now: nowAt(1_000), chains: { ethereum: toChain([swapAt(40)]) } })
    const more = {
      address: '0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640',
      ...encodeV3Swap(1_000_000n, -ONE),
      logIndex: 1,
    }
    const logs = [swapAt(14, more), swapAt(40), swapAt(39, { logIndex: 4 })]
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain(logs) } })
    await Promise.all([plain.runSlot(), run.runSlot()])
    const [byChart] = await readTrades(plain)
    const [byPool, old] = await readTrades(run)
    expect(byPool?.amount_usd).toBeCloseTo(0.01, 9)
    expect(old).toEqual(byChart)
    expect(old?.amount_usd).toBeGreaterThan(1)
  })

  it('leave their windows after a period without trades only if it was read', async () => {
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain([swapAt(10), swapAt(20)]) } })
    await run.runSlot()
    const before = await readAggregates(run)
    expect(before?.as_of).toBe('2024-05-06T03:00:00.000Z')
    expect(before?.inflow_24h).toBeGreaterThan(0)
    run.clock.now += 25 * HOUR
    run.upstream.faults.set('rpc', { kind: 'status', status: 500 })
    await expect(run.runSlot()).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await readAggregates(run)).toEqual(before)
    run.upstream.faults.clear()
    expect(await run.runSlot()).toMatchObject({ rows: 0 })
    const after = { ...before, inflow_24h: 0, as_of: '2024-05-07T04:00:00.000Z' }
    expect(await readAggregates(run)).toEqual(after)
    await run.runRange(START * 1000, nowAt(500))
    expect(await readAggregates(run)).toEqual(after)
  })

  it('stay in their windows while the node lags behind', async () => {
    const chain = toChain([swapAt(10)])
    let head = Number.POSITIVE_INFINITY
    const lagging = { ...chain, headAt: (now: number) => Math.min(head, chain.headAt(now)) }
    const run = await start({ now: nowAt(1_000), chains: { ethereum: lagging } })
    await run.runSlot()
    const before = await readAggregates(run)
    head = FIRST_BLOCK + 1_000
    run.clock.now += 25 * HOUR
    await expect(run.runSlot()).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await readAggregates(run)).toEqual(before)
  })

  it('are not covered beyond a lagging node for a range, and are read when it catches up', async () => {
    const chain = toChain([swapAt(10), swapAt(7_500)])
    let head = FIRST_BLOCK + 1_000
    const lagging = { ...chain, headAt: (now: number) => Math.min(head, chain.headAt(now)) }
    const run = await start({ now: nowAt(25 * 300 + 310), chains: { ethereum: lagging } })
    // Like a back-fill, up to the end of the hour.
    const range = [START * 1000, START * 1000 + 27 * HOUR] as const
    const blocks = async () => (await readTrades(run)).map(({ block_number }) => block_number - FIRST_BLOCK)
    const sql = "SELECT count() AS reports FROM coverage WHERE dataset = 'dex-trades'"
    const schema = z.object({ reports: z.number() })
    const covered = async () => (await run.database.db.rows({ name: 'covered', sql, schema }))[0]?.reports
    const lags = {
      code: 'provider_unavailable',
      message: expect.stringContaining('rpc-ethereum: the node lags behind'),
    }
    await expect(run.runRange(...range, ['UNI'])).rejects.toMatchObject(lags)
    await expect(run.runRange(range[0] + 12 * HOUR, range[1], ['UNI'])).rejects.toMatchObject(lags)
    expect(await blocks()).toEqual([10])
    expect(await covered()).toBe(0)
    await run.runRange(range[0], range[0] + 3 * HOUR, ['UNI'])
    expect(await covered()).toBe(1)
    head = Number.POSITIVE_INFINITY
    await run.runRange(...range, ['UNI'])
    expect(await blocks()).toEqual([10, 7_500])
  })

  it('continue after a node failure where they stopped, in the next run', async () => {
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

describe('simulated day of trades', () => {
  it('includes many tokens, and looks up pools once a day', async () => {
    const run = await start({ registry: loadRegistry(), now: Date.parse('2024-05-06T07:08:09Z') })
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
