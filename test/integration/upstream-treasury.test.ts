import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'

const registry = loadRegistry()
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const DAY = 86_400_000
const clock = { now: NOW }
const digits = z.string().regex(/^\d+$/)
const uniswap = registry.daoBySlug.get('uniswap')
const wallet = uniswap?.treasuries.find(({ chain }) => chain === 'ethereum')?.address ?? ''

const Envelope = z.strictObject({
  data: z.looseObject({ items: z.array(z.looseObject({ contract_address: z.string(), contract_decimals: z.int() })) }),
  error: z.literal(false),
  error_message: z.null(),
  error_code: z.null(),
})
const Balances = z.array(
  z.looseObject({
    contract_address: z.string().regex(/^0x[0-9a-f]{40}$/),
    contract_ticker_symbol: z.string(),
    contract_decimals: z.int(),
    type: z.enum(['cryptocurrency', 'stablecoin', 'dust']),
    is_spam: z.boolean(),
    balance: digits,
    quote_rate: z.number().nullable(),
    quote: z.number(),
  }),
)
const Portfolio = z.array(
  z.looseObject({
    contract_address: z.string(),
    holdings: z.array(
      z.looseObject({
        timestamp: z.iso.datetime(),
        open: z.looseObject({ balance: digits, quote: z.number() }),
      }),
    ),
  }),
)

let upstream: Upstream
beforeAll(async () => {
  upstream = await createUpstream({ registry, now: () => clock.now })
})
afterAll(() => upstream.close())

const get = (path: string, key = 'demo') =>
  fetch(`${upstream.url}/goldrush/v1/${path}`, { headers: key === '' ? {} : { authorization: `Bearer ${key}` } })
const items = async (path: string) => Envelope.parse(await (await get(path)).json()).data.items
const balances = async (address = wallet, query = '') =>
  Balances.parse(await items(`1/address/${address}/balances_v2/${query}`))
const portfolio = async (days: number) => Portfolio.parse(await items(`1/address/${wallet}/portfolio_v2/?days=${days}`))

describe('stand-in of GoldRush', () => {
  test('returns balances, with spam unless excluded, and quotes of 0 without a price', async () => {
    const addresses = registry.daos.flatMap(({ treasuries }) => treasuries).filter(({ chain }) => chain === 'ethereum')
    const all = (await Promise.all(addresses.map(({ address }) => balances(address)))).flat()
    const remaining = (await Promise.all(addresses.map(({ address }) => balances(address, '?no-spam=true')))).flat()
    const spam = (list: typeof all) => list.filter(({ is_spam }) => is_spam).length
    expect(spam(all)).toBeGreaterThan(spam(remaining))
    // Some spam is returned although it was excluded.
    expect(spam(remaining)).toBeGreaterThan(0)
    const unpriced = all.filter(({ quote_rate }) => quote_rate === null)
    expect(unpriced.length).toBeGreaterThan(addresses.length)
    expect(new Set(unpriced.map(({ quote }) => quote))).toEqual(new Set([0]))
    const own = (await balances()).find(({ contract_ticker_symbol }) => contract_ticker_symbol === 'UNI')
    expect(own?.quote).toBeCloseTo((Number(own?.balance) / 1e18) * (own?.quote_rate ?? 0), 2)
  })

  test('changes every day, not within one', async () => {
    const before = await balances()
    clock.now += 3 * 3_600_000
    expect(await balances()).toEqual(before)
    clock.now += DAY
    const after = await balances()
    expect(after.map(({ balance }) => balance)).not.toEqual(before.map(({ balance }) => balance))
    expect(after.map(({ balance_24h }) => balance_24h)).toEqual(before.map(({ balance }) => balance))
    clock.now = NOW
  })

  test('has a portfolio with the balances as its newest day', async () => {
    const [history, now] = [await portfolio(5), await balances()]
    for (const { contract_address, balance, quote } of now) {
      const token = history.find((item) => item.contract_address === contract_address)
      expect(token?.holdings).toHaveLength(5)
      expect(token?.holdings[0]).toMatchObject({ timestamp: '2026-11-20T00:00:00.000Z', open: { balance, quote } })
    }
  })

  test("uses its own error format, and lists the chain's coin for any address", async () => {
    const refused = await get(`1/address/${wallet}/balances_v2/`, '')
    expect(refused.status).toBe(401)
    expect(await refused.json()).toEqual({
      data: null,
      error: true,
      error_message: 'No valid API key was provided.',
      error_code: '401',
    })
    for (const path of [`999/address/${wallet}/balances_v2/`, '1/address/uniswap/balances_v2/'])
      expect((await get(path)).status).toBe(400)
    expect((await get(`1/address/${wallet}/nothing/`)).status).toBe(404)
    expect(await balances(`0x${'1'.repeat(40)}`)).toMatchObject([{ contract_ticker_symbol: 'ETH', balance: '0' }])
    upstream.faults.set('goldrush', { kind: 'status', status: 402 }, { times: 1 })
    expect(await (await get(`1/address/${wallet}/balances_v2/`)).json()).toMatchObject({ error_code: '402' })
    upstream.faults.set('goldrush', { kind: 'empty' }, { times: 1 })
    expect(await balances()).toEqual([])
  })
})

describe('stand-in of DefiLlama', () => {
  test('returns the same treasury by chain, with separate own tokens', async () => {
    const { chainTvls } = (await (await fetch(`${upstream.url}/defillama/treasury/uniswap`)).json()) as {
      chainTvls: Record<string, { tokens: { date: number; tokens: Record<string, number> }[] }>
    }
    const own = chainTvls.OwnTokens?.tokens.at(-1)?.tokens ?? {}
    expect(Object.keys(own)).toEqual(['UNI'])
    const parts = Object.keys(chainTvls).filter((key) => key.endsWith('-OwnTokens'))
    const sum = parts.reduce((total, key) => total + (chainTvls[key]?.tokens.at(-1)?.tokens.UNI ?? 0), 0)
    expect(sum).toBeCloseTo(own.UNI ?? 0, 6)
    expect(chainTvls.OwnTokens?.tokens.length).toBeGreaterThan(90)
    const unknown = await fetch(`${upstream.url}/defillama/treasury/nobody`)
    expect([unknown.status, await unknown.text()]).toEqual([400, 'Protocol not found'])
  })

  test('returns coin prices at several times in one response', async () => {
    const token = registry.tokens.find(({ symbol }) => symbol === 'UNI')
    const coin = `ethereum:${token?.contractAddress}`
    const times = [3, 2, 1].map((days) => (Math.floor(NOW / DAY) - days) * (DAY / 1000))
    const expected = encodeURIComponent(JSON.stringify({ [coin]: times, 'ethereum:0x1': times }))
    const answer = await (await fetch(`${upstream.url}/defillama-coins/batchHistorical?coins=${expected}`)).json()
    expect(Object.keys((answer as { coins: object }).coins)).toEqual([coin])
    const alone = await Promise.all(
      times.map(async (time) => {
        const one = await fetch(`${upstream.url}/defillama-coins/prices/historical/${time}/${coin}`)
        return ((await one.json()) as { coins: Record<string, { price: number }> }).coins[coin]?.price
      }),
    )
    expect(answer).toMatchObject({ coins: { [coin]: { symbol: 'UNI', prices: alone.map((price) => ({ price })) } } })
  })
})
