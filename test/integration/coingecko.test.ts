import { describe, expect, it, onTestFinished } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { INTERVALS } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Range } from '../../workers/job/define-job.ts'
import { coingecko } from '../../workers/providers/coingecko/prices.ts'
import { createObservedClients, sendJson, type startProviderServer } from '../provider-server.ts'
import { readFixture, toTestToken } from '../samples.ts'
import { connectTo, paramOf, toTestTokens } from '../support/connected-provider.ts'
import { noDatabase } from '../support/no-database.ts'
import { toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'
import { createUpstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'

const DAY = 86_400_000
const start = Date.UTC(2022, 1, 1)
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)

describe('coingecko', () => {
  const errors = readFixture('coingecko/errors.json') as Record<string, unknown>
  const alfa = toTestToken(1, { coingeckoId: 'alfa-coin' })

  it('requests 250 coins per call, with the header of a demo key', async () => {
    const answer = readFixture('coingecko/markets.json')
    const { server, source } = await connectTo(coingecko, (_, response) => sendJson(response, answer), 'secret')
    expect(await source.fetchLatest([alfa, ...toTestTokens(250)], toRun().run)).toMatchObject([
      { token: 1, price: 98.7 },
    ])
    expect(paramOf(server, 'ids').map((ids) => ids?.split(',').length)).toEqual([250, 1])
    expect(paramOf(server, 'price_change_percentage')[0]).toBe('1h,24h,7d,30d')
    expect(server.requests[0]?.headers).toMatchObject({ 'x-cg-demo-api-key': 'secret' })
  })

  it('splits history into ranges that the provider does not coarsen', async () => {
    const { server, source } = await connectTo(coingecko, (_, response) => {
      sendJson(response, { prices: [], market_caps: [], total_volumes: [] })
    })
    const to = start + 91 * DAY
    for (const interval of INTERVALS) await source.fetchHistory([alfa], { from: start, to, interval }, toRun().run)
    expect(server.requests).toHaveLength(2 + 2 + 2 + 2 + 1 + 1)
    expect(server.requests[0]?.url.pathname).toBe('/coins/alfa-coin/market_chart/range')
    const split = String((to - DAY) / 1000)
    expect(paramOf(server, 'to')[0]).toBe(split)
    expect(paramOf(server, 'from')[1]).toBe(split)
    expect(paramOf(server, 'from').at(-1)).toBe(String(start / 1000))
    expect(paramOf(server, 'to').at(-1)).toBe(String(to / 1000))
  })

  it('rejects an unknown coin and continues with the next', async () => {
    const chart = readFixture('coingecko/market-chart.json')
    const { source } = await connectTo(coingecko, (_, response, url) => {
      if (url.pathname.includes('gone')) sendJson(response, errors.unknown, 404)
      else sendJson(response, chart)
    })
    const gone = toTestToken(2, { coingeckoId: 'gone' })
    const { run, refused } = toRun()
    const rows = await source.fetchHistory([gone, alfa], { from: start, to: start + DAY, interval: '1d' }, run)
    expect(rows).toMatchObject([{ token: 1, price: 100 }])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[2, 'provider_unknown']])
  })

  it.each([
    ['history', 'provider_unconfigured', 'its plan has no history before'],
    ['key', 'provider_rejected', 'COINGECKO_API_KEY'],
  ])('reports its %s limit as %s, and requests no further coin', async (kind, code, says) => {
    const { server, source } = await connectTo(coingecko, (_, response) => sendJson(response, errors[kind], 401))
    const range: Range = { from: start, to: start + DAY, interval: '1d' }
    const { run, refused } = toRun()
    expect(await source.fetchHistory([alfa, ...toTestTokens(3)], range, run)).toEqual([])
    expect(refused.size).toBe(3)
    const messages = [...refused.values()].map(({ message }) => message)
    expect(messages.join('\n')).toContain(says)
    for (const reason of refused.values()) expect(reason.code).toBe(code)
    expect(server.requests).toHaveLength(1)
  })

  it('keeps the part of a history that the plan includes, and rejects the token for the rest', async () => {
    const to = start + 100 * DAY
    const answer: Parameters<typeof startProviderServer>[0] = (_, response, url) => {
      if (Number(url.searchParams.get('from')) * 1000 < start + 90 * DAY) return sendJson(response, errors.history, 401)
      const prices = [[to - DAY, 5]]
      sendJson(response, { prices, market_caps: [], total_volumes: [] })
    }
    const { source } = await connectTo(coingecko, answer, undefined, start + 455 * DAY)
    const { run, refused } = toRun()
    const rows = await source.fetchHistory([alfa], { from: start, to, interval: '1h' }, run)
    expect(rows).toMatchObject([{ token: 1, price: 5 }])
    expect(refused.get(1)).toMatchObject({ code: 'provider_unconfigured' })
  })

  it("limits history to the free plan's range, and requests the rest of each coin once", async () => {
    const registry = loadRegistry()
    const upstream = await createUpstream({ registry, now: () => NOW, plan: 'free' })
    onTestFinished(upstream.close)
    const config = parseConfig(toStandInSettings(upstream.url))
    const { http } = createObservedClients()
    const source = coingecko.connect({ config, http, db: noDatabase, log: silent, now: () => NOW })
    const [first, second] = registry.tokens
    if (first === undefined || second === undefined) throw new Error('the registry has no tokens')
    const to = Math.floor(NOW / DAY) * DAY
    const { run, refused } = toRun()
    const rows = await source.fetchHistory([first, second], { from: to - 500 * DAY, to, interval: '1d' }, run)
    const daysOf = ({ key }: { key: number }) => rows.filter(({ token }) => token === key).length
    expect([daysOf(first), daysOf(second)]).toEqual([364, 364])
    expect([...refused.values()].map(({ code }) => code)).toEqual(['provider_unconfigured', 'provider_unconfigured'])
    expect(upstream.requests.count('coingecko')).toBe(3)
    const old: Range = { from: to - 500 * DAY, to: to - 400 * DAY, interval: '1d' }
    expect(await source.fetchHistory([first, second], old, toRun().run)).toEqual([])
    expect(upstream.requests.count('coingecko')).toBe(4)
  })

  it('reports ranges with hourly or daily steps only', async () => {
    const chart = { prices: [], market_caps: [], total_volumes: [] }
    const { source } = await connectTo(coingecko, (_, response) => sendJson(response, chart))
    const stepsOf = async (range: Range) => {
      const { run, steps } = toRun()
      await source.fetchHistory([alfa], range, run)
      return steps
    }
    const now = Date.now()
    const old = { from: start, to: start + 2 * DAY }
    expect(await stepsOf({ ...old, interval: '5m' })).toEqual([{ ...old, seconds: 3600 }])
    expect(await stepsOf({ ...old, interval: '1h' })).toEqual([])
    const recent = { from: now - 3_600_000, to: now }
    expect(await stepsOf({ ...recent, interval: '5m' })).toEqual([])
    const [older, ...rest] = await stepsOf({ from: now - 2 * DAY, to: now, interval: '5m' })
    expect(older).toMatchObject({ from: now - 2 * DAY, seconds: 3600 })
    // Complete hours, within the last day even if calls wait.
    expect(Number(older?.to) % 3_600_000).toBe(0)
    expect(older?.to).toBeGreaterThan(now - DAY + 3_600_000)
    expect(rest).toEqual([])
    const long = { from: start, to: start + 91 * DAY }
    expect(await stepsOf({ ...long, interval: '1d' })).toEqual([])
    expect((await stepsOf({ ...long, interval: '1h' })).length).toBe(0)
  })

  it("returns 5-minute prices of today's hours by a request up to the current time", async () => {
    const registry = loadRegistry()
    const upstream = await createUpstream({ registry, now: () => NOW })
    onTestFinished(upstream.close)
    const config = parseConfig({ ...toStandInSettings(upstream.url), COINGECKO_CALLS_PER_MONTH: '1000000' })
    const { http } = createObservedClients()
    const source = coingecko.connect({ config, http, db: noDatabase, log: silent, now: () => NOW })
    const hours = { from: Date.UTC(2026, 10, 20, 2), to: Date.UTC(2026, 10, 20, 5) }
    const { run, steps } = toRun()
    const rows = await source.fetchHistory(registry.tokens.slice(0, 1), { ...hours, interval: '5m' }, run)
    const grid = Array.from({ length: 36 }, (_, n) => new Date(hours.from + n * 300_000).toISOString())
    expect(rows.map(({ observed_at }) => observed_at)).toEqual(grid)
    expect(steps).toEqual([])
  })

  it('retries after a rate limit with a wait of 0 seconds', async () => {
    let requestCount = 0
    const { source, calls } = await connectTo(coingecko, (_, response) => {
      requestCount += 1
      if (requestCount === 1) sendJson(response, errors.limit, 429, { 'retry-after': '0' })
      else sendJson(response, [])
    })
    expect(await source.fetchLatest([alfa], toRun().run)).toEqual([])
    expect(calls).toMatchObject([{ outcome: 'ok', retries: 1 }])
  })
})
