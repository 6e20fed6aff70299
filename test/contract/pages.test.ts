import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Format, toQueryKey } from '../../api/formats/formats.ts'
import { writeCursor } from '../../api/formats/keyset.ts'
import { problemBody } from '../../api/problem/problem.ts'
import { routes } from '../../api/routes.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { DELEGATE, storeEveryDataset } from '../support/every-dataset.ts'
import { toNext } from '../support/next-page.ts'
import { storeQuotes } from '../support/quotes.ts'
import { readTable } from '../support/tables.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const SERIES = '/data/tokens/historic-financial'

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

interface Page {
  readonly records: readonly unknown[]
  readonly headers: Headers
  /** URL of the next page; undefined on the last page. */
  readonly next: string | undefined
}

async function readPage(url: string, headers: Record<string, string> = {}): Promise<Page> {
  const response = await fetch(url, { headers })
  expect(response.status, url).toBe(200)
  const link = toNext(response.headers.get('link'))
  const format = (new URL(url).searchParams.get('format') ?? 'json') as Format
  const body = await (format === 'json'
    ? response.json()
    : readTable(format, Buffer.from(await response.arrayBuffer())))
  return {
    records: Array.isArray(body) ? body : (body as { data: unknown[] }).data,
    headers: response.headers,
    next: link === undefined ? undefined : new URL(link, url).href,
  }
}

/** Follows the next links from a path on and returns all pages. */
async function walk(path: string): Promise<Page[]> {
  const pages: Page[] = []
  for (
    let url: string | undefined = api.url + path;
    url !== undefined && pages.length < 100;
    url = pages.at(-1)?.next
  ) {
    pages.push(await readPage(url))
  }
  return pages
}
const join = (pages: readonly Page[]) => pages.flatMap(({ records }) => records)

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const LISTS = [
  ...[
    'tokens',
    'tokens/holders',
    'tokens/dex-data',
    'daos',
    'daos/treasury',
    'daos/fees',
    'daos/ratings',
    'daos/socials',
  ],
  ...['daos/twitter-sentiment', 'daos/governance/summary', 'daos/treasury/kinds'],
].flatMap((leaf) => [`/data/${leaf}?`, `/data/${leaf}?name=a&name=aave&`])
const DAILY = ['twitter', 'discord', 'telegram', 'twitter-sentiment'].map(
  (leaf) => `/data/daos/socials/historic-${leaf}?name=aave&`,
)
const GOVERNANCE = ['proposals', 'votes', 'voters'].flatMap((leaf) => {
  const path = `/data/daos/governance/${leaf}?name=aave&`
  return [path, `${path}sort=${leaf === 'voters' ? '-lastVoteAt' : 'createdAt'}&`]
})
const PATHS = [
  ...LISTS,
  ...DAILY,
  ...GOVERNANCE,
  `${DAILY[0]}start=2024-03-03&end=2024-03-09&`,
  '/data/alerts?',
  '/data/daos/governance/delegates?name=aave&',
  `/data/daos/governance/delegates/historic?name=aave&address=${DELEGATE}&`,
  '/data/daos/governance/delegations?name=aave&',
  '/data/daos/governance/records?name=aave&',
  '/data/daos/treasury/flows?name=ethereum%20name%20service&',
  '/data/daos/treasury/flows/historic?name=ethereum%20name%20service&interval=1d&start=2024-01-01&',
  '/data/daos/treasury/flows/counterparties?name=ethereum%20name%20service&',
  '/data/daos/treasury/runway?',
  '/data/daos/treasury/holdings?name=aave&',
  '/data/daos/treasury/holdings/historic?name=aave&',
  '/data/daos/treasury/historic?name=aave&',
  '/data/daos/fees/historic?name=aave&',
  '/data/daos/twitter-sentiment/samples?name=aave&',
  '/data/tokens/holders/historic?name=aave&',
  '/data/tokens/holders/historic-labels?name=aave&',
  '/data/tokens/historic-dex-trades?name=aave&',
  '/data/tokens/historic-dex-trades?name=aave&start=2024-03-10T10:00:00Z&end=2024-03-10T12:00:00Z&',
  '/data/tokens/historic-ohlc?name=aave&interval=30m&start=2024-03-01&',
  '/data/tokens/historic-dex-ohlcv?name=aave&interval=30m&start=2024-03-01&',
  '/data/tokens/historic-ohlc?name=aave&interval=30m&start=2024-03-01&order=desc&',
  '/data/index/historic?period=2&',
  '/data/index/historic?period=2&order=desc&',
  '/data/index/historic?start=2024-03-10T08:00:00Z&end=2024-03-10T12:00:00Z&interval=30m&fill=null&',
  `${DAILY[0]}order=asc&`,
  `${DAILY[0]}fill=null&`,
  `${SERIES}?name=aave&interval=5m&start=2024-03-01&`,
  `${SERIES}?name=aave&interval=30m&start=2024-03-01&end=2024-03-10T12:00:00Z&`,
]

