import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import type { HttpRequest, HttpSettings } from '../../workers/http/client.ts'
import { toHistoryShare } from '../../workers/http/limits.ts'
import type { ProviderContext } from '../../workers/job/define-job.ts'
import { openSlotAllowance, toShare } from '../../workers/job/state.ts'
import { coinmarketcap } from '../../workers/providers/coinmarketcap/prices.ts'
import { toCallsInSlot, toMonthBudget } from '../../workers/providers/plan.ts'
import { toTestTokens } from '../support/connected-provider.ts'
import { createState, toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'

const SLOT_MS = 300_000
const DAY = Date.parse('2024-05-06T00:00:00Z')
const slots = Array.from({ length: DAY_MS / SLOT_MS }, (_, n) => DAY + n * SLOT_MS)

/**
 * CoinMarketCap with a key and a monthly number of credits; returns no data. `caps` are stored market caps by token.
 */
function open(perMonth: number, more: Readonly<Record<string, string>> = {}, caps: readonly object[] = []) {
  const settings = { COINMARKETCAP_API_KEY: 'key', COINMARKETCAP_CREDITS_PER_MONTH: String(perMonth) }
  const config = parseConfig({ ...settings, ...more })
  const opened: HttpSettings[] = []
  const requests: HttpRequest[] = []
  const answer = { fails: false }
  const http = {
    open: (one: HttpSettings) => {
      opened.push(one)
      return {
        json: async (request: HttpRequest) => {
          requests.push(request)
          if (answer.fails) throw new DataError('provider_unavailable', 'no answer')
          return { data: [] }
        },
      }
    },
  }
  const context = { config, log: silent, http, db: { rows: async () => caps } } as unknown as ProviderContext
  return { source: coinmarketcap.connect(context), requests, answer, settings: () => opened[0] ?? expect.unreachable() }
}

/** Returns the daily limits by their names. */
function readLimits(settings: HttpSettings, historyShare: number): ReadonlyMap<string, number | undefined> {
  const history = toHistoryShare(settings, historyShare)
  return new Map([settings, history].map(({ provider, requestsPerDay }) => [provider, requestsPerDay]))
}

describe('toMonthBudget', () => {
  it.each([100, 3_100, 10_000, 15_000, 300_000])('of %i a month is enough for every day', (perMonth) => {
    const { perDay, latestPerDay, linksPerDay, historyPerDay } = toMonthBudget(perMonth, 0.5)
    expect(perDay * 31).toBeLessThanOrEqual(perMonth)
    expect(perDay * 31).toBeGreaterThan(perMonth - 31)
    // Of a large plan, only four calls per slot are reserved for the newest prices.
    expect(Math.min(latestPerDay, 4 * 288) + linksPerDay + historyPerDay).toBeLessThanOrEqual(perDay)
    expect(historyPerDay).toBeLessThanOrEqual(perDay / 2)
    expect(latestPerDay).toBeGreaterThanOrEqual(perDay * 0.9)
  })

  it('gives half of a large plan to history', () => {
    const { perDay, historyPerDay } = toMonthBudget(300_000, 0.5)
    expect(historyPerDay).toBe(Math.floor(perDay / 2))
  })

  it.each([1, 90, 288, 290, 1_000])('toCallsInSlot() distributes %i calls evenly over the slots of a day', (perDay) => {
    const calls = slots.map((slot) => toCallsInSlot(perDay, slot))
    expect(calls.reduce((sum, count) => sum + count, 0)).toBe(perDay)
    expect(Math.max(...calls) - Math.min(...calls)).toBeLessThanOrEqual(1)
    const hours = Array.from({ length: 24 }, (_, hour) => calls.slice(hour * 12, hour * 12 + 12))
    const perHour = hours.map((own) => own.reduce((sum, count) => sum + count, 0))
    expect(Math.max(...perHour) - Math.min(...perHour)).toBeLessThanOrEqual(1)
  })
})

describe('CoinMarketCap credits', () => {
  it('are spent on the largest tokens; the others are rejected with the name of the setting', async () => {
    const tokens = toTestTokens(130)
    const caps = tokens.map(({ key }) => ({ token: key, usd: key }))
    const { source, requests } = open(10_000, {}, caps)
    const testRun = toRun({ slot: DAY })
    await source.fetchLatest(tokens, testRun.run)
    expect(requests.map(({ query }) => String(query?.id).split(',').map(Number))).toEqual([
      Array.from({ length: 100 }, (_, n) => 130 - n),
    ])
    expect([...testRun.refused.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, n) => n + 1))
    expect(testRun.refused.get(1)).toMatchObject({
      code: 'provider_unconfigured',
      message: expect.stringContaining('COINMARKETCAP_CREDITS_PER_MONTH'),
    })
  })

  it('are not spent again on a retried slot, unless the first attempt failed', async () => {
    const { source, requests, answer } = open(10_000)
    const state = createState()
    const tokens = toTestTokens(3)
    const attempt = async (slot: number) => {
      const before = requests.length
      await source.fetchLatest(tokens, toRun({ slot, state }).run).catch((error: unknown) => error)
      return requests.length - before
    }
    answer.fails = true
    expect([await attempt(DAY), await attempt(DAY)]).toEqual([1, 1])
    answer.fails = false
    expect([await attempt(DAY), await attempt(DAY), await attempt(DAY + SLOT_MS)]).toEqual([1, 0, 1])
  })

  it('are not spent in slots without calls', async () => {
    const { source, requests } = open(3_100)
    const tokens = toTestTokens(2)
    for (const slot of slots) {
      const testRun = toRun({ slot })
      const before = requests.length
      await source.fetchLatest(tokens, testRun.run)
      expect(testRun.refused.size).toBe(requests.length > before ? 0 : 2)
    }
    expect(requests).toHaveLength(90)
  })

  it.each([
    [3_100, 0.5],
    [10_000, 0.5],
    [10_000, 0.01],
    [1_000_000, 0.5],
  ])('for history: with %i a month and a share of %d, no call exceeds the daily limit', async (perMonth, share) => {
    const { source, requests, settings } = open(perMonth, { PROVIDER_HISTORY_SHARE: String(share) })
    const range = { from: DAY - 30 * DAY_MS, to: DAY, interval: '5m' } as const
    await source.fetchHistory(toTestTokens(3), range, toRun().run)
    const ofDay = readLimits(settings(), share).get('coinmarketcap (history)') ?? Number.NaN
    for (const { units = 1 } of requests) expect(units).toBeLessThanOrEqual(ofDay)
    const points = requests.map(({ query }) => String(query?.id).split(',').length * (Number(query?.count) - 1))
    // Every step of every token once. A credit pays for a hundred steps.
    expect(points.reduce((sum, count) => sum + count, 0)).toBe(3 * 30 * 288)
    for (const [at, { units = 1 }] of requests.entries()) expect(units).toBe(Math.ceil((points[at] ?? 0) / 100))
  })

  it('are unlimited without a key', () => {
    const config = parseConfig({})
    expect(config.providers.coinmarketcap.creditsPerMonth).toBeUndefined()
    expect(config.providers.coingecko.callsPerMonth).toBeUndefined()
  })
})

