import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toMembers } from '../../api/formats/formats.ts'
import { routes } from '../../api/routes.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { isOfOne } from '../support/documented.ts'
import { getToken } from '../support/entities.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { toNext } from '../support/next-page.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'

/** A fixed clock, so that no result depends on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const QUESTIONS = countCases(2)

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
/** One API caches lists, one caches nothing, and the cache of one is smaller than any list. */
let [cached, uncached, small]: TestApi[] = []

type Row = Readonly<Record<string, unknown>>
type Value = number | string | boolean | null

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  const options = { ...database, changeFeed, now: () => NOW }
  cached = await startApi({ ...options, config })
  const withCache = (cacheBytes: number) => ({ ...config, api: { ...config.api, cacheBytes } })
  uncached = await startApi({ ...options, config: withCache(0) })
  small = await startApi({ ...options, config: withCache(12_000) })
})
afterAll(async () => {
  await Promise.all([cached, uncached, small].map((api) => api?.close()))
  await database?.drop()
})

/** Lists of tokens or DAOs. Lists of one entity also need its name. */
const LISTS = routes.filter((route) => 'sort' in route.query && 'category' in route.query && !isOfOne(route))

const toUrl = (api: TestApi | undefined, path: string, parameters: readonly [string, string][]) =>
  `${api?.url}${path}?${new URLSearchParams([...parameters])}`

/** The response of the first API. The second one has to send the same bytes and headers. */
async function request(
  path: string,
  parameters: readonly [string, string][],
): Promise<{ headers: Headers; body: string }> {
  const responses = await Promise.all([cached, uncached].map((api) => fetch(toUrl(api, path, parameters))))
  const bodies = await Promise.all(responses.map(async (response) => response.text()))
  const [first, second] = responses as [Response, Response]
  const requested = toUrl(undefined, path, parameters)
  expect(bodies[0], requested).toBe(bodies[1])
  for (const header of ['etag', 'link', 'x-total-count', 'x-data-as-of', 'content-type', 'content-disposition']) {
    expect(first.headers.get(header), `${requested}: ${header}`).toBe(second.headers.get(header))
  }
  expect(first.status, `${requested}: ${bodies[0]}`).toBe(200)
  return { headers: first.headers, body: bodies[0] ?? '' }
}

function toValue(row: Row, path: string): Value {
  let value: unknown = row
  for (const name of path.split('.')) value = (value as Row | null)?.[name] ?? null
  return typeof value === 'string' ? value.toLowerCase() : (value as Value)
}

function compare(a: Value, b: Value): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null)
  return a < b ? -1 : a > b ? 1 : 0
}

/** The whole list in the order of `sort`, by a second implementation. */
function sortNaively(rows: readonly Row[], sort: string): Row[] {
  return [...rows].sort((a, b) => {
    for (const word of sort.split(',')) {
      const path = word.replace('-', '')
      const [one, another] = [toValue(a, path), toValue(b, path)]
      const order = compare(one, another)
      if (order !== 0) return word.startsWith('-') && one !== null && another !== null ? -order : order
    }
    return compare(a.name as string, b.name as string) || compare(a._id as string, b._id as string)
  })
}

function fitsNaively(row: Row, filter: string): boolean {
  const [, path = '', operator, literal = ''] = /^([\w.]+)(>=|<=|!=|>|<|=)(.*)$/.exec(filter) ?? []
  const value = toValue(row, path)
  if (literal.toLowerCase() === 'null') return (value === null) === (operator === '=')
  if (value === null) return false
  const order = typeof value === 'number' ? value - Number(literal) : compare(String(value), literal.toLowerCase())
  return { '>=': order >= 0, '<=': order <= 0, '>': order > 0, '<': order < 0, '=': order === 0, '!=': order !== 0 }[
    operator as '='
  ]
}

/** A sort and some filters with values of these records. */
function toQuestion(
  random: ReturnType<typeof createRandom>,
  members: ReturnType<typeof toMembers>,
  rows: readonly Row[],
) {
  const paths = [...members.keys()]
  const keys = new Set(Array.from({ length: 1 + random.below(3) }, () => random.pick(paths)))
  const sort = [...keys].map((path) => `${random.chance(0.5) ? '-' : ''}${path}`).join()
  const filters = Array.from({ length: random.below(3) }, () => {
    const member = members.get(random.pick(paths))
    const value = toValue(random.pick(rows), member?.path ?? '')
    const isOrdered = member?.kind === 'number' || member?.kind === 'time'
    const operators = value === null || !isOrdered ? ['=', '!='] : ['=', '!=', '<', '>', '<=', '>=']
    return `${member?.path}${random.pick(operators)}${member?.kind === 'time' ? String(value).toUpperCase() : value}`
  })
  return { sort: random.chance(0.8) ? sort : undefined, filters }
}

