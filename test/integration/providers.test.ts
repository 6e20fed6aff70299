import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import { INTERVALS } from '../../shared/intervals.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import type { Provider, Range } from '../../workers/job/define-job.ts'
import prices from '../../workers/jobs/prices.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { coingecko } from '../../workers/providers/coingecko/prices.ts'
import { coinmarketcap } from '../../workers/providers/coinmarketcap/prices.ts'
import { defillama } from '../../workers/providers/defillama/tvl.ts'
import { createObservedClients, sendJson, startProviderServer } from '../provider-server.ts'
import { readFixture, toTestDao, toTestToken } from '../samples.ts'
import { noDatabase } from '../support/no-database.ts'
import { toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'
import { createUpstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'

type Server = Awaited<ReturnType<typeof startProviderServer>>

const { signal } = new AbortController()
const DAY = 86_400_000
const start = Date.UTC(2022, 1, 1)
const NOW = Date.UTC(2026, 10, 20, 12, 3, 20)
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

async function connect<Source>(
  provider: Pick<Provider<Source, never>, 'name' | 'connect'>,
  handler: Parameters<typeof startProviderServer>[0],
  apiKey?: string,
  now = Date.now(),
): Promise<{ server: Server; source: Source; calls: ReturnType<typeof createObservedClients>['calls'] }> {
  const server = await startProviderServer(handler)
  closers.push(server.close)
  const name = provider.name.toUpperCase()
  const config = parseConfig({
    [`${name}_BASE_URL`]: server.baseUrl,
    [`${name}_REQUESTS_PER_MINUTE`]: '60000',
    ...(apiKey === undefined ? {} : { [`${name}_API_KEY`]: apiKey }),
  })
  const { http, calls } = createObservedClients()
  return { server, source: provider.connect({ config, http, db: noDatabase, log: silent, now: () => now }), calls }
}

const tokens = (count: number) =>
  Array.from({ length: count }, (_, n) => toTestToken(n + 1, { cmcId: String(n + 1), coingeckoId: `coin-${n + 1}` }))
const paramOf = (server: Server, name: string) => server.requests.map(({ url }) => url.searchParams.get(name))

describe('coinmarketcap', () => {
  const errors = readFixture('coinmarketcap/errors.json') as Record<string, unknown>
  const empty = readFixture('coinmarketcap/latest-empty.json')
  const alfa = toTestToken(1, { cmcId: '7278' })

  it('asks for the latest quotes of at most a hundred coins at once', async () => {
    const { server, source } = await connect(coinmarketcap, (_, response) => sendJson(response, empty), 'secret')
    expect(await source.fetchLatest(tokens(101), toRun().run)).toEqual([])
    expect(paramOf(server, 'id').map((ids) => ids?.split(',').length)).toEqual([100, 1])
    expect(server.requests[0]?.url.pathname).toBe('/v3/cryptocurrency/quotes/latest')
    expect(server.requests[0]?.headers['x-cmc_pro_api_key']).toBe('secret')
  })

  it('has the latest quotes without a key, but no history', async () => {
    const answer = readFixture('coinmarketcap/latest-v3.json')
    const { server, source } = await connect(coinmarketcap, (_, response) => sendJson(response, answer))
    expect(await source.fetchLatest([alfa], toRun().run)).toMatchObject([{ token: 1, price: 101.2 }])
    expect(server.requests[0]?.url.pathname).toBe('/public-api/v3/cryptocurrency/quotes/latest')
    expect(server.requests[0]?.headers).not.toHaveProperty('x-cmc_pro_api_key')
    const range: Range = { from: start, to: start + DAY, interval: '1d' }
    await expect(source.fetchHistory([alfa], range, toRun().run)).rejects.toMatchObject({
      code: 'provider_unconfigured',
      message: expect.stringContaining('COINMARKETCAP_API_KEY'),
    })
  })

  it('pages history by time and by coins, within the limits of points', async () => {
    const answer = { data: {} }
    const { server, source } = await connect(coinmarketcap, (_, response) => sendJson(response, answer), 'secret')
    const fiveMinutes = 300_000
    await source.fetchHistory(tokens(3), { from: start, to: start + 10_000 * fiveMinutes, interval: '5m' }, toRun().run)
    expect(paramOf(server, 'id')).toEqual(['1,2', '3', '1,2,3'])
    expect(paramOf(server, 'count')).toEqual(['10000', '10000', '2'])
    expect(paramOf(server, 'interval')).toEqual(['5m', '5m', '5m'])
    const split = start + 9_999 * fiveMinutes
    const isoOf = (ms: number) => new Date(ms).toISOString()
    // The provider's start is exclusive.
    const starts = [start, start, split].map((ms) => isoOf(ms - fiveMinutes))
    expect(paramOf(server, 'time_start')).toEqual(starts)
    expect(paramOf(server, 'time_end')).toEqual([
      isoOf(split - 1000),
      isoOf(split - 1000),
      isoOf(split + fiveMinutes - 1000),
    ])
  })

  it('reads history', async () => {
    const answer = readFixture('coinmarketcap/historical.json')
    const { source } = await connect(coinmarketcap, (_, response) => sendJson(response, answer), 'secret')
    const rows = await source.fetchHistory([alfa], { from: start, to: start + 2 * DAY, interval: '1d' }, toRun().run)
    expect(rows.map((row) => row.price)).toEqual([160.1, 158.75])
  })

  it('tries again after the minute limit and not after the monthly one', async () => {
    let refused = 0
    const passing = await connect(coinmarketcap, (_, response) => {
      refused += 1
      if (refused === 1) sendJson(response, errors['1008'], 429)
      else sendJson(response, empty)
    })
    expect(await passing.source.fetchLatest([alfa], toRun().run)).toEqual([])
    expect(passing.calls).toMatchObject([{ outcome: 'ok', retries: 1 }])

    const lasting = await connect(coinmarketcap, (_, response) => sendJson(response, errors['1010'], 429))
    await expect(lasting.source.fetchLatest([alfa], toRun().run)).rejects.toMatchObject({
      code: 'provider_exhausted',
      message: expect.stringContaining('monthly limit reached'),
      retryAfterMs: expect.toSatisfy((ms: number) => ms > 0 && ms <= 31 * DAY),
    })
    expect(lasting.server.requests).toHaveLength(1)
  })

  it.each([
    [401, '1001', 'provider_rejected', 'COINMARKETCAP_API_KEY'],
    [403, '1006', 'provider_rejected', "plan doesn't support this endpoint"],
    [200, '1008', 'provider_unavailable', 'minute limit'],
    [200, '1001', 'provider_rejected', 'error 1001: This API Key is invalid.'],
  ])('reports status %i with code %s as %s', async (status, code, expected, says) => {
    const { source } = await connect(coinmarketcap, (_, response) => sendJson(response, errors[code], status), 'secret')
    const error = await source.fetchLatest([alfa], toRun().run).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: expected, message: expect.stringContaining(says) })
  })

  it('keeps what came of the other calls when one answer cannot be read', async () => {
    const { server, source } = await connect(coinmarketcap, (_, response, url) => {
      const isSecond = url.searchParams.get('id') === '101'
      sendJson(response, isSecond ? { data: [{ name: 'x' }] } : { data: [{ id: 1, quote: { USD: { price: 5 } } }] })
    })
    const { run, refused } = toRun()
    expect(await source.fetchLatest(tokens(102), run)).toMatchObject([{ token: 1, price: 5 }])
    expect(refused.size).toBe(0)
    expect(server.requests).toHaveLength(2)
    expect(await source.fetchLatest(tokens(101), run)).toMatchObject([{ token: 1, price: 5 }])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[101, 'provider_malformed']])
  })

  it('refuses the one coin that cannot be read, and keeps those that share a call with it', async () => {
    const quotes = [{ timestamp: new Date(start).toISOString(), quote: { USD: { price: 5 } } }]
    const answer = { data: { 1: { id: 1, quotes }, 2: { id: 2, quotes: 'none' }, 3: { id: 3, quotes } } }
    const { source } = await connect(coinmarketcap, (_, response) => sendJson(response, answer), 'secret')
    const { run, refused } = toRun()
    const rows = await source.fetchHistory(tokens(3), { from: start, to: start + DAY, interval: '1d' }, run)
    expect(rows.map(({ token }) => token)).toEqual([1, 3])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[2, 'provider_malformed']])
  })

  it('names the path of an answer in another shape', async () => {
    const { source } = await connect(coinmarketcap, (_, response) => sendJson(response, { data: [{ name: 'x' }] }))
    await expect(source.fetchLatest([alfa], toRun().run)).rejects.toMatchObject({
      code: 'provider_malformed',
      message: expect.stringMatching(/^coinmarketcap .*quotes\/latest: 0\.id: /),
    })
  })
})