describe('CoinGecko calls per month', () => {
  it.each([
    [{}, 10_000],
    [{ COINGECKO_BASE_URL: 'https://pro-api.coingecko.com/api/v3' }, 100_000],
    [{ COINGECKO_CALLS_PER_MONTH: '500000' }, 500_000],
  ])('default to the smallest plan of the host: %o', (settings, expected) => {
    const config = parseConfig({ COINGECKO_API_KEY: 'key', ...settings })
    expect(config.providers.coingecko.callsPerMonth).toBe(expected)
  })
})

describe('calls of a slot split into chunks', () => {
  const BATCHES = 8
  const toShares = (perSlot: number, slot: number) =>
    Promise.all(
      Array.from({ length: BATCHES }, async (_, index) => {
        const batch = { index, of: BATCHES }
        const calls = toShare(perSlot, slot, batch)
        return (await openSlotAllowance(createState(), { name: 'a', slot, calls, batch })).remaining()
      }),
    )

  it.each([36, 144, 288, 1_000, 5_000])(
    'are distributed over the chunks, of %i calls a day, and every chunk gets some',
    async (perDay) => {
      const had = Array.from({ length: BATCHES }, () => 0)
      for (const slot of slots) {
        const perSlot = toCallsInSlot(perDay, slot)
        const shares = await toShares(perSlot, slot)
        expect(shares.reduce((sum, share) => sum + share)).toBe(perSlot)
        for (const [batch, share] of shares.entries()) had[batch] = (had[batch] ?? 0) + share
      }
      expect(Math.min(...had)).toBeGreaterThanOrEqual(Math.floor(perDay / BATCHES / 2))
      expect(Math.max(...had)).toBeLessThanOrEqual(Math.ceil((perDay / BATCHES) * 1.5))
    },
  )

  it('are counted per chunk when it is retried', async () => {
    const state = createState()
    const open = (index: number) => {
      const batch = { index, of: BATCHES }
      return openSlotAllowance(state, { name: 'a', slot: DAY, calls: toShare(16, DAY, batch), batch })
    }
    const first = await open(0)
    expect([first.take(), first.remaining()]).toEqual([true, 1])
    await first.save()
    expect([(await open(0)).remaining(), (await open(1)).remaining()]).toEqual([1, 2])
  })
})
