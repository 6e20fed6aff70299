import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'

const DAY = 86_400_000
const TODAY = Date.parse('2024-03-10T00:00:00Z')
const NOW = TODAY + DAY / 2

const config = createTestConfig()
const commits = createHandFeed()
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
/** Days 0 to 40 but for 3, which has no data, and 5, which has none any more. */
const AGES = Array.from({ length: 41 }, (_, days) => days).filter((days) => days !== 3 && days !== 5)

beforeAll(async () => {
  database = await createApiDatabase(config)
  for (const table of ['market_caps', 'treasury_values']) {
    await database.writer.insert({ table, rows: [...AGES, 5].map((days) => row(days)) })
    const gone = row(5, { value_usd: 0, member_count: 0, withdrawn: 1, computed_at: new Date(NOW + 1).toISOString() })
    await database.writer.insert({ table, rows: [gone] })
  }
  api = await startApi({ config, ...database, commits, now: () => clock.now })
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
  const ask = (query = '', headers: Record<string, string> = {}) => fetch(`${api.url}${path}${query}`, { headers })
  const read = async (query = '') => {
    const response = await ask(query)
    expect(response.status).toBe(200)
    return route?.response.parse(await response.json()) as { recordedAt: string }[]
  }
  /** What was kept at a later time must not be served at an earlier one. */
  const turnBack = () => {
    clock.now = NOW
    commits.commit(leaf)
  }
  const daysOf = async (query: string) => (await read(query)).map(({ recordedAt }) => recordedAt)
  const expected = (limit: number) =>
    AGES.filter((days) => days < limit)
      .map(dayAgo)
      .reverse()

  it('has the points of the last ten days, oldest first, exactly as stored', async () => {
    const points = await read()
    expect(points.map(({ recordedAt }) => recordedAt)).toEqual(expected(10))
    expect(points.at(-1)).toEqual({
      recordedAt: dayAgo(0),
      [sum]: { value: usdOf(0), metadata: { [count]: 100 } },
    })
    expect(Object.keys(points[0] ?? {})).toEqual(['recordedAt', sum])
  })

  it.each([1, 3, 4, 30, 10_000])('goes %i days back from now', async (limit) => {
    expect(await daysOf(`?limit=${limit}`)).toEqual(expected(limit))
  })

  it('has the ten days before an end that stands alone', async () => {
    const wanted = AGES.filter((days) => days >= 20 && days < 30).map(dayAgo)
    expect(await daysOf(`?end=${dayAgo(19)}`)).toEqual(wanted.toReversed())
    expect(await daysOf('?end=2100-01-01')).toEqual(await daysOf(''))
    // A limit counts from now, as it does alone.
    expect(await daysOf(`?limit=5&end=${dayAgo(19)}`)).toEqual([])
  })

  it('has the start of each week as its time, though the first day with data is later', async () => {
    // 2024-03-04 is a Monday, and the day with the age 5 is a Tuesday: the week before it begins with data.
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
    commits.commit(leaf)
    const times = await daysOf('?start=2024-02-08&end=2024-02-26&interval=7d')
    expect(times).toEqual(['2024-02-12T00:00:00.000Z', '2024-02-19T00:00:00.000Z'])
    expect(await daysOf('?start=2024-02-08&end=2024-02-26&interval=7d&fill=null')).toEqual(times)
  })

  it('begins with the first day of history where nobody asks for an earlier one', async () => {
    for (const query of ['?limit=10000&fill=null', '?end=2022-02-05&fill=null'])
      expect((await daysOf(query))[0], query).toBe('2022-02-01T00:00:00.000Z')
    expect(await daysOf('?end=2022-02-05&fill=null')).toHaveLength(4)
    expect(await daysOf('?end=2022-01-15&fill=null')).toEqual([])
    const missing = async (query: string) => (await ask(query)).headers.get('x-series-missing')
    expect(await missing('?limit=10000')).toBe(await missing('?limit=10000&fill=null'))
  })

  it('tells how many days there are and are missing, and how fresh they are', async () => {
    const { headers } = await ask()
    expect(headers.get('x-series-interval')).toBe('1d')
    expect(headers.get('x-series-points')).toBe('8')
    expect(headers.get('x-series-missing')).toBe('2')
    expect(headers.get('x-data-as-of')).toBe(dayAgo(0))
    expect(headers.get('x-data-stale')).toBeNull()
    expect(headers.get('cache-control')).toBe('public, max-age=900, stale-while-revalidate=1800')
  })

  it('drops a day when the clock has passed it, and not a moment before', async () => {
    const oldest = Date.parse(dayAgo(4))
    clock.now = oldest + 5 * DAY - 1
    const tag = (await ask('?limit=5')).headers.get('etag')
    expect(await daysOf('?limit=5')).toEqual([dayAgo(4), dayAgo(2), dayAgo(1), dayAgo(0)])
    clock.now = oldest + 5 * DAY
    expect(await daysOf('?limit=5')).toEqual([dayAgo(4), dayAgo(2), dayAgo(1), dayAgo(0)])
    clock.now += 1
    expect(await daysOf('?limit=5')).toEqual([dayAgo(2), dayAgo(1), dayAgo(0)])
    expect((await ask('?limit=5', { 'If-None-Match': tag ?? '' })).status).toBe(200)
    turnBack()
  })

  it('is stale when no day has come for two', async () => {
    clock.now = TODAY + 2 * DAY + 1
    expect((await ask()).headers.get('x-data-stale')).toBe('true')
    turnBack()
  })

  it('answers 304 until a day of its own changes', async () => {
    const tag = (await ask()).headers.get('etag') ?? ''
    const again = () => ask('', { 'If-None-Match': tag })
    expect((await again()).status).toBe(304)
    commits.commit('prices')
    commits.commit(leaf)
    expect((await again()).status).toBe(304)
    const later = new Date(NOW + 5).toISOString()
    await database.writer.insert({ table, rows: [row(1, { value_usd: 7, computed_at: later })] })
    commits.commit(leaf)
    expect((await again()).status).toBe(200)
    const changed = new Date(NOW + 6).toISOString()
    await database.writer.insert({ table, rows: [row(1, { computed_at: changed })] })
    commits.commit(leaf)
    expect((await again()).status).toBe(304)
  })

  it.each(['0', '-1', '1.5', 'x', '10001', ''])('refuses limit=%s', async (limit) => {
    const response = await ask(`?limit=${limit}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_parameter', param: 'limit' })
  })
})

it('an empty series is an empty array', async () => {
  const fresh = createTestConfig()
  const other = await createApiDatabase(fresh)
  const served = await startApi({ config: fresh, ...other, commits, now: () => NOW })
  const response = await fetch(`${served.url}/data/aggregated/market-cap`)
  expect(await response.json()).toEqual([])
  expect(response.headers.get('x-series-missing')).toBe('9')
  expect(response.headers.get('last-modified')).toBeNull()
  await served.close()
  await other.drop()
})
