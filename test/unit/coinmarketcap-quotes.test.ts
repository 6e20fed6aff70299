import { describe, expect, it } from 'vitest'
import { tokenPriceRow } from '../../shared/datasets/token-prices.ts'
import type { Range } from '../../workers/job/define-job.ts'
import { readError } from '../../workers/providers/coinmarketcap/client.ts'
import {
  historicalAnswer,
  latestAnswer,
  toHistoryRows,
  toLatestRows,
} from '../../workers/providers/coinmarketcap/quotes.ts'
import { readFixture, toTestToken } from '../samples.ts'

const alfa = toTestToken(1, { cmcId: '7278' })
const beta = toTestToken(2, { cmcId: '9999' })
const v3 = readFixture('coinmarketcap/latest-v3.json') as { data: unknown[] }
const historical = readFixture('coinmarketcap/historical.json') as { data: { '7278': object; '9999': object } }
const toLatest = (answer: unknown) => toLatestRows(latestAnswer.parse(answer), [alfa, beta])

describe('toLatestRows', () => {
  it('returns rows in USD with the time of each quote', () => {
    expect(toLatest(v3)).toEqual([
      {
        token: 1,
        observed_at: '2024-03-05T12:00:00.000Z',
        is_latest: true,
        price: 101.2,
        volume_24h: 4314444.68,
        market_cap: 1518000000.5,
        total_supply: 16000000,
        circulating_supply: 15000000,
        max_supply: 16000000,
        fully_diluted_market_cap: 1619200000.25,
        volume_change_24h: -0.152774,
        percent_change_1h: 0.98,
        percent_change_24h: 4.3,
        percent_change_7d: -12.1,
        percent_change_30d: -13.2,
        percent_change_60d: 1.1,
        percent_change_90d: 2.2,
        tvl: null,
      },
      expect.objectContaining({ token: 2, price: 0.004217, max_supply: null, percent_change_60d: null, tvl: 987654.5 }),
    ])
    for (const row of toLatest(v3)) expect(tokenPriceRow.safeParse(row).error).toBeUndefined()
  })

  it('returns the same rows for a plain list and for the map of v2', () => {
    expect(toLatest(v3.data)).toEqual(toLatest(v3))
    expect(toLatest(readFixture('coinmarketcap/latest-v2.json'))).toEqual(toLatest(v3))
  })

  it('returns no row for missing coins and coins that were not requested', () => {
    expect(toLatest(readFixture('coinmarketcap/latest-empty.json'))).toEqual([])
    expect(toLatestRows(latestAnswer.parse(v3), [beta]).map((row) => row.token)).toEqual([2])
  })

  it.each([
    ['no USD quote', { id: 7278, quote: [{ symbol: 'EUR', price: 5 }] }],
    ['no quote', { id: 7278 }],
    ['no price', { id: 7278, quote: { USD: { price: null, last_updated: '2024-03-05T12:00:00.000Z' } } }],
  ])('leaves a coin with %s to the row validation, without affecting other coins', (_, coin) => {
    const rows = toLatest({ data: [coin, ...v3.data.slice(1)] })
    expect(rows.map((row) => tokenPriceRow.safeParse(row).success)).toEqual([false, true])
    expect(rows[0]).toMatchObject({ token: 1, price: null })
  })

  it('leaves an unreadable time to the row validation', () => {
    const coin = { id: 7278, quote: { USD: { price: 1, last_updated: 'yesterday' } } }
    expect(toLatest({ data: [coin] })).toMatchObject([{ price: 1, observed_at: 'yesterday' }])
  })

  it.each([[{}], [{ data: null }], [{ status: {} }], ['text'], [{ data: ['x'] }], [{ data: [{ name: 'x' }] }]])(
    'latestAnswer rejects %j',
    (answer) => {
      expect(latestAnswer.safeParse(answer).success).toBe(false)
    },
  )
})