describe('paging', () => {
  it('is tested for every route with a cursor', () => {
    const paths = new Set(PATHS.map((path) => path.split('?')[0]))
    expect([...paths].sort()).toEqual(
      routes
        .filter(({ query }) => 'cursor' in query)
        .map(({ path }) => path)
        .sort(),
    )
  })

  it.each(PATHS)('returns the pages of %s that together equal one large response', async (path) => {
    const full = await readPage(`${api.url}${path}limit=500`)
    expect(full.records.length).toBeGreaterThan(4)
    expect(full.next).toBeUndefined()
    const { length } = full.records
    for (const limit of [...(length > 20 ? [Math.ceil(length / 5)] : [1, 2, 5]), length]) {
      const pages = await walk(`${path}limit=${limit}`)
      expect(pages).toHaveLength(Math.ceil(length / limit))
      expect(join(pages)).toEqual(full.records)
    }
  })

  it.each(['csv', 'ndjson', 'parquet', 'arrow'] as const)('returns the same records in %s', async (format) => {
    for (const path of [
      '/data/tokens?',
      '/data/tokens/historic-dex-trades?name=aave&',
      `${SERIES}?name=aave&interval=5m&start=2024-03-01&`,
    ]) {
      const full = await readPage(`${api.url}${path}limit=500&format=${format}`)
      expect(full.records.length).toBeGreaterThan(4)
      const limit = Math.max(3, Math.ceil(full.records.length / 5))
      const pages = await walk(`${path}limit=${limit}&format=${format}`)
      expect(pages.length).toBe(Math.ceil(full.records.length / limit))
      expect(join(pages)).toEqual(full.records)
    }
  })

  it('continues in the format that Accept selected', async () => {
    const first = await readPage(`${api.url}/data/tokens?limit=2&format=csv`)
    const wished = await fetch(`${api.url}/data/tokens?limit=2`, { headers: { accept: 'text/csv' } })
    expect(wished.headers.get('link')).toBe(first.headers.get('link'))
    expect(first.next).toContain('format=csv')
  })

  it('accepts another limit, fields and format on the next page, and starts by name or id', async () => {
    const full = await readPage(`${api.url}/data/tokens?limit=500`)
    const { next = '' } = await readPage(`${api.url}/data/tokens?limit=4`)
    const cursor = new URL(next).searchParams.get('cursor')
    const rest = await readPage(`${api.url}/data/tokens?limit=500&fields=_id&format=ndjson&cursor=${cursor}`)
    expect(rest.records).toEqual(full.records.slice(4).map((record) => ({ _id: (record as { _id: string })._id })))
    const series = `interval=5m&start=2024-03-01&limit=3`
    const byName = await readPage(`${api.url}${SERIES}?name=AAVE&${series}`)
    const byId = await readPage(`${api.url}${SERIES}?id=${new URL(byName.next ?? '').searchParams.get('id')}&${series}`)
    expect(byId.next).toBe(byName.next)
    const json = await readPage(byName.next ?? '')
    const csv = await readPage(`${byName.next}&format=csv`)
    expect(csv.records.map((row) => (row as { timestamp: string }).timestamp)).toEqual(
      json.records.map((point) => `"${(point as { timestamp: string }).timestamp}"`),
    )
  })

  it('counts points and missing days per page', async () => {
    const pages = await walk(`${DAILY[0]}limit=3`)
    const header = (name: string) => pages.map(({ headers }) => Number(headers.get(name)))
    expect(header('x-series-points')).toEqual([3, 3, 2])
    // The fourth of nine days is missing.
    expect(header('x-series-missing')).toEqual([0, 1, 0])
    for (const { headers } of pages) expect(headers.get('x-data-stale')).toBeNull()
  })

  it('neither skips nor repeats records that keep their position while others move', async () => {
    const names = (page: Page) => page.records.map((record) => (record as { name: string }).name)
    const before = await readPage(`${api.url}/data/tokens?limit=500`)
    const first = await readPage(`${api.url}/data/tokens?limit=5`)
    // The last token becomes the first: it was not served yet and now sorts before the served ones.
    const moved = before.records.at(-1) as { _id: string; name: string }
    const key = database.registry.tokenById.get(moved._id)?.key ?? 0
    await storeQuotes(database.writer, [{ token: key, at: NOW - 1_000, is_latest: true, market_cap: 1e15 }])
    changeFeed.commit('prices')
    const rest = (await walk((first.next ?? '').slice(api.url.length))).flatMap(names)
    const stayed = names(before).filter((name) => name !== moved.name)
    expect([...names(first), ...rest]).toEqual(stayed)
  })
})