describe('coingecko', () => {
  const errors = readFixture('coingecko/errors.json') as Record<string, unknown>
  const alfa = toTestToken(1, { coingeckoId: 'alfa-coin' })

  it('asks for 250 coins at once, with the header of a demo key', async () => {
    const answer = readFixture('coingecko/markets.json')
    const { server, source } = await connect(coingecko, (_, response) => sendJson(response, answer), 'secret')
    expect(await source.fetchLatest([alfa, ...tokens(250)], toRun().run)).toMatchObject([{ token: 1, price: 98.7 }])
    expect(paramOf(server, 'ids').map((ids) => ids?.split(',').length)).toEqual([250, 1])
    expect(paramOf(server, 'price_change_percentage')[0]).toBe('1h,24h,7d,30d')
    expect(server.requests[0]?.headers).toMatchObject({ 'x-cg-demo-api-key': 'secret' })
  })

  it('cuts history where the provider would coarsen it', async () => {
    const { server, source } = await connect(coingecko, (_, response) => {
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

  it('refuses a coin that is not known and goes on with the next', async () => {
    const chart = readFixture('coingecko/market-chart.json')
    const { source } = await connect(coingecko, (_, response, url) => {
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
    ['history', 'provider_unconfigured', 'error 10012: Your request exceeds the allowed time range.'],
    ['key', 'provider_rejected', 'COINGECKO_API_KEY'],
  ])('reports its %s limit as %s, and asks for nobody else', async (kind, code, says) => {
    const { server, source } = await connect(coingecko, (_, response) => sendJson(response, errors[kind], 401))
    const range: Range = { from: start, to: start + DAY, interval: '1d' }
    const { run, refused } = toRun()
    expect(await source.fetchHistory([alfa, ...tokens(3)], range, run)).toEqual([])
    expect(refused.size).toBe(3)
    for (const reason of refused.values()) {
      expect(reason).toMatchObject({ code, message: expect.stringContaining(says) })
    }
    expect(server.requests).toHaveLength(1)
  })

  it('keeps the part of a history that the plan has, and refuses the token for the rest', async () => {
    const to = start + 100 * DAY
    const answer: Parameters<typeof startProviderServer>[0] = (_, response, url) => {
      if (Number(url.searchParams.get('from')) * 1000 < start + 90 * DAY) return sendJson(response, errors.history, 401)
      const prices = [[to - DAY, 5]]
      sendJson(response, { prices, market_caps: [], total_volumes: [] })
    }
    const { source } = await connect(coingecko, answer, undefined, start + 455 * DAY)
    const { run, refused } = toRun()
    const rows = await source.fetchHistory([alfa], { from: start, to, interval: '1h' }, run)
    expect(rows).toMatchObject([{ token: 1, price: 5 }])
    expect(refused.get(1)).toMatchObject({ code: 'provider_unconfigured' })
  })

  it('cuts a history at what a free plan has, and asks for the rest of each coin once', async () => {
    const registry = loadRegistry()
    const upstream = await createUpstream({ registry, now: () => NOW, plan: 'free' })
    closers.push(upstream.close)
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

  it('says where it has only hours or days', async () => {
    const chart = { prices: [], market_caps: [], total_volumes: [] }
    const { source } = await connect(coingecko, (_, response) => sendJson(response, chart))
    const stepsOf = async (range: Range) => {
      const { run, steps } = toRun()
      await source.fetchHistory([alfa], range, run)
      return steps
    }
    const now = Date.now()
    const old = { from: start, to: start + 2 * DAY }
    expect(await stepsOf({ ...old, interval: '5m' })).toEqual([
      { from: old.from, to: old.to - DAY, seconds: 3600 },
      { from: old.to - DAY, to: old.to, seconds: 3600 },
    ])
    expect(await stepsOf({ ...old, interval: '1h' })).toEqual([])
    const recent = { from: now - 3_600_000, to: now }
    expect(await stepsOf({ ...recent, interval: '5m' })).toEqual([])
    const long = { from: start, to: start + 91 * DAY }
    expect(await stepsOf({ ...long, interval: '1d' })).toEqual([])
    expect((await stepsOf({ ...long, interval: '1h' })).length).toBe(0)
  })

  it('tries again after a rate limit that says to wait 0 seconds', async () => {
    let asked = 0
    const { source, calls } = await connect(coingecko, (_, response) => {
      asked += 1
      if (asked === 1) sendJson(response, errors.limit, 429, { 'retry-after': '0' })
      else sendJson(response, [])
    })
    expect(await source.fetchLatest([alfa], toRun().run)).toEqual([])
    expect(calls).toMatchObject([{ outcome: 'ok', retries: 1 }])
  })
})

describe('defillama', () => {
  it('reads all protocols in one call', async () => {
    const answer = readFixture('defillama/protocols.json')
    const { server, source } = await connect(defillama, (_, response) => sendJson(response, answer))
    const rows = await source.fetchTvl([toTestDao(1, 'alfa'), toTestDao(2, 'nobody')], start, signal)
    expect(rows).toEqual([{ dao: 1, observed_at: '2022-02-01T00:00:00.000Z', tvl_usd: 3000.75 }])
    expect(server.requests.map(({ url }) => url.pathname)).toEqual(['/protocols'])
  })

  it('reads history by protocol and refuses unknown ones', async () => {
    const answer = readFixture('defillama/protocol.json')
    const { source, calls } = await connect(defillama, (_, response, url) => {
      if (url.pathname === '/protocol/alfa') sendJson(response, answer)
      else response.writeHead(400, { 'content-type': 'text/plain' }).end('Protocol not found')
    })
    const daos = [toTestDao(2, 'nobody'), toTestDao(1, 'alfa')]
    const { run, refused } = toRun()
    const rows = await source.fetchTvlHistory(daos, { from: start, to: start + 2 * DAY, interval: '1d' }, run)
    expect(rows.map((row) => row.tvl_usd)).toEqual([1000.5, 1001.5])
    expect([...refused].map(([key, { code }]) => [key, code])).toEqual([[2, 'provider_unknown']])
    expect(calls.map((call) => call.path)).toEqual(['/protocol/{slug}', '/protocol/{slug}'])
  })

  it('asks for the history of a renamed protocol by the slug of its name', async () => {
    const answer = readFixture('defillama/protocol.json')
    const { source, server } = await connect(defillama, (_, response) => sendJson(response, answer))
    const renamed = { ...toTestDao(1, 'alfa'), defillamaSlug: 'omega.fi' }
    await source.fetchTvlHistory([renamed], { from: start, to: start + DAY, interval: '1d' }, toRun().run)
    expect(server.requests.map(({ url }) => url.pathname)).toEqual(['/protocol/omega.fi'])
  })

  it.each([
    ['an object', {}],
    ['a list of texts', ['x']],
  ])('refuses %s in place of the protocols', async (_, answer) => {
    const { source } = await connect(defillama, (_request, response) => sendJson(response, answer))
    await expect(source.fetchTvl([], start, signal)).rejects.toMatchObject({ code: 'provider_malformed' })
  })
})

describe('jobs', () => {
  const live = toTestToken(1, { cmcId: '7278', coingeckoId: 'alfa-coin' })
  const unpriced = { ...toTestToken(2, { cmcId: '9999' }), livePrice: false }
  const dead = { ...toTestDao(2, 'beta'), live: false }
  const registry = { tokens: [live, unpriced], daos: [toTestDao(1, 'alfa'), dead] } as unknown as Registry

  it('collect for whom is live', () => {
    expect(prices.entities(registry).map(({ key }) => key)).toEqual([1])
    expect(tvl.entities(registry).map(({ key }) => key)).toEqual([1])
  })

  it('ask their providers for the state of now or for a range', async () => {
    const server = await startProviderServer((_, response, url) => {
      const name = url.pathname.endsWith('/historical') ? 'historical' : 'latest-v3'
      sendJson(response, readFixture(`coinmarketcap/${name}.json`))
    })
    closers.push(server.close)
    const config = parseConfig({ COINMARKETCAP_BASE_URL: server.baseUrl, COINMARKETCAP_API_KEY: 'secret' })
    const collectors = prices.connect({ config, http: createObservedClients().http, db: noDatabase, log: silent })
    expect(collectors.map(({ provider }) => provider)).toEqual(['coinmarketcap', 'coingecko'])
    expect(collectors.map(({ covers }) => covers(unpriced))).toEqual([true, false])
    const { run } = toRun({ entities: [live], slot: start })
    expect(await collectors[0]?.collect({ ...run, range: undefined })).toMatchObject([{ is_latest: true }])
    const range: Range = { from: start, to: start + DAY, interval: '1d' }
    expect(await collectors[0]?.collect({ ...run, range })).toMatchObject([{ is_latest: false }])
  })
})
