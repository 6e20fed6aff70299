import { describe, expect, it } from 'vitest'
import { tokenPriceRow } from '../../shared/datasets/token-prices.ts'
import { chartAnswer, marketsAnswer, toHistoryRows, toLatestRows } from '../../workers/providers/coingecko/markets.ts'
import { readFixture, toTestToken } from '../samples.ts'

const alfa = toTestToken(1, { coingeckoId: 'alfa-coin' })
const beta = toTestToken(2, { coingeckoId: 'beta-coin' })
const HOUR = 3_600_000
const start = Date.UTC(2022, 1, 1)

describe('toLatestRows', () => {
  const markets = marketsAnswer.parse(readFixture('coingecko/markets.json'))

  it('returns rows with null for values that CoinGecko does not have', () => {
    const rows = toLatestRows(markets, [alfa, beta])
    expect(rows[0]).toEqual({
      token: 1,
      observed_at: '2024-04-07T16:49:31.736Z',
      is_latest: true,
      price: 98.7,
      volume_24h: 20154184,
      market_cap: 1381651251,
      total_supply: 16000000,
      circulating_supply: 14000000,
      max_supply: 16000000,
      fully_diluted_market_cap: 1474623675,
      volume_change_24h: null,
      percent_change_1h: 0.5,
      percent_change_24h: 3.125,
      percent_change_7d: -1.5,
      percent_change_30d: 12.25,
      percent_change_60d: null,
      percent_change_90d: null,
      tvl: null,
    })
    expect(rows[1]).toMatchObject({ token: 2, max_supply: null, percent_change_30d: null })
    for (const row of rows) expect(tokenPriceRow.safeParse(row).error).toBeUndefined()
  })

  it('returns no row for other coins', () => {
    expect(toLatestRows(markets, [toTestToken(3, { coingeckoId: 'gamma-coin' })])).toEqual([])
  })

  it('uses the plain 24-hour change if the other one is missing', () => {
    const plain = marketsAnswer.parse([{ id: 'alfa-coin', current_price: 1, price_change_percentage_24h: 7 }])
    expect(toLatestRows(plain, [alfa])).toMatchObject([{ percent_change_24h: 7, market_cap: null }])
  })
})

describe('toHistoryRows', () => {
  const chart = chartAnswer.parse(readFixture('coingecko/market-chart.json'))

  it('returns the first point of each bucket with market cap and volume of the same time', () => {
    const rows = toHistoryRows([chart], alfa, { from: start, to: start + 3 * HOUR, interval: '1h' })
    expect(rows.map((row) => [row.observed_at, row.price, row.market_cap, row.volume_24h])).toEqual([
      ['2022-02-01T00:00:01.234Z', 100, 1000000, 5000.5],
      ['2022-02-01T01:00:01.234Z', 102, 1000002, 5002.5],
      ['2022-02-01T02:00:01.234Z', 104, 1000004, 5004.5],
    ])
    for (const row of rows) {
      expect(row).toMatchObject({ is_latest: false, circulating_supply: null, total_supply: null })
      expect(tokenPriceRow.safeParse(row).error).toBeUndefined()
    }
  })

  it('keeps points coarser than the interval, with null for a missing market cap', () => {
    const rows = toHistoryRows([chart], alfa, { from: start, to: start + 3 * HOUR, interval: '5m' })
    expect(rows).toHaveLength(6)
    expect(rows[5]).toMatchObject({ price: 105, market_cap: null, volume_24h: 5005.5 })
  })

  it('leaves a missing price to the row validation', () => {
    const gap = chartAnswer.parse({ prices: [[start, null]], market_caps: [], total_volumes: [] })
    const rows = toHistoryRows([gap], alfa, { from: start, to: start + HOUR, interval: '1h' })
    expect(rows.map((row) => tokenPriceRow.safeParse(row).success)).toEqual([false])
  })
})
