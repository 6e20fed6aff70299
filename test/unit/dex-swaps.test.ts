import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DEX_CHAINS, type QuoteToken } from '../../workers/providers/evm/dex/exchanges.ts'
import type { Pool } from '../../workers/providers/evm/dex/pools.ts'
import { decodeSwap, type SkipCounts, SWAP_TOPICS, toSwaps } from '../../workers/providers/evm/dex/swaps.ts'
import { type TradeFacts, toTrades } from '../../workers/providers/evm/dex/trade-rows.ts'
import type { RpcLog } from '../../workers/providers/evm/logs/node.ts'
import { toTestToken } from '../samples.ts'

const dir = process.env.UPSTREAM_DATA_DIR ?? resolve(import.meta.dirname, '../../../shared/data')
const file = join(dir, 'fixtures-ethereum-logs-rotki', 'swap_logs.jsonl')
if (!existsSync(file)) console.log(`recorded swap logs are not tested: there are none in ${dir}`)

const V2 = '0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822'
const V3 = '0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67'
const SOMEONE = `0x${'0'.repeat(24)}${'ab'.repeat(20)}`
const ONE = 10n ** 18n

const word = (value: bigint) => BigInt.asUintN(256, value).toString(16).padStart(64, '0')
const data = (...words: bigint[]) => `0x${words.map(word).join('')}`

describe('decodeSwap', () => {
  it('SWAP_TOPICS contains the topics of V2 and V3', () => {
    expect(SWAP_TOPICS).toEqual([V2, V3])
  })

  it('decodes the input and output of V2', () => {
    const bought = { topics: [V2, SOMEONE, SOMEONE], data: data(0n, ONE, 300n * ONE, 0n) }
    expect(bought.data).toContain('0000de0b6b3a7640000')
    expect(decodeSwap(bought)).toEqual({ net0: 300n * ONE, net1: -ONE })
  })

  it("decodes the pool changes of V3, the opposite of the trader's", () => {
    const bought = { topics: [V3, SOMEONE, SOMEONE], data: data(-300n * ONE, ONE, 2n ** 96n, 5n, -57_000n) }
    expect(decodeSwap(bought)).toEqual({ net0: 300n * ONE, net1: -ONE })
  })

  it('returns undefined for a malformed log', () => {
    const full = data(0n, ONE, 300n * ONE, 0n)
    expect(decodeSwap({ topics: [V2, SOMEONE, SOMEONE], data: full.slice(0, -2) })).toBeUndefined()
    expect(decodeSwap({ topics: [V2, SOMEONE, SOMEONE], data: '0x' })).toBeUndefined()
    expect(decodeSwap({ topics: [V2, SOMEONE], data: full })).toBeUndefined()
    expect(decodeSwap({ topics: [V2.replace('d', 'e'), SOMEONE, SOMEONE], data: full })).toBeUndefined()
    expect(decodeSwap({ topics: [], data: full })).toBeUndefined()
  })
})

const recorded = z.object({
  chain: z.string(),
  address: z.string(),
  topics: z.array(z.string()),
  data: z.string(),
  blockNumber: z.string().transform(Number),
  transactionHash: z.string(),
  logIndex: z.string().transform(Number),
})

describe.skipIf(!existsSync(file))('decodeSwap with 342 recorded logs of nine chains', () => {
  const read = () =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => recorded.parse(JSON.parse(line)))
  /** Reads the data as signed words, as an independent way to the amounts. */
  const wordsOf = (text: string) =>
    (text.slice(2).match(/.{64}/g) ?? []).map((hex) => BigInt.asIntN(256, BigInt(`0x${hex}`)))

  it('decodes all logs to the amounts in their data', () => {
    const logs = read()
    const byEvent = new Map<string, number>()
    for (const log of logs) {
      const [w0 = 0n, w1 = 0n, w2 = 0n, w3 = 0n] = wordsOf(log.data)
      const isV2 = log.topics[0] === V2
      const expected = isV2 ? { net0: w2 - w0, net1: w3 - w1 } : { net0: -w0, net1: -w1 }
      expect(decodeSwap(log)).toEqual(expected)
      byEvent.set(isV2 ? 'v2' : 'v3', (byEvent.get(isV2 ? 'v2' : 'v3') ?? 0) + 1)
    }
    expect(logs).toHaveLength(342)
    expect(Object.fromEntries(byEvent)).toEqual({ v2: 109, v3: 233 })
  })

  it('finds opposite signs of the two amounts in all logs', () => {
    const nets = read().map((log) => decodeSwap(log))
    expect(nets.filter((net) => net !== undefined && net.net0 * net.net1 < 0n)).toHaveLength(342)
  })

  it('toSwaps() counts skipped logs by reason', () => {
    const logs = read()
      .filter(({ chain }) => chain === '1')
      .map((log): RpcLog => ({ ...log, blockTimestamp: undefined, removed: false }))
    const pools = new Map(logs.slice(0, 1).map(({ address }) => [address, {}]))
    const values = logs.filter(({ address }) => pools.has(address))
    const [first] = values
    if (first === undefined) throw new Error('no log')
    const more = [
      { ...first, removed: true },
      { ...first, topics: first.topics.slice(0, 1), data: '0x' },
      { ...first, data: first.data.slice(0, -64) },
    ]
    const { swaps, gaps, skipped } = toSwaps([...logs, ...more], pools)
    expect(swaps.map(({ log }) => log)).toEqual(values)
    expect(Object.fromEntries(skipped)).toEqual({
      'unknown pool': logs.length - values.length,
      removed: 1,
    })
    // A truncated log may be complete in the next response.
    expect(gaps).toMatchObject([
      { log: { logIndex: first.logIndex }, reason: { message: expect.stringContaining('has 1 topics') } },
      { log: { logIndex: first.logIndex }, reason: { code: 'provider_malformed' } },
    ])
  })
})

