import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../api/routes.ts'
import { toId } from '../../shared/ids.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:00:00Z')
const DAY = 86_400_000
const TODAY = Date.parse('2024-03-10T00:00:00Z')

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const daoOf = (slug: string) => getDao(database.registry, slug)
const at = (daysAgo: number) => new Date(TODAY - daysAgo * DAY).toISOString()
const routeOf = (path: string) => {
  const route = routes.find((one) => one.path === path)
  if (route === undefined) throw new Error(`no route ${path}`)
  return route
}
const get = (path: string) => fetch(api.url + path)
const json = async <Body>(path: string): Promise<Body> => {
  const response = await get(path)
  expect(response.status, path).toBe(200)
  const body: unknown = await response.json()
  return routeOf(path.split('?')[0] ?? '').response.parse(body) as Body
}

const SNAPSHOTS = ['/data/daos/socials', '/data/daos/twitter-sentiment']
const SERIES = [
  ['/data/daos/socials/historic-twitter', 'twitter', 'lastUpdated'],
  ['/data/daos/socials/historic-discord', 'discord', 'lastUpdated'],
  ['/data/daos/socials/historic-telegram', 'telegram', 'recordedAt'],
  ['/data/daos/socials/historic-twitter-sentiment', 'twitter-sentiment', 'recordedAt'],
  ['/data/daos/twitter-sentiment/samples', 'twitter-sentiment', 'recordedAt'],
] as const

