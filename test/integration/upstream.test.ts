import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'

const registry = loadRegistry()
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const now = () => NOW
const KEY = { 'x-cmc_pro_api_key': 'demo' }
const time = z.iso.datetime()
const nullable = z.number().nullable()

let upstream: Upstream
beforeAll(async () => {
  upstream = await createUpstream({ registry, now })
})
afterAll(() => upstream.close())

const get = (path: string) => fetch(upstream.url + path)
const bodyOf = async (response: Response) => JSON.parse(await response.text())

describe('stand-in of CoinGecko', () => {
  test('returns markets in the documented format, largest first, with the requested changes', async () => {
    const response = await get(
      '/coingecko/api/v3/coins/markets?vs_currency=usd&ids=aave,uniswap,nothing&price_change_percentage=1h,7d',
    )
    const markets = z
      .array(
        z.object({
          id: z.string(),
          symbol: z.string(),
          current_price: z.number(),
          market_cap: z.number(),
          fully_diluted_valuation: z.number(),
          total_volume: z.number(),
          circulating_supply: z.number(),
          total_supply: z.number(),
          max_supply: nullable,
          price_change_percentage_24h: nullable,
          price_change_percentage_1h_in_currency: nullable,
          price_change_percentage_7d_in_currency: nullable,
          last_updated: time,
        }),
      )
      .parse(await bodyOf(response))
    expect(markets.map((market) => market.id).toSorted()).toEqual(['aave', 'uniswap'])
    expect(markets[0]?.market_cap).toBeGreaterThanOrEqual(markets[1]?.market_cap ?? 0)
  })

  test('pages markets', async () => {
    const read = async (page: number) => {
      const response = await get(`/coingecko/coins/markets?vs_currency=usd&per_page=2&page=${page}`)
      return z.array(z.object({ id: z.string() })).parse(await bodyOf(response))
    }
    const pages = await Promise.all([read(1), read(2)])
    expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(4)
  })

  test.each([
    ['the last hours', NOW / 1000 - 7_200, NOW / 1000, 300_000],
    ['hours of today', NOW / 1000 - 14_400, NOW / 1000 - 7_200, 3_600_000],
    ['two days', 1_704_067_200, 1_704_240_000, 3_600_000],
    ['a hundred days', 1_704_067_200, 1_712_707_200, 86_400_000],
  ])('returns %s with matching steps', async (_, from, to, step) => {
    const response = await get(`/coingecko/coins/aave/market_chart/range?vs_currency=usd&from=${from}&to=${to}`)
    const chart = z
      .strictObject({
        prices: z.array(z.tuple([z.int(), z.number()])),
        market_caps: z.array(z.tuple([z.int(), z.number()])),
        total_volumes: z.array(z.tuple([z.int(), z.number()])),
      })
      .parse(await bodyOf(response))
    expect((chart.prices[1]?.[0] ?? 0) - (chart.prices[0]?.[0] ?? 0)).toBe(step)
    expect(chart.market_caps).toHaveLength(chart.prices.length)
    expect(chart.total_volumes).toHaveLength(chart.prices.length)
  })

  test.each([
    ['/coins/nothing/market_chart/range?vs_currency=usd&from=1&to=2', 404, { error: 'coin not found' }],
    ['/coins/aave/market_chart/range?vs_currency=usd&from=1', 422, { error: 'Missing parameter to' }],
    ['/coins/markets', 422, { error: 'Missing parameter vs_currency' }],
  ])('rejects %s', async (path, status, body) => {
    const response = await get(`/coingecko/api/v3${path}`)
    expect([response.status, await response.json()]).toEqual([status, body])
  })
})