describe('toHistoryRows', () => {
  const range: Range = { from: Date.UTC(2022, 1, 1), to: Date.UTC(2022, 1, 3), interval: '1d' }
  const toHistory = (answer: unknown) => toHistoryRows(historicalAnswer.parse(answer), [alfa, beta], range)

  it('returns rows inside the range, excluding its end', () => {
    const rows = toHistory(historical)
    expect(rows.map((row) => [row.token, row.observed_at, row.price])).toEqual([
      [1, '2022-02-01T00:00:00.000Z', 160.1],
      [1, '2022-02-02T00:00:00.000Z', 158.75],
      [2, '2022-02-02T00:00:00.000Z', 0.01],
    ])
    expect(rows[0]).toMatchObject({ is_latest: false, total_supply: 16000000, circulating_supply: 13400000 })
    expect(rows[0]).toMatchObject({ max_supply: null, percent_change_90d: null, tvl: null, volume_change_24h: null })
    for (const row of rows) expect(tokenPriceRow.safeParse(row).error).toBeUndefined()
  })

  it('accepts a single coin and coins keyed by symbol', () => {
    const alone = toHistory({ data: historical.data['7278'] })
    expect(alone).toEqual(toHistory(historical).slice(0, 2))
    const bySymbol = { data: { ALFA: [historical.data['7278']], BETA: [historical.data['9999']] } }
    expect(toHistory(bySymbol)).toEqual(toHistory(historical))
  })

  describe('quotes closest to a step', () => {
    const step = 300_000
    const from = Date.UTC(2026, 10, 20, 12)
    const at = (seconds: number) => new Date(from + seconds * 1000).toISOString()
    const quotesAt = (...seconds: number[]) => ({
      data: { id: 7278, quotes: seconds.map((one) => ({ timestamp: at(one), quote: { USD: { price: 1 + one } } })) },
    })
    const read = (answer: unknown, steps: number) =>
      toHistoryRows(historicalAnswer.parse(answer), [alfa], { from, to: from + steps * step, interval: '5m' }).map(
        ({ observed_at, price }) => [observed_at, price],
      )

    it('count in the bucket of their step, even if they are earlier', () => {
      expect(read(quotesAt(-40), 1)).toEqual([[at(0), -39]])
      expect(read(quotesAt(-40, 260, 610), 3)).toEqual([
        [at(0), -39],
        [at(300), 261],
        [at(610), 611],
      ])
    })

    it('lie on the UTC grid for any start of the range', () => {
      const range = { from: from + 120_000, to: from + 900_000, interval: '5m' } as const
      const answer = quotesAt(0, 299, 610)
      const times = toHistoryRows(historicalAnswer.parse(answer), [alfa], range).map(({ observed_at }) => observed_at)
      expect(times).toEqual([at(300), at(610)])
    })

    it('are one per step, and none outside the range', () => {
      expect(read(quotesAt(-300, -20, 10, 300), 1)).toEqual([[at(10), 11]])
    })
  })

  it('returns no rows for an empty response', () => {
    expect(toHistory({ data: {} })).toEqual([])
    expect(toHistory({ data: { '7278': { id: 7278, quotes: [] } } })).toEqual([])
  })
})

describe('readError', () => {
  const errors = readFixture('coinmarketcap/errors.json') as Record<string, unknown>

  it.each([
    [401, '1001', 'provider_rejected', 'COINMARKETCAP_API_KEY'],
    [403, '1006', 'provider_unconfigured', 'a larger plan of COINMARKETCAP_API_KEY has it'],
    [429, '1008', 'provider_unavailable', 'minute limit'],
    [429, '1010', 'provider_exhausted', 'monthly limit'],
  ])('returns for status %i with code %s the error %s and a hint: %s', (status, code, expected, says) => {
    const reading = readError(status, JSON.stringify(errors[code]))
    expect(reading?.code).toBe(expected)
    expect(reading?.says).toContain(says)
  })

  it('returns undefined for HTML pages and unknown codes', () => {
    expect(readError(500, '<html>')).toBeUndefined()
    expect(readError(400, '{"status":{"error_code":400,"error_message":"Invalid value"}}')).toBeUndefined()
  })
})
