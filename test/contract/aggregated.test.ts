import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-03-10T00:00:00Z')
const NOW = TODAY + DAY / 2

const config = createTestConfig()
const changeFeed = createHandFeed()
const clock = { now: NOW }
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const dayAgo = (days: number) => new Date(TODAY - days * DAY).toISOString()
const usdOf = (days: number) => 1e12 + days + 0.123456
const row = (days: number, more: object = {}) => ({
  recorded_at: dayAgo(days),
  value_usd: usdOf(days),
  member_count: 100 - days,
  computed_at: new Date(NOW).toISOString(),
  withdrawn: 0,
  ...more,
})
/** Days 0 to 40, except day 3 (never had data) and day 5 (its data was withdrawn). */
const AGES = Array.from({ length: 41 }, (_, days) => days).filter((days) => days !== 3 && days !== 5)

beforeAll(async () => {
  database = await createApiDatabase(config)
  for (const table of ['market_caps', 'treasury_values']) {
    await database.writer.insert({ table, rows: [...AGES, 5].map((days) => row(days)) })
    const gone = row(5, { value_usd: 0, member_count: 0, withdrawn: 1, computed_at: new Date(NOW + 1).toISOString() })
    await database.writer.insert({ table, rows: [gone] })
  }
  api = await startApi({ config, ...database, changeFeed, now: () => clock.now })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe.each([
  { leaf: 'market-cap', sum: 'marketCapUsd', count: 'tokensIncluded', table: 'market_caps' },
  { leaf: 'treasury-value', sum: 'treasuryValueUsd', count: 'daosIncluded', table: 'treasury_values' },
])('/data/aggregated/$leaf', ({ leaf, sum, count, table }) => {
  const path = `/data/aggregated/${leaf}`
  const route = routes.find((one) => one.path === path)
  const target = (query = '', headers: Record<string, string> = {}) => fetch(`${api.url}${path}${query}`, { headers })
  const read = async (query = '') => {
    const response = await target(query)
    expect(response.status).toBe(200)
    return route?.response.parse(await response.json()) as { recordedAt: string }[]
  }
  /** Resets the clock and drops responses cached at a later time. */
  const turnBack = () => {
    clock.now = NOW
    changeFeed.commit(leaf)
  }
  const daysOf = async (query: string) => (await read(query)).map(({ recordedAt }) => recordedAt)
  const expected = (limit: number) =>
    AGES.filter((days) => days < limit)
      .map(dayAgo)
      .reverse()

  it('returns the stored points of the last ten days, oldest first', async () => {
    const points = await read()
    expect(points.map(({ recordedAt }) => recordedAt)).toEqual(expected(10))
    expect(points.at(-1)).toEqual({
      recordedAt: dayAgo(0),
      [sum]: { value: usdOf(0), metadata: { [count]: 100 } },
    })
    expect(Object.keys(points[0] ?? {})).toEqual(['recordedAt', sum])
  })

  it.each([1, 3, 4, 30, 10_000])('returns points of the last %i days for that limit', async (limit) => {
    expect(await daysOf(`?limit=${limit}`)).toEqual(expected(limit))
  })

  it('returns the ten days before end if only end is given', async () => {
    const selected = AGES.filter((days) => days >= 20 && days < 30).map(dayAgo)
    expect(await daysOf(`?end=${dayAgo(19)}`)).toEqual(selected.toReversed())
    expect(await daysOf('?end=2100-01-01')).toEqual(await daysOf(''))
    // A limit counts days back from now, with or without an end.
    expect(await daysOf(`?limit=5&end=${dayAgo(19)}`)).toEqual([])
  })

  it('uses the start of the week as the time of a weekly point, even if the first day with data is later', async () => {
    // 2024-03-04 is a Monday; day 5 is a Tuesday. Withdraw the first days of the week before.
    const monday = Date.parse('2024-02-12T00:00:00Z')
    await database.writer.insert({
      table,
      rows: [0, 1].map((days) => ({
        ...row((TODAY - monday) / DAY - days),
        value_usd: 0,
        member_count: 0,
        withdrawn: 1,
        computed_at: new Date(NOW + 2).toISOString(),
      })),
    })
    changeFeed.commit(leaf)
    const times = await daysOf('?start=2024-02-08&end=2024-02-26&interval=7d')
    expect(times).toEqual(['2024-02-12T00:00:00.000Z', '2024-02-19T00:00:00.000Z'])
    expect(await daysOf('?start=2024-02-08&end=2024-02-26&interval=7d&fill=null')).toEqual(times)
  })

  it('starts at the first day of history by default', async () => {
    for (const query of ['?limit=10000&fill=null', '?end=2022-02-05&fill=null'])
      expect((await daysOf(query))[0], query).toBe('2022-02-01T00:00:00.000Z')
    expect(await daysOf('?end=2022-02-05&fill=null')).toHaveLength(4)
    expect(await daysOf('?end=2022-01-15&fill=null')).toEqual([])
    const missing = async (query: string) => (await target(query)).headers.get('x-series-missing')
    expect(await missing('?limit=10000')).toBe(await missing('?limit=10000&fill=null'))
  })

  it('sends the interval, the numbers of points and missing days, and the freshness in headers', async () => {
    const { headers } = await target()
    expect(headers.get('x-series-interval')).toBe('1d')
    expect(headers.get('x-series-points')).toBe('8')
    expect(headers.get('x-series-missing')).toBe('2')
    expect(headers.get('x-data-as-of')).toBe(dayAgo(0))
    expect(headers.get('x-data-stale')).toBeNull()
    expect(headers.get('cache-control')).toBe('public, max-age=900, stale-while-revalidate=1800')
  })

  it('drops a day exactly when it leaves the range of the limit', async () => {
    const oldest = Date.parse(dayAgo(4))
    clock.now = oldest + 5 * DAY - 1
    const tag = (await target('?limit=5')).headers.get('etag')
    expect(await daysOf('?limit=5')).toEqual([dayAgo(4), dayAgo(2), dayAgo(1), dayAgo(0)])
    clock.now = oldest + 5 * DAY
    expect(await daysOf('?limit=5')).toEqual([dayAgo(4), dayAgo(2), dayAgo(1), dayAgo(0)])
    clock.now += 1
    expect(await daysOf('?limit=5')).toEqual([dayAgo(2), dayAgo(1), dayAgo(0)])
    expect((await target('?limit=5', { 'If-None-Match': tag ?? '' })).status).toBe(200)
    turnBack()
  })

  it('marks the series as stale two days after its newest day', async () => {
    clock.now = TODAY + 2 * DAY + 1
    expect((await target()).headers.get('x-data-stale')).toBe('true')
    turnBack()
  })

  it('returns 304 until one of the returned days changes', async () => {
    const tag = (await target()).headers.get('etag') ?? ''
    const repeat = () => target('', { 'If-None-Match': tag })
    expect((await repeat()).status).toBe(304)
    changeFeed.commit('prices')
    changeFeed.commit(leaf)
    expect((await repeat()).status).toBe(304)
    const later = new Date(NOW + 5).toISOString()
    await database.writer.insert({ table, rows: [row(1, { value_usd: 7, computed_at: later })] })
    changeFeed.commit(leaf)
    expect((await repeat()).status).toBe(200)
    const changed = new Date(NOW + 6).toISOString()
    await database.writer.insert({ table, rows: [row(1, { computed_at: changed })] })
    changeFeed.commit(leaf)
    expect((await repeat()).status).toBe(304)
  })

  it.each(['0', '-1', '1.5', 'x', '10001', ''])('returns 400 for limit=%s', async (limit) => {
    const response = await target(`?limit=${limit}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_parameter', param: 'limit' })
  })
})

it('/data/aggregated/market-cap returns an empty array if no data is stored', async () => {
  const fresh = createTestConfig()
  const second = await createApiDatabase(fresh)
  const served = await startApi({ config: fresh, ...second, changeFeed, now: () => NOW })
  const response = await fetch(`${served.url}/data/aggregated/market-cap`)
  expect(await response.json()).toEqual([])
  expect(response.headers.get('x-series-missing')).toBe('9')
  expect(response.headers.get('last-modified')).toBeNull()
  await served.close()
  await second.drop()
})
