import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Format } from '../../api/formats/formats.ts'
import { problemBody } from '../../api/problem/problem.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { DELEGATE, storeEveryDataset } from '../support/every-dataset.ts'
import { toNext } from '../support/next-page.ts'
import { readTable } from '../support/tables.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storeEveryDataset(database.writer, database.registry, NOW)
  // More copies of each trade than a page expects.
  const again = 'INSERT INTO dex_trades SELECT * REPLACE(collected_at + 1 AS collected_at) FROM dex_trades'
  for (let copy = 0; copy < 3; copy++) await database.writer.command({ name: 'store-again', sql: again })
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

interface Owner {
  readonly id: string
  readonly name: string
}

interface Page {
  readonly rows: object[]
  readonly missing: number
  readonly next: string | undefined
}

async function read(path: string): Promise<Page> {
  const response = await fetch(api.url + path)
  expect(response.status, path).toBe(200)
  const lines = (await response.text()).split('\n').slice(0, -1)
  return {
    rows: lines.map((line) => JSON.parse(line) as object),
    missing: Number(response.headers.get('x-series-missing')),
    next: toNext(response.headers.get('link')),
  }
}

/** Tables of several owners have null for a member that the points of one owner leave out. */
const withoutAbsent = ({ isPartial, ...row }: { isPartial?: boolean | null }) =>
  isPartial === null || isPartial === undefined ? row : { ...row, isPartial }

/** Reads all pages of a query, and returns their rows and the sum of their missing buckets. */
async function walk(path: string, query: string): Promise<Omit<Page, 'next'>> {
  const rows: object[] = []
  let missing = 0
  for (let next: string | undefined = query; next !== undefined; ) {
    const page: Page = await read(path + next)
    rows.push(...page.rows)
    missing += page.missing
    next = page.next
  }
  return { rows, missing }
}

/** Two owners with data, and one without. */
function selectOwners(type: 'daos' | 'tokens'): Owner[] {
  const { daos, tokens } = database.registry
  const stored = daos.filter(({ live, token }) => live && token !== null)
  const own = [stored[0], stored[1], stored.at(-1)]
  const selected =
    type === 'daos'
      ? daos.filter((dao) => own.includes(dao))
      : tokens.filter(({ id }) => own.some((dao) => dao?.token === id))
  return selected.toSorted((a, b) => a.key - b.key)
}

/**
 * Page sizes that end pages inside an owner, at the last row of each owner, and one row after it. Small ones
 * are left out if they need many pages.
 */
function selectLimits(counts: readonly number[]): number[] {
  const total = counts.reduce((sum, count) => sum + count, 0)
  const ends = counts.map((_, at) => counts.slice(0, at + 1).reduce((sum, count) => sum + count, 0))
  const limits = [1, 2, 7, total - 1, total, ...ends.slice(0, -1).flatMap((end) => [end, end + 1])]
  return [...new Set(limits)].filter((limit) => limit >= 1 && limit <= total && total / limit <= MAX_PAGES)
}
const MAX_PAGES = 12

const idsOf = (owners: readonly Owner[]) => `id=${owners.map(({ id }) => id).join()}`

const RANGE = 'start=2024-02-20&end=2024-03-09'
const CASES = [
  ['/data/daos/treasury/historic', 'daos', ['interval=7d', `interval=7d&${RANGE}`]],
  ['/data/daos/fees/historic', 'daos', ['interval=7d&start=2024-02-01', 'interval=7d', `interval=1d&${RANGE}`]],
  ['/data/daos/socials/historic-twitter', 'daos', ['', 'start=1970-01-01']],
  ['/data/daos/treasury/holdings/historic', 'daos', ['kind=stable', 'kind=stable&order=asc']],
  ['/data/tokens/holders/historic', 'tokens', [RANGE, '']],
  ['/data/tokens/holders/historic-labels', 'tokens', ['', RANGE]],
  ['/data/tokens/historic-financial', 'tokens', ['interval=1h&start=2024-03-10', 'interval=7d&start=2024-02-01']],
  [
    '/data/tokens/historic-ohlc',
    'tokens',
    ['interval=1h&start=2024-03-10', 'interval=30m&start=2024-03-10T10:00:00Z&end=2024-03-10T11:00:00Z'],
  ],
  ['/data/tokens/historic-dex-ohlcv', 'tokens', ['interval=1d&start=2024-03-01', 'interval=7d&start=2022-02-01']],
  [
    '/data/tokens/historic-dex-trades',
    'tokens',
    ['start=2024-03-10T11:50:00Z', 'start=2024-03-10T11:30:00Z&order=asc', 'end=2024-03-10T09:45:00Z'],
  ],
] as const

