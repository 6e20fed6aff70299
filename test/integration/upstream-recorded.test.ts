import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const present = existsSync(dataDir)
if (!present) console.log(`no recorded data at ${dataDir}: its tests are skipped`)

const CANDLES = 'prices-5m-binance-2024-genetrader'
const UNI = '7083'

describe.skipIf(!present)('stand-in with recorded data', () => {
  let upstream: Upstream
  beforeAll(async () => {
    upstream = await createUpstream({ registry: loadRegistry(), dataDir })
  })
  afterAll(() => upstream?.close())

  const read = (path: string) => readFileSync(join(dataDir, path))
  const json = (path: string) => JSON.parse(read(path).toString())
  const candles = (resolution: string, symbol: string) => {
    const csv = gunzipSync(read(`${CANDLES}/${resolution}/${symbol}_USDT-${resolution}.csv.gz`)).toString()
    return csv
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split(','))
  }
  const text = async (path: string) => {
    const response = await fetch(upstream.url + path, { headers: { 'x-cmc_pro_api_key': 'demo' } })
    return response.text()
  }
  const history = (query: string) => text(`/coinmarketcap/v3/cryptocurrency/quotes/historical?${query}`)
  const quotesOf = async (id: string, query: string) => {
    return JSON.parse(await history(`id=${id}&${query}`)).data[id].quotes as {
      timestamp: string
      quote: { USD: { price: number; volume_24h: number | null; market_cap: number | null } }
    }[]
  }

  test('returns the exact open of every 5-minute candle at its open time', async () => {
    const rows = candles('5m', 'UNI')
    const served: [string, string][] = []
    for (let start = Date.UTC(2024, 0, 1) - 300_000; start < Date.UTC(2024, 8, 8); start += 10_000 * 300_000) {
      const body = await history(`id=${UNI}&interval=5m&count=10000&time_start=${start}`)
      for (const [, price, at] of body.matchAll(/"price":([^,]+),.*?"timestamp":"([^"]+)"/g)) {
        served.push([at ?? '', price ?? ''])
      }
    }
    const recorded = rows.map(([at, open]) => [`${at?.slice(0, -1)}.000Z`, (open ?? '').replace(/\.0$/, '')])
    expect(served.length).toBe(recorded.length)
    expect(served).toEqual(recorded)
  })

  test.each([
    ['1h', '1h'],
    ['1d', '1d'],
  ])('matches the recorded %s candles in longer intervals', async (interval, resolution) => {
    const rows = candles(resolution, 'UNI').slice(0, 200)
    const start = Date.UTC(2024, 0, 1) - (interval === '1h' ? 3_600_000 : 86_400_000)
    const quotes = await quotesOf(UNI, `interval=${interval}&time_start=${start}&count=200`)
    expect(quotes.map((quote) => quote.quote.USD.price)).toEqual(rows.map(([, open]) => Number(open)))
  })

  test('sums the USD volume of the previous day, and returns null for an incomplete day', async () => {
    const quotes = await quotesOf(UNI, 'interval=5m&time_start=2023-12-31T23:55:00Z&count=289')
    const rows = candles('5m', 'UNI').slice(0, 288)
    const sum = rows.reduce((total, row) => total + Number(row[1]) * Number(row[5]), 0)
    expect(quotes[287]?.quote.USD.volume_24h).toBeNull()
    expect(quotes[288]?.quote.USD.volume_24h).toBeCloseTo(sum, -1)
  })

  test('serves hourly-only tokens by the hour, and no unrecorded price', async () => {
    const ape = await quotesOf('18876', 'interval=4h&time_start=2023-12-31T20:00:00Z&count=6')
    const rows = candles('1h', 'APE').filter((_, index) => index % 4 === 0)
    expect(ape.map((quote) => quote.quote.USD.price)).toEqual(rows.slice(0, 6).map(([, open]) => Number(open)))
    expect(JSON.parse(await history('id=999999999&interval=1d&count=5')).data).toEqual({})
    expect(await quotesOf(UNI, 'interval=1d&time_start=2023-03-01&time_end=2023-04-01')).toEqual([])
  })

  test('serves the exact market chart, cut to the range, and as daily history', async () => {
    const chart = json('coingecko-market_chart-2022-defi_etf/uniswap.json')
    const full = await text('/coingecko/coins/uniswap/market_chart/range?vs_currency=usd&from=0&to=2000000000')
    expect(JSON.parse(full)).toEqual(chart)
    const cut = JSON.parse(
      await text('/coingecko/coins/uniswap/market_chart/range?vs_currency=usd&from=1643673600&to=1643846400'),
    )
    expect(cut.prices).toEqual(
      chart.prices.filter(([at]: [number, number]) => at >= 1643673600000 && at <= 1643846400000),
    )
    expect(cut.prices).toHaveLength(3)
    const daily = await quotesOf(UNI, 'interval=1d&time_start=2022-01-31&count=3')
    expect(daily.map((quote) => quote.quote.USD.price)).toEqual(cut.prices.map(([, price]: number[]) => price))
    expect(daily.map((quote) => quote.quote.USD.market_cap)).toEqual(cut.market_caps.map(([, cap]: number[]) => cap))
  })

  test('serves the recorded listing as latest quotes in both versions', async () => {
    const listing = json('fixtures-coinmarketcap/listings_latest_2022-12-16.json')
    const coin = listing.data.find(({ id }: { id: number }) => id === Number(UNI))
    const v3 = JSON.parse(await text(`/coinmarketcap/v3/cryptocurrency/quotes/latest?id=${UNI}`)).data
    const v2 = JSON.parse(await text(`/coinmarketcap/v2/cryptocurrency/quotes/latest?id=${UNI}`)).data
    expect(v3).toHaveLength(1)
    expect(v3[0].quote[0]).toMatchObject(coin.quote.USD)
    expect(v2[UNI].quote.USD).toEqual(coin.quote.USD)
    const { tags: _tags, platform: _platform, quote: _quote, ...facts } = coin
    expect(v3[0]).toMatchObject(facts)
  })

  test('serves the recorded protocols with slugs, and recorded TVL histories', async () => {
    const file = 'defillama-protocols-tvl-bma-d'
    const recorded = JSON.parse(gunzipSync(read(`${file}/lite-protocols2_2025-12-19.json.gz`)).toString())
    const protocols = JSON.parse(await text('/defillama/protocols'))
    expect(protocols).toHaveLength(recorded.length)
    expect(protocols[0]).toMatchObject({ name: 'Aave V3', slug: 'aave-v3', tvl: recorded[0].tvl })
    expect(protocols[0].parentProtocol).toBe('parent#aave')
    const everlend = JSON.parse(gunzipSync(read(`${file}/protocol_tvl/Everlend.json.gz`)).toString())
    expect(JSON.parse(await text('/defillama/protocol/everlend')).tvl).toEqual(everlend.tvl)
  })
})
