import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { selectCases } from '../support/cases.ts'
import { createTestConfig } from '../support/database.ts'
import { storeQuotes } from '../support/quotes.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let [memory, engine]: TestApi[] = []

interface Found {
  type: string
  _id: string
  name: string
  symbol: string | null
  matched: string
  match?: { kind: string; text: string }
}

/** Searches and checks that the cached and the uncached service return the same bytes. */
async function search(query: string): Promise<{ found: Found[]; headers: Headers }> {
  const responses = await Promise.all([memory, engine].map((api) => fetch(`${api?.url}/data/search?${query}`)))
  const bodies = await Promise.all(responses.map(async (response) => response.text()))
  expect(bodies[0]).toBe(bodies[1])
  expect(responses[0]?.status, bodies[0]).toBe(200)
  return { found: JSON.parse(bodies[0] ?? '') as Found[], headers: (responses[0] as Response).headers }
}
const names = (found: readonly Found[]) => found.map(({ type, name }) => `${type} ${name}`)
const tokenOf = (symbol: string) => {
  const token = database.registry.tokens.find((one) => one.symbol === symbol && one.live)
  if (token === undefined) throw new Error(`the registry has no live ${symbol}`)
  return token
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const cap = (symbol: string, market_cap: number) => ({
    token: tokenOf(symbol).key,
    at: NOW,
    is_latest: true,
    market_cap,
  })
  await storeQuotes(database.writer, [cap('UNI', 10), cap('AAVE', 30), cap('COMP', 20)])
  const options = { ...database, changeFeed, now: () => NOW }
  memory = await startApi({ ...options, config })
  engine = await startApi({ ...options, config: { ...config, api: { ...config.api, cacheBytes: 0 } } })
})
afterAll(async () => {
  await Promise.all([memory?.close(), engine?.close()])
  await database?.drop()
})

