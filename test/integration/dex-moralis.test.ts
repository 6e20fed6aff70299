import { afterEach, describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { createDexPipeline, dump, readTrades } from '../support/dex-pipeline.ts'
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