interface Point {
  _id: string
  dao: string
  lastUpdated?: string
  recordedAt?: string
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const { writer } = database
  const [aave, compound, curve] = [daoOf('aave').key, daoOf('compound').key, daoOf('curve').key]
  // More than a year of one DAO with a gap of two days, and a few days of others.
  const days = Array.from({ length: 400 }, (_, index) => index).filter((ago) => ago !== 3 && ago !== 4)
  const counts = (dao: number, ago: number) => ({
    dao,
    observed_at: at(ago),
    followers: 1_000 - ago,
    following: 5,
    tweets: 10,
  })
  const members = (dao: number, ago: number) => ({
    dao,
    observed_at: at(ago),
    active_members: ago % 2 === 0 ? null : 7,
    total_members: 100 - (ago % 10),
  })
  const moods = (dao: number, ago: number, [positive_posts, neutral_posts, negative_posts]: number[]) => ({
    ...{ dao, observed_at: at(ago), positive_posts, neutral_posts, negative_posts },
    lexicon: 'test-1',
  })
  const tables: Record<string, object[]> = {
    twitter_counts: [...days.map((ago) => counts(aave, ago)), counts(compound, 2)],
    discord_members: [...days.map((ago) => members(aave, ago)), members(curve, 1)],
    telegram_members: days.map((ago) => members(aave, ago)),
    twitter_sentiment: [
      ...days.map((ago) => moods(aave, ago, [ago % 3, 1, ago % 2])),
      moods(compound, 0, [1, 0, 2]),
      // Judged by a model: shares are not those of the counts.
      {
        ...moods(curve, 0, [1, 0, 2]),
        ...{ positive_share: 0.12344, negative_share: 0.50004, unknown_posts: 1, model: 'model-1' },
      },
    ],
  }
  for (const [table, rows] of Object.entries(tables)) await writer.insert({ table, rows })
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe('/data/daos/socials', () => {
  it('returns each network separately, with nulls for a missing one', async () => {
    const socials = await json<{ _id: string }[]>('/data/daos/socials')
    // Without market caps, DAOs are sorted by name.
    expect(socials.map(({ _id }) => _id)).toEqual(['aave', 'compound', 'curve'].map((slug) => daoOf(slug).id))
    const none = { activeMembers: null, totalMembers: null, lastUpdated: null }
    expect(socials).toMatchObject([
      {
        discordData: { activeMembers: null, totalMembers: 100, lastUpdated: at(0) },
        twitterData: {
          followers: 1_000,
          following: 5,
          tweets: 10,
          percentChange24h: (100 * 1) / 999,
          percentChange7d: (100 * 7) / 993,
          percentChange30d: (100 * 30) / 970,
          lastUpdated: at(0),
        },
      },
      { discordData: none, twitterData: { followers: 998, percentChange24h: null, lastUpdated: at(2) } },
      { discordData: { activeMembers: 7, lastUpdated: at(1) }, twitterData: { followers: null, lastUpdated: null } },
    ])
  })
})

describe('/data/daos/twitter-sentiment', () => {
  it('returns shares that sum to one', async () => {
    const records = await json<{ twitterSentiment: object }[]>('/data/daos/twitter-sentiment')
    expect(records.map(({ twitterSentiment }) => twitterSentiment)).toEqual([
      { positive: 0, neutral: 1, negative: 0, lastUpdated: at(0) },
      { positive: 0.3333, neutral: 0, negative: 0.6667, lastUpdated: at(0) },
      { positive: 0.1234, neutral: 0.3766, negative: 0.5, lastUpdated: at(0) },
    ])
  })
})

describe.each(SNAPSHOTS)('%s as a list', (path) => {
  it('selects by id and name, exact names first, and rejects invalid parameters', async () => {
    const names = async (query: string) => (await json<{ name: string }[]>(`${path}?${query}`)).map(({ name }) => name)
    expect(await names(`id=${daoOf('curve').id}`)).toEqual([daoOf('curve').name])
    expect((await names(`name=c&name=${encodeURIComponent(daoOf('curve').name)}`))[0]).toBe(daoOf('curve').name)
    expect(await names('limit=1')).toHaveLength(1)
    expect(await names(`id=${'f'.repeat(24)}`)).toEqual([])
    expect((await get(`${path}?limit=501`)).status).toBe(400)
    expect((await get(`${path}?nmae=x`)).status).toBe(400)
  })

  it('is as old as its newest value', async () => {
    const { headers } = await get(path)
    expect(headers.get('x-data-as-of')).toBe(at(0))
    expect(headers.get('x-data-stale')).toBeNull()
    const { headers: older } = await get(`${path}?id=${daoOf('compound').id}`)
    expect(older.get('x-data-stale')).toBe(path.endsWith('socials') ? 'true' : null)
  })
})

describe.each(SERIES)('%s', (path, dataset, time) => {
  const points = (query: string) => json<Point[]>(`${path}?${query}`)

  it('returns one point a day, newest first, 365 by default, with derived ids', async () => {
    const { id } = daoOf('aave')
    const served = await points(`id=${id}`)
    expect(served).toHaveLength(365)
    const times = served.map((point) => point[time] ?? '')
    expect(times[0]).toBe(at(0))
    expect(times).toEqual([...new Set(times)].sort().reverse())
    expect(served.map(({ _id }) => _id)).toEqual(times.map((one) => toId(dataset, id, Date.parse(one))))
    expect(new Set(served.map(({ dao }) => dao))).toEqual(new Set([id]))
    expect(await points(`id=${id}&limit=10000`)).toHaveLength(398)
  })

  it('accepts start (inclusive) and end (exclusive), and counts days without a point', async () => {
    const [from, to] = [at(6).slice(0, 10), at(1).slice(0, 10)]
    const query = `name=aave&start=${from}&end=${to}`
    expect((await points(query)).map((point) => point[time])).toEqual([at(2), at(5), at(6)])
    const { headers } = await get(`${path}?${query}`)
    expect(headers.get('x-series-interval')).toBe('1d')
    expect(headers.get('x-series-points')).toBe('3')
    expect(headers.get('x-series-missing')).toBe('2')
    expect(headers.get('x-data-stale')).toBeNull()
    const pause = `${at(3).slice(0, 10)}T18:00:00Z`
    expect((await get(`${path}?name=aave&end=${pause}`)).headers.get('x-data-stale')).toBeNull()
    expect((await get(`${path}?name=aave&start=${to}&end=${from}`)).status).toBe(400)
    const { headers: cut } = await get(`${path}?name=aave&limit=4`)
    expect([cut.get('x-series-points'), cut.get('x-series-missing')]).toEqual(['4', '2'])
    // A result of exactly `limit` points is cut only if a further point exists.
    const { headers: uncut } = await get(`${path}?name=aave&start=${at(4).slice(0, 10)}&end=${to}&limit=1`)
    expect([uncut.get('x-series-points'), uncut.get('x-series-missing')]).toEqual(['1', '2'])
  })

  it('returns an empty series for a DAO without points, and 404 for an unknown DAO', async () => {
    const { status, headers } = await get(`${path}?id=${daoOf('uniswap').id}`)
    expect([status, headers.get('x-series-missing')]).toEqual([200, '0'])
    expect(await points(`id=${daoOf('uniswap').id}`)).toEqual([])
    for (const query of [`id=${'f'.repeat(24)}`, 'name=no-such-dao']) {
      expect(await (await get(`${path}?${query}`)).json()).toMatchObject({ status: 404, code: 'not_found' })
    }
    expect(await (await get(path)).json()).toMatchObject({ status: 400, code: 'missing_parameter' })
    for (const query of ['limit=10001', 'limit=0', 'start=yesterday', 'interval=1h']) {
      expect((await get(`${path}?name=aave&${query}`)).status, query).toBe(400)
    }
  })
})

describe.each(SERIES)('table of several DAOs of %s', (path, _, time) => {
  let selected: ReturnType<typeof daoOf>[]
  let ids: string
  beforeAll(() => {
    selected = ['aave', 'compound', 'curve'].map(daoOf).sort((a, b) => a.key - b.key)
    ids = selected.map(({ id }) => id).join(',')
  })
  const read = async (query: string) => {
    const response = await get(`${path}?${query}&format=ndjson`)
    expect(response.status, query).toBe(200)
    return { headers: response.headers, lines: (await response.text()).split('\n').slice(0, -1) }
  }
  const number = (headers: Headers, name: string) => Number(headers.get(name))

  it.each([
    'limit=10000',
    'limit=10000&interval=7d',
    `limit=10000&start=${at(20).slice(0, 10)}&end=${at(1).slice(0, 10)}`,
    `limit=10000&interval=7d&start=${at(40).slice(0, 10)}`,
    `limit=10000&fields=${time}`,
  ])('has the points of each DAO after its id and name: %s', async (query) => {
    const singles = await Promise.all(selected.map(async ({ id }) => read(`id=${id}&${query}`)))
    const expected = selected.flatMap(({ id, name }, index) =>
      (singles[index]?.lines ?? []).map((line) => JSON.stringify({ id, name, ...(JSON.parse(line) as object) })),
    )
    const { headers, lines } = await read(`id=${ids}&${query}`)
    expect(lines.map((line) => JSON.stringify(JSON.parse(line)))).toEqual(expected)
    expect(expected.length).toBeGreaterThan(2)
    const missing = singles.map((single) => number(single.headers, 'x-series-missing'))
    expect(number(headers, 'x-series-missing')).toBe(missing.reduce((a, b) => a + b))
    expect(number(headers, 'x-series-points')).toBe(expected.length)
  })

  it.each([1, 6, 7])('returns the same rows in pages of %i, and counts the same missing days', async (limit) => {
    const query = `id=${ids}&start=${at(12).slice(0, 10)}`
    const whole = await read(`${query}&limit=10000`)
    const pages: string[] = []
    let missing = 0
    let next: string | undefined = `${query}&limit=${limit}`
    while (next !== undefined) {
      const { headers, lines } = await read(next.replace('&format=ndjson', ''))
      pages.push(...lines)
      missing += number(headers, 'x-series-missing')
      next = /^<\?(?<query>[^>]*)>/.exec(headers.get('link') ?? '')?.groups?.query?.replace('format=ndjson&', '')
    }
    expect(pages).toEqual(whole.lines)
    expect(missing).toBe(number(whole.headers, 'x-series-missing'))
  })

  it('has id and name as the first columns of CSV', async () => {
    const [header, first] = (await (await get(`${path}?id=${ids}&limit=1&format=csv`)).text()).split('\n')
    expect(header).toMatch(/^"id","name",/)
    const owners = selected.map(({ id, name }) => `"${id}","${name}"`)
    expect(owners).toContain(first?.split(',').slice(0, 2).join(','))
  })

  it.each(['order=asc', 'points=5', 'fill=null'])('rejects %s', async (query) => {
    const response = await get(`${path}?id=${ids}&${query}&format=csv`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_parameter', param: query.split('=')[0] })
  })

  it('is for other formats than JSON only', async () => {
    expect((await get(`${path}?id=${ids}`)).status).toBe(400)
  })
})

it('returns the sample and the model behind each point of the historic sentiment, with the same ids', async () => {
  const curve = `name=${encodeURIComponent(daoOf('curve').name)}`
  const [shares] = await json<Point[]>(`/data/daos/socials/historic-twitter-sentiment?${curve}`)
  expect(shares).toMatchObject({ sentiment: { positive: 0.1234, neutral: 0.3766, negative: 0.5 } })
  const samples = '/data/daos/twitter-sentiment/samples'
  const { _id, dao, recordedAt } = shares as Point
  expect(await json<object[]>(`${samples}?${curve}`)).toEqual([
    { recordedAt, _id, dao, posts: 3, unknownPosts: 1, model: 'model-1' },
  ])
  expect(await json<object[]>(`${samples}?name=aave&limit=1`)).toMatchObject([
    { posts: 1, unknownPosts: null, model: 'test-1' },
  ])
})

it('/data/daos/socials/historic-twitter-sentiment is also served under its aliases, with a canonical link', async () => {
  const [canonical, ...aliases] = [
    '/data/daos/socials/historic-twitter-sentiment',
    '/data/daos/twitter-sentiment/historic',
    '/data/daos/historic-twitter-sentiment',
  ]
  const body = await (await get(`${canonical}?name=aave`)).text()
  for (const alias of aliases) {
    const response = await get(`${alias}?name=aave`)
    expect(await response.text()).toBe(body)
    expect(response.headers.get('link')).toContain(`<${canonical}`)
  }
})
