import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toId, toKey } from '../../shared/ids.ts'
import prices from '../../workers/jobs/prices.ts'
import { MORALIS_CHAINS } from '../../workers/providers/moralis/client.ts'
import { runJob } from '../../workers/run/runner.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { createDexPipeline, dump, readAggregates, readTrades } from '../support/dex-pipeline.ts'
import type { PipelineOptions } from '../support/pipeline.ts'
import { hashOf, nowAt, POOL, START, swapAt, toChain, UNI, WETH } from '../upstream/small-chain.ts'

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

describe('trades of a chain without a node', () => {
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

  it('are read from Moralis page by page, each once', async () => {
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

  it('match those of a node for the same chain', async () => {
    const now = Date.parse('2024-05-06T07:08:09Z')
    const [byNode, byMoralis] = [await start({ now }), await start({ now, settings: { RPC_URLS: '' } })]
    expect(await byNode.runSlot()).toMatchObject({ providers: ['ethereum', 'moralis-swaps'] })
    expect(await byMoralis.runSlot()).toMatchObject({ providers: ['moralis-swaps'], rejected: 0 })
    const expected = await readTrades(byNode)
    const newest = expected.at(-1)?.traded_at ?? ''
    const facts = (trades: typeof expected) =>
      trades
        .filter(({ traded_at }) => traded_at <= newest)
        .map(({ log_index, amount_usd, price, ...rest }) => rest)
        .sort((a, b) => (a.transaction_hash + a.token < b.transaction_hash + b.token ? -1 : 1))
    const found = await readTrades(byMoralis)
    console.log(`${expected.length} trades of a day by the node, ${found.length} by Moralis`)
    expect(facts(found)).toEqual(facts(expected))
    const dollars = new Map(expected.map((trade) => [trade.transaction_hash + trade.token, trade.amount_usd ?? 0]))
    for (const { transaction_hash, token, amount_usd, traded_at } of found) {
      const same = dollars.get(transaction_hash + token)
      // Here a dollar token has its own price, while trades read from the node value it at one dollar; and DefiLlama's prices
      // are some minutes old.
      if (traded_at <= newest) expect(Math.abs((amount_usd ?? 0) / (same ?? 0) - 1)).toBeLessThan(1e-2)
    }
    const before = await dump(byMoralis)
    await byMoralis.runSlot()
    await byMoralis.runRange(now - 20 * HOUR, now - 3 * HOUR)
    expect(await dump(byMoralis)).toBe(before)
  })

  describe('Moralis reading that fails after some pages', () => {
    const [from, to] = [Date.parse('2024-05-06T00:00:00Z'), Date.parse('2024-05-06T02:00:00Z')]
    const at = (minute: number) => new Date(from + minute * 60_000).toISOString()
    // The second page ends within a block.
    const minutes = [10, 20, 30, 40, 40, 50]
    const swaps = minutes.map((minute, n) => ({
      ...swap(hashOf(n), 'buy', POOL, uni, weth),
      blockTimestamp: at(minute),
    }))

    /** Pages of two swaps; the third one fails while `down` is set. */
    async function startCut() {
      const stub = { down: true, bought: [] as string[] }
      const server = await startProviderServer((_, response, url) => {
        if (url.pathname !== `/erc20/${UNI}/swaps`) return sendJson(response, { cursor: null, result: [] })
        const { fromDate = '', toDate = '~', cursor = '0' } = Object.fromEntries(url.searchParams)
        if (stub.down && cursor === '4') return sendJson(response, { message: 'down' }, 503)
        stub.bought.push(`${fromDate} ${cursor}`)
        const all = swaps.filter(({ blockTimestamp }) => blockTimestamp >= fromDate && blockTimestamp <= toDate)
        const end = Number(cursor) + 2
        sendJson(response, { cursor: end < all.length ? String(end) : null, result: all.slice(Number(cursor), end) })
      })
      closers.push(server.close)
      const settings = { RPC_URLS: '', MORALIS_BASE_URL: server.baseUrl, MORALIS_REQUESTS_PER_MINUTE: '60000' }
      return { stub, run: await start({ now: to + 3 * 60_000, settings }) }
    }
    const toTimes = async (run: Parameters<typeof readTrades>[0]) =>
      (await readTrades(run)).map(({ traded_at }) => traded_at)
    const readNotes = ({ database }: Parameters<typeof readTrades>[0]) =>
      database.db.rows({
        name: 'notes',
        sql: "SELECT value FROM job_state FINAL WHERE name LIKE 'moralis.%.%' AND name NOT LIKE '%allowance%' AND name NOT LIKE '%.failed.%'",
        schema: z.object({ value: z.string() }),
      })

    it('stores the complete blocks of a range, and buys no page twice', async () => {
      const { stub, run } = await startCut()
      await expect(run.runRange(from, to, ['UNI'])).rejects.toMatchObject({ code: 'provider_unavailable' })
      expect(await toTimes(run)).toEqual([10, 20, 30].map(at))
      stub.down = false
      expect(await run.runRange(from, to, ['UNI'])).toMatchObject({ rows: 3, uncovered: 0 })
      expect(await toTimes(run)).toEqual(minutes.map(at))
      expect(stub.bought).toEqual([`${at(0)} 0`, `${at(0)} 2`, `${at(40)} 0`, `${at(40)} 2`])
      expect(await readNotes(run)).toEqual([{ value: '' }])
    })

    it('stores the complete blocks of a slot, and the next attempt continues after them', async () => {
      const { stub, run } = await startCut()
      const [uni] = run.registry.tokens.filter(({ symbol }) => symbol === 'UNI')
      await expect(run.runSlot(to)).rejects.toMatchObject({ code: 'provider_unavailable', entities: [uni?.id] })
      expect(await toTimes(run)).toEqual([10, 20, 30].map(at))
      stub.down = false
      await run.runSlot(to)
      expect(await toTimes(run)).toEqual(minutes.map(at))
      expect(stub.bought.slice(2)).toEqual([`${at(40)} 0`, `${at(40)} 2`])
    })
  })

  it('stores null dollars for a trade that the provider values at 0', async () => {
    const server = await startProviderServer((_, response, url) => {
      const result = [{ ...swap(hashOf(1), 'buy', POOL, uni, weth), totalValueUsd: 0 }]
      sendJson(response, { cursor: null, result: url.pathname === `/erc20/${UNI}/swaps` ? result : [] })
    })
    closers.push(server.close)
    const settings = { RPC_URLS: '', MORALIS_BASE_URL: server.baseUrl }
    const run = await start({ now: Date.parse('2024-05-06T02:03:04Z'), settings })
    await run.runSlot()
    expect(await readTrades(run)).toMatchObject([{ side: 'BUY', amount: 3, amount_usd: null, price: null }])
  })

  it('moves the windows of tokens that were read, with or without trades, and of no others', async () => {
    const aave = '0x7fc66500c84a76ad7e9c93437bfc5ac33e2ddae9'
    let down: string | undefined
    const server = await startProviderServer((_, response, url) => {
      const token = url.pathname.split('/')[2] ?? ''
      if (token === down) return sendJson(response, { message: 'down' }, 500)
      const own = { address: token, amount: '3', usdAmount: 30 }
      const trades = [UNI, aave].includes(token) ? [swap(hashOf(token.length), 'buy', POOL, own, weth)] : []
      const isRequested = String(url.searchParams.get('fromDate')) < '2024-05-06T01:00:00.000Z'
      sendJson(response, { cursor: null, result: isRequested ? trades : [] })
    })
    closers.push(server.close)
    const settings = { RPC_URLS: '', MORALIS_BASE_URL: server.baseUrl }
    const run = await start({ now: Date.parse('2024-05-06T02:03:04Z'), settings })
    const keyOf = (address: string) => toKey(toId('token', 'ethereum', address))
    const asOf = async (address: string) => (await readAggregates(run, keyOf(address)))?.as_of
    await run.runSlot()
    expect([await asOf(UNI), await asOf(aave)]).toEqual(['2024-05-06T02:00:00.000Z', '2024-05-06T02:00:00.000Z'])
    down = aave
    run.clock.now += 25 * HOUR
    // Its windows stay where they are, and only this token is requested again.
    const aaveId = run.registry.tokenByKey.get(keyOf(aave))?.id
    await expect(run.runSlot()).rejects.toMatchObject({ code: 'provider_unavailable', entities: [aaveId] })
    expect([await asOf(UNI), await asOf(aave)]).toEqual(['2024-05-07T03:00:00.000Z', '2024-05-06T02:00:00.000Z'])
    expect(await readAggregates(run, keyOf(UNI))).toMatchObject({ inflow_24h: 0, inflow_max: 30 })
    expect(await readAggregates(run, keyOf(aave))).toMatchObject({ inflow_24h: 30, inflow_max: 30 })
    down = undefined
    run.clock.now += HOUR
    await run.runSlot()
    expect(await readAggregates(run, keyOf(aave))).toMatchObject({ inflow_24h: 0, as_of: '2024-05-07T04:00:00.000Z' })
  })

  it('reads the largest tokens within the budget, and records the reason for the others', async () => {
    // The hourly budget leaves two calls for trades.
    const settings = { RPC_URLS: '', MORALIS_UNITS_PER_DAY: '8000' }
    const run = await start({ now: Date.parse('2024-05-06T02:03:04Z'), settings })
    await runJob(prices, prices.connect(run.context), run.context, {
      kind: 'slot',
      slot: Date.parse('2024-05-06T02:00:00Z'),
    })
    const sql = 'SELECT token FROM token_prices FINAL ORDER BY market_cap DESC'
    const ranked = await run.database.db.rows({ name: 'ranked', sql, schema: z.object({ token: z.number() }) })
    const { tokenByKey } = run.registry
    const largest = ranked
      .flatMap(({ token }) => tokenByKey.get(token) ?? [])
      .filter(({ chain }) => chain in MORALIS_CHAINS)
    await run.runSlot()
    const requests = run.upstream.requests.all().filter(({ provider }) => provider === 'moralis')
    expect(requests).toHaveLength(2)
    const expected = largest.slice(0, 2).map(({ contractAddress }) => `/api/v2.2/erc20/${contractAddress}/swaps`)
    expect(requests.map(({ path }) => path).sort()).toEqual(expected.sort())
    const notes = await run.database.db.rows({
      name: 'notes',
      sql: "SELECT toString(state) AS state, reason FROM coverage_notes FINAL WHERE reason LIKE '%MORALIS_UNITS_PER_DAY%'",
      schema: z.object({ state: z.string(), reason: z.string() }),
    })
    expect(notes.length).toBeGreaterThan(20)
    expect(new Set(notes.map(({ state }) => state))).toEqual(new Set(['unserved']))
  })

  it('names the chain and the missing key', async () => {
    const run = await start({ settings: { RPC_URLS: '', MORALIS_API_KEY: '' } })
    expect(await run.runSlot()).toMatchObject({ rows: 0, rejected: 0 })
    const sql = 'SELECT DISTINCT toString(state) AS state, reason FROM coverage_notes FINAL'
    const schema = z.object({ state: z.string(), reason: z.string() })
    const notes = await run.database.db.rows({ name: 'notes', sql, schema })
    const ofMoralis = notes.filter(({ reason }) => reason.startsWith('moralis'))
    expect(ofMoralis.length).toBeGreaterThan(0)
    for (const { state, reason } of ofMoralis) {
      expect(state).toBe('unserved')
      expect(reason).toMatch(/MORALIS_API_KEY is not set, and RPC_URLS names no node to read the trades on \w+ from/)
    }
  })

  it('requests only chains without a node', async () => {
    const requests: string[] = []
    const server = await startProviderServer((_, response, url) => {
      requests.push(url.searchParams.get('chain') ?? '')
      sendJson(response, { cursor: null, result: [] })
    })
    closers.push(server.close)
    const settings = { MORALIS_BASE_URL: server.baseUrl, MORALIS_API_KEY: 'key', MORALIS_REQUESTS_PER_MINUTE: '60000' }
    const run = await start({ now: nowAt(1_000), chains: { ethereum: toChain([swapAt(10)]) }, settings })
    await run.runSlot()
    expect(await readTrades(run)).toHaveLength(1)
    expect(requests.length).toBeGreaterThan(0)
    expect(requests).not.toContain('eth')
    await run.runRange(START * 1000, START * 1000 + HOUR)
    expect(requests).not.toContain('eth')
  })
})