/** The records of all pages, each page by the link of the one before. */
async function readPages(path: string, parameters: Record<string, string>): Promise<Row[]> {
  const together: Row[] = []
  let next: URLSearchParams | undefined = new URLSearchParams(parameters)
  while (next !== undefined) {
    const page = await request(path, [...next])
    together.push(...(JSON.parse(page.body) as Row[]))
    const query = toNext(page.headers.get('link'))
    next = query === undefined ? undefined : new URLSearchParams(query)
  }
  return together
}

describe('lists of tokens and DAOs', () => {
  it('has twelve routes', () => {
    expect(LISTS.map(({ path }) => path)).toHaveLength(12)
  })

  it.each(LISTS.map(({ path }) => path))(
    '%s returns the expected records for random queries, cached or not',
    async (path) => {
      const record = LISTS.find((route) => route.path === path)?.record
      if (record === undefined) throw new Error(`${path} has no record`)
      const members = toMembers(record)
      const random = createRandom(SEED)
      const rows = JSON.parse((await request(path, [['limit', '500']])).body) as Row[]
      expect(rows.length).toBeGreaterThan(4)
      for (let n = 0; n < QUESTIONS; n++) {
        const { sort, filters } = toQuestion(random, members, rows)
        const queries = filters.map((filter): [string, string] => ['filter', filter])
        if (sort !== undefined) queries.push(['sort', sort])
        const found = rows.filter((row) => filters.every((filter) => fitsNaively(row, filter)))
        const expected = sort === undefined ? found : sortNaively(found, sort)
        const limit = 1 + random.below(rows.length)
        const fields = random.chance(0.4) ? [random.pick(Object.keys(record.shape)), '_id'] : undefined
        const page = await request(path, [
          ...queries,
          ['limit', String(limit)],
          ...(fields ?? []).map((one): [string, string] => ['fields', one]),
        ])
        const required = expected.slice(0, limit)
        const isSelected = (name: string) => fields === undefined || fields.includes(name)
        expect(JSON.parse(page.body), JSON.stringify(queries)).toEqual(
          required.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => isSelected(name)))),
        )
        expect(page.headers.get('x-total-count')).toBe(String(found.length))
        await request(path, [...queries, ['limit', String(limit)], ['format', random.pick(['csv', 'ndjson', 'arrow'])]])
      }
    },
  )

  it.each(LISTS.map(({ path }) => path))(
    '%s returns every record once over the pages of a sorted list',
    async (path) => {
      const record = LISTS.find((route) => route.path === path)?.record
      if (record === undefined) throw new Error(`${path} has no record`)
      const random = createRandom(SEED)
      const members = [...toMembers(record).keys()].filter((member) => member !== 'name')
      const sort = `-${random.pick(members)},name`
      const { body } = await request(path, [
        ['sort', sort],
        ['limit', '500'],
      ])
      expect(await readPages(path, { sort, limit: '30' }), sort).toEqual(JSON.parse(body))
    },
  )

  it('selects by category and chain, by id or slug', async () => {
    const full = JSON.parse((await request('/data/daos', [['limit', '500']])).body) as Row[]
    for (const [param, member, records] of [
      ['category', 'category', database.registry.categories],
      ['chain', 'chain', database.registry.chains],
    ] as const) {
      for (const { id, slug } of records.slice(0, 4)) {
        const expected = full.filter((row) => (row[member] as string[]).includes(id))
        for (const value of [id, slug]) {
          const page = await request('/data/daos', [
            [param, value],
            ['limit', '500'],
          ])
          expect(JSON.parse(page.body)).toEqual(expected)
          expect(page.headers.get('x-total-count')).toBe(String(expected.length))
        }
      }
    }
    const [first, second] = database.registry.categories
    const either = JSON.parse(
      (
        await request('/data/daos', [
          ['category', `${first?.slug},${second?.slug}`],
          ['limit', '500'],
        ])
      ).body,
    )
    const isEither = (row: Row) => [first?.id, second?.id].some((id) => (row.category as unknown[]).includes(id))
    expect(either).toEqual(full.filter(isEither))
    expect(JSON.parse((await request('/data/tokens', [['category', 'f'.repeat(24)]])).body)).toEqual([])
  })

  it('returns the same bytes when the cache is smaller than the list', async () => {
    for (const { path } of LISTS) {
      for (const query of ['limit=3&sort=-name', 'limit=500', 'limit=2&filter=name!=null&format=csv']) {
        const [one, another] = await Promise.all([cached, small].map((api) => fetch(`${api?.url}${path}?${query}`)))
        expect(await one?.text()).toBe(await another?.text())
        expect(one?.headers.get('etag')).toBe(another?.headers.get('etag'))
      }
    }
  })

  it('pages in the order of long texts by their first characters', async () => {
    // Equal beginnings are ties, which the name breaks. The end of each text would reverse the order.
    const text = "concat(if(key % 2 = 0, 'even ', 'odd '), repeat('😀\\n', 2000), toString(1000 - position(name, 'a')))"
    await database.writer.command({
      name: 'long-texts',
      sql: `ALTER TABLE daos UPDATE description = ${text}, mission = ${text} WHERE true SETTINGS mutations_sync = 2`,
    })
    changeFeed.commit('daos')
    const sort = '-description,mission'
    const pages = await readPages('/data/daos', { sort, limit: '30' })
    const begins = (row: Row) => (String(row.description).startsWith('odd') ? 0 : 1)
    expect(pages).toEqual(sortNaively(pages, 'live').sort((a, b) => begins(a) - begins(b)))
    expect(new Set(pages.map(({ _id }) => _id)).size).toBe(database.registry.daos.filter(({ live }) => live).length)
    expect(String(pages[0]?.description).length).toBeGreaterThan(2000)
  })

  it('loads the records again after a change of one of their datasets', async () => {
    const url = `${cached?.url}/data/tokens?limit=1&sort=-financialData.price`
    const before = (await (await fetch(url)).json()) as Row[]
    const dearest = { token: getToken(database.registry, 'UNI').key, price: 1e9 }
    await storeQuotes(database.writer, [{ ...dearest, at: NOW - 10_000, is_latest: true }])
    expect(await (await fetch(url)).json()).toEqual(before)
    changeFeed.commit('prices')
    expect(await (await fetch(url)).json()).toMatchObject([{ symbol: 'UNI', financialData: { price: 1e9 } }])
  })

  it.each([
    ['/data/tokens?sort=financialData.marketcapp', 'sort', 'Did you mean "financialData.marketCap"?'],
    ['/data/tokens?sort=name,-name', 'sort', 'twice'],
    ['/data/tokens?sort=name,symbol,live,chain', 'sort', 'at most 3'],
    ['/data/daos?sort=category', 'sort', 'list'],
    ['/data/tokens?filter=symbol~UNI', 'filter', 'for example filter=financialData.marketCap>=1000000'],
    ['/data/daos/ratings?filter=ratings.lastUpdated<2', 'filter', 'for example filter=ratings.lastUpdated>=2026-01-01'],
    ['/data/tokens?filter=symbol%3EUNI', 'filter', 'text with = and != only'],
    ['/data/tokens?filter=live%3E=true', 'filter', 'true and false with = and != only'],
    ['/data/tokens?filter=financialData.price%3E=many', 'filter', 'a number or null'],
    ['/data/tokens?filter=financialData.price%3E=null', 'filter', 'null with = and != only'],
    ['/data/tokens?filter=financialData.lastUpdated%3C=noon', 'filter', 'a time'],
    [`/data/tokens?${Array.from({ length: 11 }, (_, n) => `filter=decimal!=${n}`).join('&')}`, 'filter', 'at most 10'],
    ['/data/tokens?category=lendng', 'category', 'Did you mean "lending"?'],
    ['/data/tokens?chain=etherium', 'chain', 'Did you mean "ethereum"?'],
    ['/data/tokens?asOf=2024-03-11', 'asOf', 'future'],
  ])('%s returns 400 with a hint', async (path, param, words) => {
    for (const api of [cached, uncached]) {
      const response = await fetch(`${api?.url}${path}`)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({
        code: 'invalid_parameter',
        param,
        detail: expect.stringContaining(words),
      })
    }
  })
})