describe.each(CASES)('table of several owners of %s', (path, type, queries) => {
  it.each(queries)(
    'has the rows of each owner alone, one owner after the other, with the query "%s"',
    async (query) => {
      const owners = selectOwners(type)
      const rest = `${query}&limit=1000&format=ndjson`
      const singles = await Promise.all(owners.map(({ id }) => read(`${path}?id=${id}&${rest}`)))
      const expected = owners.flatMap(({ id, name }, at) =>
        (singles[at]?.rows ?? []).map((row) => ({ id, name, ...row })),
      )
      expect(expected.length).toBeGreaterThan(1)
      const together = await read(`${path}?${idsOf(owners.toReversed())}&${rest}`)
      expect(together.rows.map(withoutAbsent)).toEqual(expected)
      expect(together.missing).toBe(singles.reduce((sum, { missing }) => sum + missing, 0))
      const all = { rows: together.rows, missing: together.missing }
      for (const limit of selectLimits(singles.map(({ rows }) => rows.length))) {
        const pages = await walk(path, `?${idsOf(owners)}&${query}&limit=${limit}&format=ndjson`)
        expect(pages, `limit ${limit}`).toEqual(all)
      }
    },
  )

  it('has the same rows in every format, with id and name first', async () => {
    const [query = ''] = queries
    const target = `${path}?${idsOf(selectOwners(type))}&${query}&limit=1000`
    const { rows } = await read(`${target}&format=ndjson`)
    const [first = {}] = rows
    expect(Object.keys(first).slice(0, 2)).toEqual(['id', 'name'])
    for (const format of ['csv', 'parquet', 'arrow'] as const satisfies Format[]) {
      const response = await fetch(`${api.url}${target}&format=${format}`)
      const table = (await readTable(format, Buffer.from(await response.arrayBuffer()))) as Record<string, string>[]
      expect(table.map(({ id = '' }) => id.replaceAll('"', ''))).toEqual(rows.map((row) => (row as Owner).id))
      expect(Object.keys(table[0] ?? {}).slice(0, 2)).toEqual(['id', 'name'])
    }
  })

  it('is JSON of one owner only', async () => {
    const response = await fetch(`${api.url}${path}?${idsOf(selectOwners(type))}&${queries[0]}`)
    expect(response.status).toBe(400)
    expect(problemBody.parse(await response.json())).toMatchObject({ code: 'invalid_parameter', param: 'id' })
  })
})

it.each([
  ['/data/tokens/historic-ohlc', 'interval=1d&order=desc', 'order'],
  ['/data/tokens/historic-dex-ohlcv', 'points=10', 'points'],
  ['/data/tokens/historic-ohlc', 'interval=1d&fill=null', 'fill'],
  ['/data/tokens/holders/historic-labels', 'order=asc', 'order'],
])('%s with %s is for one token', async (path, query, param) => {
  const target = `${api.url}${path}?${idsOf(selectOwners('tokens'))}&start=2024-03-01&${query}&format=csv`
  const response = await fetch(target)
  expect(problemBody.parse(await response.json())).toMatchObject({ code: 'invalid_parameter', param })
})

describe('table of several delegates', () => {
  const path = '/data/daos/governance/delegates/historic'
  const unknown = `0x${'9'.repeat(40)}`
  const daosOf = (...slugs: string[]) =>
    slugs.flatMap((slug) => database.registry.daoBySlug.get(slug) ?? []).sort((a, b) => a.key - b.key)

  it.each([
    [['aave', 'uniswap'], 2],
    [['aave'], 2],
    [['aave', 'uniswap'], 1],
  ])('has the changes of each alone, of %j and %i addresses', async (slugs, count) => {
    const daos = daosOf(...slugs)
    const all = await fetch(`${api.url}/data/daos/governance/delegates?name=aave`)
    const known = ((await all.json()) as { delegate: string }[]).map(({ delegate }) => delegate)
    const others = known.filter((delegate) => delegate !== DELEGATE)
    const addresses = [DELEGATE, others[0] ?? '', unknown].slice(0, count === 1 ? 1 : 3).sort()
    const expected: object[] = []
    const counts: number[] = []
    for (const { id, name } of daos)
      for (const delegate of addresses) {
        const { rows } = await read(`${path}?id=${id}&address=${delegate}&format=ndjson`)
        expected.push(...rows.map((row) => ({ id, name, delegate, ...row })))
        counts.push(rows.length)
      }
    expect(expected.length).toBeGreaterThan(5)
    const query = `?${idsOf(daos)}&address=${addresses.join()}&format=ndjson`
    expect((await read(path + query)).rows).toEqual(expected)
    for (const limit of selectLimits(counts))
      expect((await walk(path, `${query}&limit=${limit}`)).rows, `limit ${limit}`).toEqual(expected)
  })

  it('continues in another format for one delegate', async () => {
    const [dao] = daosOf('aave')
    const first = await fetch(`${api.url}${path}?id=${dao?.id}&address=${DELEGATE}&limit=2`)
    const next = toNext(first.headers.get('link'))
    const { rows } = await read(`${path}${next}&format=ndjson`)
    const { rows: all } = await read(`${path}?id=${dao?.id}&address=${DELEGATE}&format=ndjson`)
    expect(rows).toEqual(all.slice(2, 4))
  })

  it.each([
    [`name=aave&name=lido&address=${DELEGATE}&format=csv`, 'no_data', undefined],
    [`name=aave&address=${DELEGATE},${unknown}`, 'invalid_parameter', 'address'],
    [`name=aave&address=${DELEGATE},0x12&format=csv`, 'invalid_parameter', 'address'],
    ['name=aave&format=csv', 'missing_parameter', 'address'],
  ])('returns an error for %s with code %s', async (query, code, param) => {
    const body = problemBody.parse(await (await fetch(`${api.url}${path}?${query}`)).json())
    expect([body.code, body.param]).toEqual([code, param])
  })
})