describe('search', () => {
  it('finds each live token by symbol, name, address and CoinMarketCap id', async () => {
    const live = database.registry.tokens.filter(({ live }) => live)
    for (const { id, symbol, name, contractAddress, cmcId } of selectCases(live, 25, 'search')) {
      for (const text of [symbol, name.toUpperCase(), contractAddress, ...(cmcId === null ? [] : [cmcId])]) {
        const { found } = await search(`limit=100&q=${encodeURIComponent(text)}`)
        const place = found.findIndex(({ _id }) => _id === id)
        // Names and symbols may be those of several.
        expect(place, `${text} of ${name}`).toBeGreaterThanOrEqual(0)
        expect(place, `${text} of ${name}`).toBeLessThan(4)
      }
    }
  })

  it('ranks exact matches before prefixes before substrings, then by market cap', async () => {
    const { found } = await search('q=uni&limit=100')
    expect(found[0]).toMatchObject({ type: 'token', symbol: 'UNI', matched: 'symbol' })
    const all = (await search('q=a&limit=100')).found
    const begins = all.map(({ name, symbol, matched }) => {
      const text = { symbol, name }[matched as 'name']
      return text?.toLowerCase().startsWith('a')
    })
    expect(begins).toContain(true)
    expect(begins).toContain(false)
    expect(begins.lastIndexOf(true)).toBeLessThan(begins.indexOf(false))
    const place = (symbol: string) => all.findIndex((one) => one.symbol === symbol && one.type === 'token')
    expect(place('AAVE')).toBe(0)
    expect(place('COMP')).toBe(-1)
    const inside = (await search('q=p&limit=100')).found.filter(({ name }) => !name.toLowerCase().startsWith('p'))
    const [aave, uni] = ['Compound', 'Uniswap'].map((name) => inside.findIndex((one) => one.name.startsWith(name)))
    expect(aave).toBeLessThan(uni ?? 0)
  })

  it('finds DAOs by slug and by the symbol of their token', async () => {
    const dao = database.registry.daos.find(({ slug, live }) => live && slug.includes('-'))
    expect((await search(`q=${dao?.slug}`)).found[0]).toMatchObject({ type: 'dao', _id: dao?.id, matched: 'slug' })
    expect(names((await search('q=AAVE')).found).slice(0, 2)).toEqual(['token Aave', 'dao Aave'])
  })

  it.each(['lending', 'Lending', 'lend'])(
    'lists the tokens and DAOs of the category %s after all other matches',
    async (q) => {
      const { found } = await search(`limit=100&q=${q}`)
      const daos = database.registry.daos.filter(({ live, categories }) => live && categories.includes('lending'))
      const ids = new Set(found.map(({ _id }) => _id))
      expect(daos.length).toBeGreaterThan(1)
      expect(daos.filter(({ id }) => !ids.has(id))).toEqual([])
      const first = found.findIndex(({ matched }) => matched === 'category')
      expect(found.slice(first).every(({ matched }) => matched === 'category')).toBe(true)
    },
  )

  it('finds the token of today by a former symbol, and says why only if requested', async () => {
    const [found] = (await search('q=MKR')).found
    expect(found).toMatchObject({ type: 'token', symbol: 'SKY', matched: 'formerName' })
    expect(found).not.toHaveProperty('match')
    const [explained] = (await search('q=MKR&include=match')).found
    expect(explained).toEqual({ ...found, match: { kind: 'exact', text: 'MKR' } })
    expect((await search('q=MKR&fields=symbol,match&limit=1')).found).toEqual([
      { symbol: 'SKY', match: { kind: 'exact', text: 'MKR' } },
    ])
  })

  it('finds names with a typing error after all other matches', async () => {
    expect(names((await search('q=uniswpa')).found)).toEqual(['token Uniswap', 'dao Uniswap'])
    const { found } = await search('q=a&include=match&limit=100')
    expect(found.map(({ match }) => match?.kind)).not.toContain('similar')
  })

  it('finds a DAO by the address of a treasury in any letter case', async () => {
    const dao = database.registry.daos.find(({ live, treasuries }) => live && treasuries.length > 0)
    for (const text of [dao?.treasuries[0]?.address, dao?.treasuries[0]?.address.toUpperCase()])
      expect((await search(`q=${text}`)).found).toMatchObject([{ type: 'dao', _id: dao?.id, matched: 'treasury' }])
  })

  it('finds nothing by an address that differs in one letter', async () => {
    const { contractAddress } = tokenOf('UNI')
    expect((await search(`q=${contractAddress.slice(0, -1)}0`)).found).toEqual([])
  })

  it('lists the tokens and DAOs of a chain after those of that name', async () => {
    const { found } = await search('q=arbitrum&limit=100')
    expect(found[0]).toMatchObject({ type: 'token', symbol: 'ARB', matched: 'name' })
    const first = found.findIndex(({ matched }) => matched === 'chain')
    const onChain = found.slice(first)
    expect(onChain.length).toBeGreaterThan(10)
    expect(onChain.every(({ matched }) => matched === 'chain')).toBe(true)
  })

  it('returns 400 for another include', async () => {
    const response = await fetch(`${memory?.url}/data/search?q=uni&include=reason`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_parameter', param: 'include' })
  })

  it('returns an empty list if nothing matches, and counts all matches', async () => {
    const { found, headers } = await search('q=zzqqxxyy')
    expect(found).toEqual([])
    expect(headers.get('x-total-count')).toBe('0')
    const few = await search('q=a&limit=3')
    expect(few.found).toHaveLength(3)
    expect(few.headers.get('link')).toBeNull()
    const total = Number(few.headers.get('x-total-count'))
    expect(total).toBeGreaterThan(3)
    expect((await search('q=a&limit=100')).found).toHaveLength(Math.min(100, total))
  })

  it('does not find tokens that ended', async () => {
    const ended = database.registry.tokens.find(({ live }) => !live)
    const { found } = await search(`q=${ended?.contractAddress}`)
    expect(found).toEqual([])
  })

  it.each(['', '?q=', '?q=%20', `?q=${'x'.repeat(201)}`])('/data/search%s returns 400', async (query) => {
    const response = await fetch(`${memory?.url}/data/search${query}`)
    expect(response.status).toBe(400)
    const code = query === '' ? 'missing_parameter' : 'invalid_parameter'
    expect(await response.json()).toMatchObject({ code, param: 'q' })
  })

  it('returns the other formats', async () => {
    for (const format of ['csv', 'ndjson', 'parquet', 'arrow']) {
      const responses = await Promise.all(
        [memory, engine].map((api) => fetch(`${api?.url}/data/search?q=uni&include=match&format=${format}`)),
      )
      expect(responses.map(({ status }) => status)).toEqual([200, 200])
      const [first, second] = await Promise.all(
        responses.map(async (response) => Buffer.from(await response.arrayBuffer())),
      )
      expect(first).toEqual(second)
    }
  })
})