describe('stand-in of DefiLlama', () => {
  test('lists protocols, some with a parent, consistent with its /tvl', async () => {
    const response = await get('/defillama/protocols')
    expect(response.headers.get('cache-control')).toBe('public, max-age=600')
    const protocols = z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          slug: z.string(),
          address: z.string().nullable(),
          cmcId: z.string().nullable(),
          gecko_id: z.string().nullable(),
          category: z.string(),
          chains: z.array(z.string()),
          tvl: nullable,
          chainTvls: z.record(z.string(), z.number()),
          parentProtocol: z.string().startsWith('parent#').optional(),
        }),
      )
      .parse(await bodyOf(response))
    const parent = protocols.find((protocol) => protocol.parentProtocol)?.parentProtocol ?? ''
    const children = protocols.filter((protocol) => protocol.parentProtocol === parent)
    const sum = children.reduce((total, child) => total + (child.tvl ?? 0), 0)
    expect(children.length).toBeGreaterThan(1)
    expect(await (await get(`/defillama/tvl/${parent.slice('parent#'.length)}`)).json()).toBe(sum)
  })

  test("returns a protocol's history by day up to now", async () => {
    const body = await bodyOf(await get('/defillama/protocol/aave'))
    const series = z
      .array(z.strictObject({ date: z.int(), totalLiquidityUSD: z.number() }))
      .min(2)
      .parse(body.tvl)
    expect((series[1]?.date ?? 0) - (series[0]?.date ?? 0)).toBe(86_400)
    expect(series.at(-1)?.date).toBe(Math.floor(NOW / 1000))
    expect(body.currentChainTvls).toEqual({ Ethereum: series.at(-1)?.totalLiquidityUSD })
    expect(body.chainTvls.Ethereum.tvl).toEqual(series)
  })

  test('finds a renamed protocol and its treasury by name only', async () => {
    const renamed = registry.daos.filter(({ defillamaSlug }) => defillamaSlug !== null)
    expect(renamed.length).toBeGreaterThan(5)
    for (const { defillama: id, defillamaSlug: slug } of renamed) {
      for (const route of ['protocol', 'treasury']) {
        expect([slug, (await get(`/defillama/${route}/${slug}`)).status]).toEqual([slug, 200])
        expect([id, (await get(`/defillama/${route}/${id}`)).status]).toEqual([id, 400])
      }
    }
  })

  test('returns 400 with plain text for unknown protocols', async () => {
    const response = await get('/defillama/protocol/nothing')
    expect([response.status, await response.text()]).toEqual([400, 'Protocol not found'])
  })

  test('returns coin prices by the requested ids and leaves out unknown ones', async () => {
    const weth = 'ethereum:0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'
    const path = `/defillama-coins/prices/current/${weth},coingecko:ethereum,ethereum:0x00`
    const { coins } = await bodyOf(await get(path))
    expect(Object.keys(coins)).toEqual([weth, 'coingecko:ethereum'])
    expect(coins[weth]).toMatchObject({ decimals: 18, symbol: 'WETH', timestamp: NOW / 1000 - 80 })
    expect(coins['coingecko:ethereum']).not.toHaveProperty('decimals')
    expect(coins['coingecko:ethereum'].price).toBe(coins[weth].price)
    const past = await bodyOf(await get(`/defillama-coins/prices/historical/1704067200/${weth}`))
    // The provider's prices have separate times.
    expect(past.coins[weth].timestamp).not.toBe(1_704_067_200)
    expect(Math.abs(past.coins[weth].timestamp - 1_704_067_200)).toBeLessThan(600)
  })
})

test('stand-in returns the same bytes for one seed, and others for another seed', async () => {
  const paths = [
    '/coinmarketcap/v3/cryptocurrency/quotes/latest?id=7278,7083',
    '/coinmarketcap/v3/cryptocurrency/quotes/historical?id=7083&interval=1h&time_start=2023-01-01&count=200',
    '/defillama/protocols',
  ]
  const read = async (seed: number) => {
    const server = await createUpstream({ registry, seed, now })
    const bodies = await Promise.all(
      paths.map(async (path) => (await fetch(server.url + path, { headers: KEY })).text()),
    )
    await server.close()
    return bodies
  }
  const [one, repeated, second] = await Promise.all([read(7), read(7), read(8)])
  expect(repeated).toEqual(one)
  expect(second.map((body, index) => body === one[index])).toEqual([false, false, false])
})
