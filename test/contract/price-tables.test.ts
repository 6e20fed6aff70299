import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { problemBody } from '../../api/problem/problem.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import { toNext } from '../support/next-page.ts'
import { readTable } from '../support/tables.ts'

/** Fixed clock: results do not depend on the time of the run. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const SERIES = '/data/tokens/historic-financial'

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
/** Sorted by id, like the tables. The last token has no data. */
let tokens: Token[]

interface Row {
  id: string
  name: string
  symbol: string
  timestamp: string
  quote: object
}

const target = (query: string) => fetch(`${api.url}${SERIES}?${query}`)
const rowsOf = async (response: Response) => {
  expect(response.status).toBe(200)
  return (await readTable('ndjson', Buffer.from(await response.arrayBuffer()))) as Row[]
}
const idsOf = (selected: readonly Token[]) => selected.map(({ id }) => id).join()
const seriesOf = async ({ id, name, symbol }: Token, query: string) => {
  const { data } = (await (await target(`id=${id}&${query}`)).json()) as { data: object[] }
  return data.map((point) => ({ id, name, symbol, ...point }))
}
const missingOf = ({ headers }: Response) => Number(headers.get('x-series-missing'))

beforeAll(async () => {
  database = await createApiDatabase(config)
  const chosen = database.registry.tokens.filter(({ symbol }) => ['AAVE', 'UNI', 'COMP', 'ENS'].includes(symbol))
  tokens = chosen.sort((a, b) => (a.id < b.id ? -1 : 1))
  const [first, second, third] = tokens as [Token, Token, Token]
  const keys = [first.key, second.key]
  await storeMarket(database.writer, { keys, until: NOW - 60_000, points: 40, stepMs: 300_000 })
  // A gap of six hours, and two observations in each bucket.
  for (const until of [NOW - 60_000, NOW - 6 * 3_600_000]) {
    await storeMarket(database.writer, { keys: [third.key], until, points: 20, stepMs: 150_000 })
  }
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe('tables of several tokens', () => {
  it.each(['5m', '30m', '1h', '1d', '7d'])('contain the %s points, grouped by token', async (interval) => {
    const query = `interval=${interval}&start=2024-03-01`
    const expected = (await Promise.all(tokens.map((token) => seriesOf(token, query)))).flat()
    expect(expected.length).toBeGreaterThan(2)
    const response = await target(`id=${idsOf([...tokens].reverse())}&${query}&format=ndjson`)
    expect(await rowsOf(response)).toEqual(expected)
    expect(response.headers.get('x-series-points')).toBe(String(expected.length))
    const singles = await Promise.all(tokens.map(({ id }) => target(`id=${id}&${query}`)))
    expect(missingOf(response)).toBe(singles.map(missingOf).reduce((a, b) => a + b))
    expect(response.headers.get('content-disposition')).toMatch(/="4-tokens-\w+-2024-03-01\.ndjson"$/)
  })

  it('accept ids, names and both, and contain each token once', async () => {
    const [first, second] = tokens as [Token, Token]
    const query = 'interval=1h&start=2024-03-10&format=ndjson'
    const bodies = [
      `id=${first.id}&id=${second.id}`,
      `id[]=${second.id}&id[]=${first.id}`,
      `name=${encodeURIComponent(first.name)}&name=${encodeURIComponent(second.name.toUpperCase())}`,
      `id=${second.id},${first.id}&name=${encodeURIComponent(first.name)}`,
    ].map(async (who) => (await target(`${who}&${query}`)).text())
    const all = await Promise.all(bodies)
    expect(new Set(all).size).toBe(1)
    expect(
      new Set((await rowsOf(await target(`id=${idsOf([first, second])}&${query}`))).map(({ id }) => id)).size,
    ).toBe(2)
  })

  it.each([
    [1, '10:00'],
    [7, '04:00'],
    [25, '04:00'],
    [40, '04:00'],
  ])('return the same rows in pages of %i as in one response', async (limit, start) => {
    const query = `id=${idsOf(tokens)}&interval=5m&start=2024-03-10T${start}:00Z&format=ndjson`
    const full = await target(query)
    const expected = await rowsOf(full)
    expect(expected.length).toBeGreaterThan(2 * limit)
    const walked: Row[] = []
    let missing = 0
    let url: string | undefined = `${api.url}${SERIES}?${query}&limit=${limit}`
    while (url !== undefined) {
      const response: Response = await fetch(url)
      walked.push(...(await rowsOf(response)))
      missing += missingOf(response)
      const next = toNext(response.headers.get('link'))
      url = next === undefined ? undefined : new URL(next, url).href
    }
    expect(walked).toEqual(expected)
    expect(missing).toBe(missingOf(full))
  })

  it('are stale if none of their tokens has recent data', async () => {
    const query = `id=${idsOf(tokens)}&interval=1h&start=2024-03-10&format=csv`
    expect((await target(query)).headers.get('x-data-stale')).toBeNull()
    const later = await startApi({ config, ...database, changeFeed, now: () => NOW + 9 * 60_000 + 1 })
    try {
      expect((await fetch(`${later.url}${SERIES}?${query}`)).headers.get('x-data-stale')).toBe('true')
      const closed = await fetch(`${later.url}${SERIES}?${query}&end=2024-03-10T10:00:00Z`)
      expect(closed.headers.get('x-data-stale')).toBeNull()
    } finally {
      await later.close()
    }
  })

  const id = 'f'.repeat(24)
  const mistakes: [string, string, string][] = [
    ['name=uniswap&name=aave&interval=1d&start=2024-01-01', 'invalid_parameter', 'name'],
    ['format=csv&interval=1d&start=2024-01-01', 'missing_parameter', 'id'],
    [`format=csv&id=${id}&name=aave&interval=1d&start=2024-01-01`, 'not_found', 'id'],
    ['format=csv&name=aave&name=a&interval=1d&start=2024-01-01', 'ambiguous_name', 'name'],
    ['format=csv&name=aave&interval=1d&start=2024-01-02&end=2024-01-01', 'invalid_parameter', 'end'],
    ['format=csv&name=aave&interval=1d&start=2024-01-02&limit=1000001', 'invalid_parameter', 'limit'],
  ]
  it.each(mistakes)('return an error for %s with code %s', async (query, code, param) => {
    const body = problemBody.parse(await (await target(query)).json())
    expect([body.code, body.param]).toEqual([code, param])
  })

  it('return 400 if the points exceed the limit of one response, unless they are paged', async () => {
    const ids = idsOf(database.registry.tokens.slice(0, 40))
    const query = `id=${ids}&interval=5m&start=2022-02-01&format=csv`
    const body = problemBody.parse(await (await target(query)).json())
    expect([body.code, body.param]).toEqual(['invalid_parameter', 'limit'])
    expect((await target(`${query}&limit=10`)).status).toBe(200)
  })
})
