import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { INVALID_KEY } from '../upstream/providers/coinmarketcap.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'

const registry = loadRegistry()
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const now = () => NOW
const KEY = { 'x-cmc_pro_api_key': 'demo' }
const time = z.iso.datetime()
const nullable = z.number().nullable()

const Status = z.strictObject({
  timestamp: time,
  error_code: z.literal(0),
  error_message: z.null(),
  elapsed: z.number(),
  credit_count: z.number(),
  notice: z.null(),
})
const LatestUsd = z.object({
  price: z.number(),
  volume_24h: nullable,
  volume_change_24h: nullable,
  percent_change_1h: nullable,
  percent_change_24h: nullable,
  percent_change_7d: nullable,
  percent_change_30d: nullable,
  percent_change_60d: nullable,
  percent_change_90d: nullable,
  market_cap: nullable,
  market_cap_dominance: nullable,
  fully_diluted_market_cap: nullable,
  tvl: nullable,
  last_updated: time,
})
const Coin = z.object({
  id: z.number(),
  name: z.string(),
  symbol: z.string(),
  slug: z.string(),
  max_supply: nullable,
  circulating_supply: nullable,
  total_supply: nullable,
  infinite_supply: z.boolean(),
  tags: z.array(z.object({ slug: z.string(), name: z.string(), category: z.string() })),
  platform: z.object({ token_address: z.string() }).nullable(),
  last_updated: time,
})
const CoinV2 = Coin.extend({ quote: z.strictObject({ USD: LatestUsd }) })
const CoinV3 = Coin.extend({ quote: z.array(LatestUsd.extend({ id: z.literal(2781), symbol: z.literal('USD') })) })
const HistoricQuote = z.strictObject({
  timestamp: time,
  quote: z.strictObject({
    USD: z.strictObject({
      percent_change_1h: nullable,
      percent_change_24h: nullable,
      percent_change_7d: nullable,
      percent_change_30d: nullable,
      price: z.number(),
      volume_24h: nullable,
      market_cap: nullable,
      total_supply: nullable,
      circulating_supply: nullable,
      timestamp: time,
    }),
  }),
})
const HistoricCoin = z.strictObject({
  id: z.number(),
  name: z.string(),
  symbol: z.string(),
  is_active: z.literal(1),
  is_fiat: z.literal(0),
  quotes: z.array(HistoricQuote),
})
const envelope = <T extends z.ZodType>(data: T) => z.strictObject({ status: Status, data })
const HistoryBody = envelope(z.record(z.string(), HistoricCoin))

let upstream: Upstream
beforeAll(async () => {
  upstream = await createUpstream({ registry, now })
})
afterAll(() => upstream.close())

const get = (path: string, headers: Record<string, string> = {}) => fetch(upstream.url + path, { headers })
const bodyOf = async (response: Response) => JSON.parse(await response.text())
const cmc = (path: string) => get(`/coinmarketcap${path}`, KEY)