describe('cursor', () => {
  const query = 'name=aave&interval=5m&start=2024-03-01'
  it.each([
    ['no JSON', 'x'],
    ['no position', '[1]'],
    ['another token', '[1,1709900000000]'],
    ['a time long before the range', '[TOKEN,-8000000000000000]'],
    ['a time after the range', '[TOKEN,8000000000000000]'],
  ])('returns 400 for a forged position: %s', async (_what, place) => {
    const aave = database.registry.tokens.find(({ name }) => name === 'Aave')
    const parsed = { id: aave?.id, name: undefined, interval: '5m', start: Date.parse('2024-03-01') }
    const scope = toQueryKey(SERIES, parsed)
    const cursor = writeCursor(scope, place.replace('TOKEN', String(aave?.key)))
    for (const format of ['json', 'csv']) {
      const response = await fetch(`${api.url}${SERIES}?${query}&format=${format}&cursor=${cursor}`)
      const body = problemBody.parse(await response.json())
      expect([response.status, body.code, body.param]).toEqual([400, 'invalid_parameter', 'cursor'])
    }
    const honest = writeCursor(scope, JSON.stringify([aave?.key, Date.parse('2024-03-02')]))
    expect((await fetch(`${api.url}${SERIES}?${query}&cursor=${honest}`)).status).toBe(200)
  })

  it.each(['x', '[]', '{}', 'null', '"a"', '[1,2,3,4,5,6]', '[[1]]', '[1e999,0,"x","y",3]', '[0,0,"NaN","",-1]'])(
    'returns 400 for the forged position %s on every route',
    async (place) => {
      const id = database.registry.tokens.find(({ name }) => name === 'Aave')?.id
      const one = { id, name: undefined }
      const series = { ...one, interval: '1h', start: Date.parse('2024-03-01') }
      const requests: [string, object, string][] = [
        ['/data/tokens', {}, ''],
        ['/data/daos/treasury', { sort: '-treasuryData.valueUsd' }, 'sort=-treasuryData.valueUsd'],
        ['/data/tokens/historic-dex-trades', one, 'name=aave'],
        ['/data/tokens/historic-ohlc', series, 'name=aave&interval=1h&start=2024-03-01'],
      ]
      for (const [path, parsed, query] of requests) {
        const cursor = writeCursor(toQueryKey(path, { ...parsed }), place)
        const response = await fetch(`${api.url}${path}?${query}&cursor=${cursor}`)
        const body = problemBody.parse(await response.json())
        expect([response.status, body.code, body.param], path).toEqual([400, 'invalid_parameter', 'cursor'])
      }
    },
  )

  const refused: [string, string][] = [
    ['garbage', '/data/tokens?cursor=garbage'],
    ['empty', '/data/tokens?cursor='],
    ['repeated', '/data/tokens?cursor=a&cursor=b'],
    ['not base64url', '/data/tokens?cursor=%22%27'],
    ['given to a route without pages', '/data/categories?cursor=abc'],
  ]
  it.each(refused)('returns 400 if it is %s', async (_, path) => {
    const body = problemBody.parse(await (await fetch(api.url + path)).json())
    expect([body.status, body.param]).toEqual([400, 'cursor'])
  })

  it('returns 400 if it belongs to another query', async () => {
    const cursorOf = async (path: string) =>
      new URL((await readPage(api.url + path)).next ?? '').searchParams.get('cursor')
    const cursor = await cursorOf('/data/tokens?limit=2')
    const trade = await cursorOf('/data/tokens/historic-dex-trades?name=aave&limit=2')
    for (const path of [
      `/data/tokens?name=aave&cursor=${cursor}`,
      `/data/tokens/holders?cursor=${cursor}`,
      `/data/tokens?cursor=${cursor}x`,
      `/data/tokens?cursor=${trade}`,
      `/data/tokens/historic-dex-trades?name=uniswap&cursor=${trade}`,
      `/data/tokens/historic-dex-trades?name=aave&start=2024-03-01&cursor=${trade}`,
      `${SERIES}?name=aave&interval=5m&start=2024-03-01&cursor=${trade}`,
    ]) {
      const body = problemBody.parse(await (await fetch(api.url + path)).json())
      expect([body.code, body.param], path).toEqual(['invalid_parameter', 'cursor'])
    }
  })

  it('is linked next to the canonical path, and absent on the last page', async () => {
    const alias = await fetch(`${api.url}/data/daos/?limit=2`)
    expect(alias.headers.get('link')).toMatch(
      /^<\?limit=2&cursor=[\w-]+>; rel="next", <\/data\/daos>; rel="canonical"$/,
    )
    for (const path of [
      '/data/daos?limit=500',
      '/data/categories',
      '/data/index/historic',
      '/data/aggregated/market-cap',
    ]) {
      expect((await fetch(api.url + path)).headers.get('link'), path).toBeNull()
    }
  })
})
