import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const STEP = 300_000
const DAY = 86_400_000
const SERIES = '/data/tokens/historic-financial'

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const tokenOf = (symbol: string) => getToken(database.registry, symbol)
const responseOf = (path: string) => {
  const route = routes.find((one) => one.path === path)
  if (route === undefined) throw new Error(`no route ${path}`)
  return route.response
}
const get = (path: string, headers: Record<string, string> = {}) => fetch(api.url + path, { headers })
const json = async <Body>(path: string): Promise<Body> => {
  const response = await get(path)
  expect(response.status, path).toBe(200)
  return (await response.json()) as Body
}

interface SeriesBody {
  data: { timestamp: string; quote: { USD: { timestamp: string } } }[]
}
const readSeries = async (response: Response) => (await response.json()) as SeriesBody

beforeAll(async () => {
  database = await createApiDatabase(config)
  const { writer } = database
  const keys = ['AAVE', 'UNI', 'ENS'].map((symbol) => tokenOf(symbol).key)
  await storeMarket(writer, { keys, until: NOW - 60_000, points: 3 * 288, stepMs: STEP })
  // A gap of six hours in one series.
  await storeMarket(writer, { keys: [tokenOf('COMP').key], until: NOW - 60_000, points: 12, stepMs: STEP })
  await storeMarket(writer, { keys: [tokenOf('COMP').key], until: NOW - 7 * 3_600_000, points: 12, stepMs: STEP })
  const dao = (symbol: string) => database.registry.daoBySlug.get(tokenOf(symbol).dao)?.key
  const tvl = (symbol: string, at: number, tvl_usd: number) =>
    writer.insert({
      table: 'protocol_tvl',
      rows: [{ dao: dao(symbol), observed_at: new Date(at).toISOString(), tvl_usd }],
    })
  // TVL: corrected twice in place for AAVE, one day older than the quote for UNI, three days older for ENS.
  for (const usd of [9, 7, 123.5]) await tvl('AAVE', NOW - 3_600_000, usd)
  await tvl('UNI', NOW - DAY, 55)
  await tvl('ENS', NOW - 3 * DAY, 66)
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe('/data/tokens', () => {
  it('lists tokens with a quote by market cap, with the stored values', async () => {
    const tokens = responseOf('/data/tokens').parse(await json('/data/tokens')) as { symbol: string }[]
    expect(tokens.map(({ symbol }) => symbol)).toEqual(['ENS', 'UNI', 'AAVE', 'COMP'])
    const aave = tokenOf('AAVE')
    expect(tokens[2]).toEqual({
      _id: aave.id,
      name: aave.name,
      symbol: 'AAVE',
      contractAddress: aave.contractAddress,
      decimal: aave.decimals,
      live: true,
      dao: database.registry.daoBySlug.get(aave.dao)?.id,
      cmcId: aave.cmcId,
      chain: database.registry.chainBySlug.get(aave.chain)?.id,
      financialData: {
        lastUpdated: '2024-03-10T12:01:00.000Z',
        marketCap: 1_000_863,
        percentChange1h: 0.1,
        percentChange24h: -0.2,
        percentChange7d: 0.3,
        percentChange30d: -0.4,
        percentChange60d: 0.5,
        percentChanged90d: -0.6,
        price: 2.363,
        volume24h: 1863.25,
        volumeChange24h: -1.5,
        totalSupply: 2_000_000,
        circulatingSupply: 1_000_000,
        fullyDilutedMarketCap: 4_000_000,
        maxSupply: null,
        tvl: 123.5,
      },
      livePrice: aave.livePrice,
      chart24h: `${config.api.publicUrl}/charts/24h/${aave.id}.svg`,
    })
  })

  it('returns the newest TVL unless it is days older than the quote', async () => {
    const tokens = await json<{ symbol: string; financialData: { tvl: number | null } }[]>('/data/tokens')
    const values = tokens.map(({ symbol, financialData }) => [symbol, financialData.tvl])
    expect(Object.fromEntries(values)).toEqual({ ENS: null, UNI: 55, AAVE: 123.5, COMP: null })
  })

  it('returns the members in the documented order', async () => {
    const [token] = await json<object[]>('/data/tokens?limit=1')
    expect(Object.keys(token ?? {}).join()).toBe(
      '_id,name,symbol,contractAddress,decimal,live,dao,cmcId,chain,financialData,livePrice,chart24h',
    )
  })

  it('sorts exact names first, matches symbols and parts, and combines ids with names', async () => {
    const symbols = async (query: string) =>
      (await json<{ symbol: string }[]>(`/data/tokens?${query}`)).map(({ symbol }) => symbol)
    expect((await symbols(`name=${tokenOf('AAVE').name.toUpperCase()}&name=uni`))[0]).toBe('AAVE')
    expect(await symbols('name=ens')).toContain('ENS')
    expect(await symbols(`id=${tokenOf('COMP').id}&name=aave`)).toEqual(['AAVE', 'COMP'])
    expect(await symbols(`id=${'f'.repeat(24)}`)).toEqual([])
    expect(await symbols("name=' OR 1=1 --")).toEqual([])
  })
})

describe('/data/tokens/historic-financial', () => {
  const series = (query: string) => get(`${SERIES}?${query}`)

  it('returns the first observation of each bucket', async () => {
    const { id } = tokenOf('UNI')
    const response = await series(`id=${id}&interval=1h&start=2024-03-10`)
    const body = await readSeries(response)
    responseOf(SERIES).parse(body)
    expect(body.data).toHaveLength(13)
    expect(body.data[0]?.timestamp).toBe('2024-03-10T00:00:00.000Z')
    expect(body.data[0]?.quote.USD.timestamp).toBe('2024-03-10T00:01:00.000Z')
    expect(response.headers.get('x-series-interval')).toBe('1h')
    expect(response.headers.get('x-series-points')).toBe('13')
    expect(response.headers.get('x-series-missing')).toBe('0')
    expect(response.headers.get('x-data-as-of')).toBe('2024-03-10T12:01:00.000Z')
    expect(response.headers.get('x-data-stale')).toBeNull()
    const raw = (await json<SeriesBody>(`${SERIES}?id=${id}&interval=5m&start=2024-03-10`)).data
    const firsts = raw.filter((point) => point.timestamp.includes(':00:00'))
    expect(body.data).toEqual(firsts)
  })

  it.each(['30m', '4h', '1d', '7d'])('returns valid points for %s', async (interval) => {
    const body = await json<SeriesBody>(`${SERIES}?name=uniswap&interval=${interval}&start=2024-03-01`)
    responseOf(SERIES).parse(body)
    expect(body.data.length).toBeGreaterThan(0)
  })

  it('counts missing buckets', async () => {
    const response = await series(`id=${tokenOf('COMP').id}&interval=1h&start=2024-03-10T04:00:00Z`)
    expect((await readSeries(response)).data.map((p) => p.timestamp.slice(11, 13))).toEqual(['04', '05', '11', '12'])
    expect(response.headers.get('x-series-missing')).toBe('5')
  })

  it('counts missing buckets only up to the last point if `limit` cuts', async () => {
    const missing = async (limit: number) => {
      const { id } = tokenOf('COMP')
      const response = await series(`id=${id}&interval=1h&start=2024-03-10T04:00:00Z&limit=${limit}`)
      return response.headers.get('x-series-missing')
    }
    expect([await missing(2), await missing(3), await missing(4), await missing(5)]).toEqual(['0', '5', '5', '5'])
  })

  it('ends before `end` and stops at `limit`', async () => {
    const { id } = tokenOf('UNI')
    const cut = await series(`id=${id}&interval=5m&start=2024-03-10&end=2024-03-10T01:00:00Z`)
    const body = await readSeries(cut)
    expect(body.data).toHaveLength(12)
    expect(body.data.at(-1)?.timestamp).toBe('2024-03-10T00:55:00.000Z')
    const limited = await series(`id=${id}&interval=5m&start=2024-03-10&limit=5`)
    expect((await readSeries(limited)).data).toEqual(body.data.slice(0, 5))
    expect(limited.headers.get('x-series-missing')).toBe('0')
  })

  it('returns an empty series if no data is stored', async () => {
    const response = await series(`id=${tokenOf('UNI').id}&interval=1d&start=2022-02-01&end=2022-02-03`)
    expect((await readSeries(response)).data).toEqual([])
    expect(response.headers.get('x-series-missing')).toBe('2')
    expect(response.headers.get('last-modified')).toBeNull()
  })

  it('returns the same series by name and by id', async () => {
    const by = async (who: string) => (await series(`${who}&interval=1d&start=2024-03-01`)).text()
    expect(await by('name=UNISWAP')).toBe(await by(`id=${tokenOf('UNI').id}`))
  })
})

it('/data/status returns mode, freshness and size', async () => {
  const body = await json<{ mode: string; datasets: object[] }>('/data/status')
  expect(body.mode).toBe('live')
  expect(body.datasets[0]).toEqual({
    dataset: 'prices',
    cadence: '5m',
    lastUpdated: '2024-03-10T12:01:00.000Z',
    expectedEvery: 300,
    lagSeconds: 60,
    state: 'fresh',
    // No coverage was recorded.
    complete: 0,
    failing: [],
    rows: 3 * 864 + 24,
    entities: 4,
    earliest: '2024-03-07T12:06:00.000Z',
  })
  expect(body.datasets[1]).toMatchObject({ dataset: 'tvl', state: 'fresh', rows: 3, entities: 3 })
})