describe('stand-in of CoinMarketCap', () => {
  test('returns v3 latest quotes as arrays and leaves out unknown ids', async () => {
    const response = await cmc('/v3/cryptocurrency/quotes/latest?id=7278,7083,999999999')
    const { data } = envelope(z.array(CoinV3)).parse(await bodyOf(response))
    expect(data.map((coin) => coin.symbol)).toEqual(['AAVE', 'UNI'])
    expect(data[0]?.quote[0]?.last_updated).toBe('2026-11-20T12:02:00.000Z')
  })

  test('returns v2 latest quotes as maps by id, and by symbol as lists, with equal numbers', async () => {
    const byId = await cmc('/v2/cryptocurrency/quotes/latest?id=7278')
    const { data } = envelope(z.record(z.string(), CoinV2)).parse(await byId.json())
    expect(Object.keys(data)).toEqual(['7278'])
    const bySymbol = await cmc('/v2/cryptocurrency/quotes/latest?symbol=AAVE')
    const lists = envelope(z.record(z.string(), z.array(CoinV2))).parse(await bySymbol.json())
    expect(lists.data.AAVE).toEqual([data['7278']])
  })

  test('returns 200 without data for unknown ids, and 400 if they may not be skipped', async () => {
    const skipped = await cmc('/v3/cryptocurrency/quotes/latest?id=999999999')
    expect(skipped.status).toBe(200)
    expect((await bodyOf(skipped)).data).toEqual([])
    const refused = await cmc('/v3/cryptocurrency/quotes/latest?id=999999999&skip_invalid=false')
    expect(refused.status).toBe(400)
    expect((await bodyOf(refused)).status).toMatchObject({ error_code: 400, credit_count: 0 })
  })

  test.each([
    ['no id', ''],
    ['an id that is no number', '?id=aave'],
    ['another currency', '?id=7278&convert=EUR'],
  ])('rejects %s with 400 and no data', async (_, query) => {
    const response = await cmc(`/v3/cryptocurrency/quotes/latest${query}`)
    expect(response.status).toBe(400)
    expect(Object.keys(await bodyOf(response))).toEqual(['status'])
  })

  test('distinguishes a missing key from an invalid one', async () => {
    const path = '/coinmarketcap/v3/cryptocurrency/quotes/latest?id=7278'
    const missing = await get(path)
    const invalid = await get(path, { 'x-cmc_pro_api_key': INVALID_KEY })
    expect([missing.status, (await bodyOf(missing)).status.error_code]).toEqual([401, 1002])
    expect([invalid.status, (await bodyOf(invalid)).status.error_code]).toEqual([401, 1001])
  })

  test('returns history by id, oldest first, on the grid and in the documented format', async () => {
    const response = await cmc(
      '/v3/cryptocurrency/quotes/historical?id=7278,7083&interval=5m&time_start=2024-02-29T23:55:00Z&time_end=2024-03-01T01:00:00Z',
    )
    const { data, status } = HistoryBody.parse(await bodyOf(response))
    expect(Object.keys(data)).toEqual(['7083', '7278'])
    const times = data['7278']?.quotes.map((quote) => quote.timestamp) ?? []
    expect(times).toHaveLength(13)
    expect(times.at(0)).toBe('2024-03-01T00:00:00.000Z')
    expect(times.at(-1)).toBe('2024-03-01T01:00:00.000Z')
    expect(times).toEqual(times.toSorted())
    expect(status.credit_count).toBe(1)
  })

  test('returns history by symbol in lists, with the requested members only', async () => {
    const response = await cmc(
      '/v3/cryptocurrency/quotes/historical?symbol=AAVE&interval=1d&count=1&aux=price,search_interval',
    )
    const { data } = await bodyOf(response)
    expect(data.AAVE).toHaveLength(1)
    const [quote] = data.AAVE[0].quotes
    expect(Object.keys(quote)).toEqual(['search_interval', 'timestamp', 'quote'])
    expect(quote.quote.USD).not.toHaveProperty('market_cap')
    expect(data.AAVE[0]).not.toHaveProperty('is_active')
  })

  test('pages without gaps or overlaps', async () => {
    const path = '/v3/cryptocurrency/quotes/historical?id=7278&interval=30m'
    const read = async (range: string) => {
      return HistoryBody.parse(await (await cmc(`${path}${range}`)).json()).data['7278']?.quotes ?? []
    }
    const full = await read('&time_start=2024-03-01T00:00:00Z&count=96')
    const first = await read('&time_start=2024-03-01T00:00:00Z&count=48')
    const second = await read('&time_start=2024-03-02T00:00:00Z&count=48')
    expect(full).toHaveLength(96)
    expect([...first, ...second]).toEqual(full)
  })

  test('returns the same price at the same time in every interval', async () => {
    const priceAt = async (interval: string) => {
      const query = `id=7278&interval=${interval}&time_end=2024-03-04T00:00:00Z&count=1`
      const body = HistoryBody.parse(await (await cmc(`/v3/cryptocurrency/quotes/historical?${query}`)).json())
      return body.data['7278']?.quotes[0]
    }
    const quotes = await Promise.all(['5m', '30m', '1h', '4h', '1d', '7d', 'weekly'].map(priceAt))
    expect(new Set(quotes.map((quote) => JSON.stringify(quote))).size).toBe(1)
    expect(quotes[0]).toBeDefined()
  })

  test('skips periods before the data begins', async () => {
    const query = 'id=7278&interval=1d&time_start=2021-12-30&time_end=2022-01-02'
    const body = HistoryBody.parse(await (await cmc(`/v3/cryptocurrency/quotes/historical?${query}`)).json())
    const times = body.data['7278']?.quotes.map((quote) => quote.timestamp)
    expect(times).toEqual(['2022-01-01T00:00:00.000Z', '2022-01-02T00:00:00.000Z'])
  })
})