describe('toTrades', () => {
  const weth = DEX_CHAINS.ethereum?.quotes[0] as QuoteToken
  const usdc = DEX_CHAINS.ethereum?.quotes[1] as QuoteToken
  const low = { ...toTestToken(1, {}), contractAddress: `0x${'1'.repeat(40)}` }
  const high = { ...toTestToken(2, {}), contractAddress: `0x${'f'.repeat(40)}`, decimals: 8 }
  const poolOf = (token: string, quote: string): Pool => ({
    address: `0x${'9'.repeat(40)}`,
    exchange: 'uniswap-v2',
    token,
    quote,
  })
  function trades(pool: Pool, net0: bigint, net1: bigint, more: Partial<TradeFacts> = {}) {
    const skipped: SkipCounts = new Map()
    const log: RpcLog = {
      address: pool.address,
      topics: [],
      data: '0x',
      blockNumber: 100,
      transactionHash: '0xaa',
      logIndex: 7,
      blockTimestamp: undefined,
      removed: false,
    }
    const facts: TradeFacts = {
      chain: 'ethereum',
      tokens: new Map([low, high].map((token) => [token.contractAddress, token])),
      quotes: new Map([weth, usdc].map((quote) => [quote.address, quote])),
      pools: new Map([[pool.address, pool]]),
      timeOf: () => 1_700_000_000,
      senderOf: () => '0xsender',
      usdAt: ({ usd }) => (usd === 'dollar' ? 1 : 2_000),
      ...more,
    }
    return { rows: toTrades([{ log, net0, net1 }], facts, skipped), skipped }
  }

  it('takes side and amount from the token and dollars from the quote, in both orders', () => {
    const bought = trades(poolOf(low.contractAddress, weth.address), 300n * ONE, -ONE)
    expect(bought.rows).toEqual([
      {
        token: low.key,
        traded_at: '2023-11-14T22:13:20.000Z',
        chain: 'ethereum',
        block_number: 100,
        transaction_hash: '0xaa',
        log_index: 7,
        pool: `0x${'9'.repeat(40)}`,
        exchange: 'uniswap-v2',
        taker: '0xsender',
        side: 'BUY',
        amount: 300,
        amount_usd: 2_000,
        price: 2_000 / 300,
      },
    ])
    const sold = trades(poolOf(high.contractAddress, usdc.address), 12_500_000n, -4_00000000n)
    expect(sold.rows).toMatchObject([{ token: high.key, side: 'SELL', amount: 4, amount_usd: 12.5, price: 3.125 }])
  })

  it('keeps the full precision of a number', () => {
    const net = 123_456_789_012_345_678_901_234_567n
    const { rows } = trades(poolOf(low.contractAddress, usdc.address), net, -1_234_567n)
    expect(rows).toMatchObject([{ amount: Number('123456789.012345678901234567'), amount_usd: 1.234567 }])
  })

  it('returns two trades if both tokens are collected', () => {
    const quote: QuoteToken = { symbol: 'HIGH', address: high.contractAddress, decimals: 8, usd: 'dollar' }
    const quotes = new Map([[quote.address, quote]])
    const { rows } = trades(poolOf(low.contractAddress, high.contractAddress), 2n * ONE, -6_00000000n, { quotes })
    expect(rows).toMatchObject([
      { token: low.key, side: 'BUY', amount: 2, amount_usd: 6, price: 3 },
      { token: high.key, side: 'SELL', amount: 6, amount_usd: 6, price: 1 },
    ])
  })

  it('returns null dollars if the price is unknown or the amounts do not have opposite signs', () => {
    const pool = poolOf(low.contractAddress, weth.address)
    const unknown = { amount_usd: null, price: null }
    expect(trades(pool, ONE, -ONE, { usdAt: () => undefined }).rows).toMatchObject([unknown])
    expect(trades(pool, ONE, ONE).rows).toMatchObject([unknown])
    expect(trades(pool, ONE, 0n).rows).toMatchObject([{ side: 'BUY', amount: 1, ...unknown }])
  })

  it('returns no trade and counts it if the token amount is zero', () => {
    const { rows, skipped } = trades(poolOf(low.contractAddress, weth.address), 0n, ONE)
    expect(rows).toEqual([])
    expect(Object.fromEntries(skipped)).toEqual({ 'zero amount': 1 })
  })
})
