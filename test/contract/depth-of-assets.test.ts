import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { treasuryHistoricRoute } from '../../api/routes/daos/treasury/historic.ts'
import { holdingsHistoricRoute } from '../../api/routes/daos/treasury/holdings/historic.ts'
import { holdingsRoute } from '../../api/routes/daos/treasury/holdings.ts'
import { holdersHistoricRoute } from '../../api/routes/tokens/holders/historic.ts'
import { holderLabelsHistoricRoute } from '../../api/routes/tokens/holders/historic-labels.ts'
import { type DaoTreasuryRow, daoTreasuryRow } from '../../shared/datasets/treasury.ts'
import { createKinds } from '../../workers/providers/asset-kinds.ts'
import { type Holding, toTreasuryRow } from '../../workers/providers/treasury-holdings.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao, getToken } from '../support/entities.ts'
import { toNext } from '../support/next-page.ts'
import { createRandom } from '../support/random.ts'

const TODAY = Date.parse('2024-05-06T00:00:00Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR
const NOW = TODAY + 9 * HOUR
const SEED = 2105
const DAYS = 60
const COIN = `0x${'e'.repeat(40)}`
const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'

const config = createTestConfig()
const random = createRandom(SEED)
let database: Awaited<ReturnType<typeof createApiDatabase>>
let [memory, engine]: TestApi[] = []
let rows: DaoTreasuryRow[] = []

const daoOf = (slug: string) => getDao(database.registry, slug)
const uni = () => getToken(database.registry, 'UNI')
const address = (n: number) => `0x${String(n).padStart(40, 'a')}`

/** Returns a random part of the assets at a random part of the addresses. Prices vary a little, some are missing. */
function toHoldings(): Holding[] {
  const assets = [
    ['ethereum', uni().contractAddress, 'UNI', 8],
    ['arbitrum', address(77), 'UNI', 8],
    ['ethereum', USDC, 'USDC', 1],
    ['base', '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', 'USDC', 1],
    ['ethereum', COIN, 'ETH', 3_000],
    ['moon', address(88), 'LP', null],
  ] as const
  return assets.flatMap(([chain, contract, symbol, price]) =>
    [1, 2, 3]
      .filter(() => random.chance(0.7))
      .map((wallet) => {
        const quantity = 1e6 * random.next()
        const valueUsd = price === null || random.chance(0.05) ? null : quantity * price * (1 + random.next() / 500)
        const priceSource = valueUsd === null ? null : random.chance(0.2) ? 'defillama' : 'goldrush'
        return { chain, address: address(wallet), contract, symbol, quantity, valueUsd, priceSource }
      }),
  )
}

/** Rows of two months; one day of seven is missing. */
function toRows(): DaoTreasuryRow[] {
  const dao = { ...daoOf('uniswap'), kindOf: createKinds(database.registry)(daoOf('uniswap')) }
  return Array.from({ length: DAYS }, (_, ago) => TODAY - ago * DAY)
    .filter((_, ago) => ago === 0 || ago % 7 !== 3)
    .map((at) => daoTreasuryRow.parse(toTreasuryRow(dao, at, 'goldrush', { holdings: toHoldings(), spamCount: 4 })))
}

interface Snapshot {
  readonly at: number
  readonly total: number
  readonly shares: readonly number[]
}

/** Three snapshots on most days, none on every fifth. The first snapshot of a day is not at midnight. */
const snapshots: readonly Snapshot[] = Array.from({ length: 30 }, (_, ago) => ago)
  .filter((ago) => ago % 5 !== 4)
  .flatMap((ago) =>
    [2, 9, 20].map((hour) => ({
      at: TODAY - ago * DAY - DAY + hour * HOUR,
      total: 1_000 + ago * 24 + hour,
      shares: Array.from({ length: 14 }, (_, rank) => 10 / (rank + 1) + hour / 100),
    })),
  )

const BURNED = ['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']

/** The first holders include known addresses: two treasuries, the token's contract and two burn addresses. */
const holderOf = (n: number): string => {
  const [first, second] = daoOf('uniswap').treasuries.map((one) => one.address)
  const existing = new Map([
    [1, first],
    [3, second],
    [4, uni().contractAddress],
    [6, BURNED[0]],
    [9, BURNED[1]],
  ])
  return existing.get(n) ?? address(n)
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const { writer } = database
  rows = toRows()
  await writer.insert({ table: 'dao_treasuries', rows })
  // A row in the format used before holdings were stored.
  const tokens = [{ symbol: 'AAVE', quantity: 2, value_usd: 150 }]
  const totals = { dao: daoOf('aave').key, observed_at: new Date(TODAY).toISOString(), value_usd: 150, tokens }
  await writer.insert({ table: 'dao_treasuries', rows: [{ ...totals, source: 'goldrush' }] })
  const held = snapshots.map(({ at, total, shares }) => ({
    ...{ token: uni().key, observed_at: new Date(at).toISOString(), total_holders: total, top100_share: 60 },
    holders: shares.map((share, n) => ({ address: holderOf(n), amount: 100 - n, amount_usd: null, share })),
  }))
  await writer.insert({ table: 'token_holders', rows: held })
  const options = { ...database, changeFeed: createHandFeed(), now: () => NOW }
  memory = await startApi({ ...options, config })
  engine = await startApi({ ...options, config: { ...config, api: { ...config.api, cacheBytes: 0 } } })
})
afterAll(async () => {
  await Promise.all([memory?.close(), engine?.close()])
  await database?.drop()
})

/** Fetches the path and checks that the cached and the uncached service return the same bytes. */
async function request(path: string): Promise<{ status: number; text: string; headers: Headers }> {
  const responses = await Promise.all([memory, engine].map((api) => fetch(`${api?.url}${path}`)))
  const [one, another] = await Promise.all(responses.map((response) => response.text()))
  const ignored = /"requestId":"[^"]*"/
  expect(one?.replace(ignored, ''), path).toBe(another?.replace(ignored, ''))
  const { status, headers } = responses[0] as Response
  return { status, text: one ?? '', headers }
}

type Row = Record<string, unknown>

async function read(route: { path: string; response: z.ZodType }, query: string): Promise<Row[]> {
  const { status, text } = await request(`${route.path}?${query}`)
  expect(status, text.slice(0, 300)).toBe(200)
  return route.response.parse(JSON.parse(text)) as Row[]
}
const holdings = (query: string) => read(holdingsRoute, query)
const sumOf = (records: readonly Row[], member = 'valueUsd') =>
  records.reduce((sum, record) => sum + Number(record[member] ?? 0), 0)
const toAsOf = (at: number) => `asOf=${new Date(at).toISOString()}`

describe('/data/daos/treasury/holdings', () => {
  it('returns the stored holdings, with ids of known tokens and chains and null for unknown values', async () => {
    const { status, text, headers } = await request('/data/daos/treasury/holdings?name=uniswap')
    expect(status).toBe(200)
    const found = holdingsRoute.response.parse(JSON.parse(text)) as Row[]
    const chainOf = (slug: string) => database.registry.chainBySlug.get(slug)?.id ?? null
    const expected = rows[0]?.holdings.map((one) => ({
      dao: daoOf('uniswap').id,
      symbol: one.symbol,
      token: one.contract === uni().contractAddress ? uni().id : null,
      contractAddress: one.contract === COIN ? null : one.contract,
      chain: chainOf(one.chain),
      address: one.address,
      quantity: one.quantity,
      priceUsd: one.value_usd === null ? null : one.value_usd / one.quantity,
      valueUsd: one.value_usd,
      kind: one.kind,
    }))
    expect(found).toEqual(expected)
    expect(new Set(found.map(({ kind }) => kind))).toEqual(new Set(['own', 'stable', 'other']))
    expect(headers.get('X-Total-Count')).toBe(String(rows[0]?.holdings.length))
    expect(headers.get('X-Spam-Count')).toBe('4')
    const sources = new Set(rows[0]?.holdings.flatMap(({ price_source }) => price_source ?? []))
    expect(headers.get('X-Price-Sources')).toBe([...sources].sort().join(', '))
  })

  it('sums up to the value of the treasury record at the same time', async () => {
    const id = daoOf('uniswap').id
    let existing = 0
    for (const _ of Array.from({ length: 25 })) {
      const at = NOW - Math.floor(random.next() * (DAYS + 5) * DAY)
      const { text } = await request(`/data/daos/treasury?id=${id}&${toAsOf(at)}`)
      const [record] = JSON.parse(text) as { treasuryData: { valueUsd: number } }[]
      if (record === undefined) {
        expect(await holdings(`id=${id}&${toAsOf(at)}`), toAsOf(at)).toEqual([])
        continue
      }
      existing += 1
      const { valueUsd } = record.treasuryData
      const sum = sumOf(await holdings(`id=${id}&limit=500&${toAsOf(at)}`))
      expect(Math.abs(sum / valueUsd - 1), toAsOf(at)).toBeLessThan(1e-9)
    }
    expect(existing).toBeGreaterThan(12)
  })

  it('supports sort, filter and paging', async () => {
    const all = await holdings('name=uniswap&limit=500')
    const values = all.map(({ valueUsd }) => Number(valueUsd ?? -1))
    expect(values).toEqual([...values].sort((a, b) => b - a))
    const stable = await holdings('name=uniswap&filter=kind=stable&filter=valueUsd!=null&sort=quantity')
    expect(stable).toEqual(
      all
        .filter(({ kind, valueUsd }) => kind === 'stable' && valueUsd !== null)
        .sort((a, b) => Number(a.quantity) - Number(b.quantity)),
    )
    for (const sort of ['', '&sort=symbol', '&sort=-address,chain']) {
      const pages: Row[] = []
      let next: string | undefined = `/data/daos/treasury/holdings?name=uniswap&limit=4${sort}`
      while (next !== undefined) {
        const { text, headers } = await request(next)
        pages.push(...(JSON.parse(text) as Row[]))
        const query = toNext(headers.get('Link'))
        next = query && `/data/daos/treasury/holdings${query}`
      }
      expect(pages, sort).toEqual(await holdings(`name=uniswap&limit=500${sort}`))
      expect(pages).toHaveLength(all.length)
    }
  })

  it('returns no_data with the reason if a DAO has no holdings', async () => {
    const observed = async (query: string) => {
      const { status, text } = await request(`/data/daos/treasury/holdings?${query}`)
      const { code, detail } = JSON.parse(text) as { code: string; detail: string }
      return [status, code, detail]
    }
    const noData = [404, 'no_data']
    expect(await observed('name=aave')).toEqual([...noData, expect.stringContaining('Only the total per token')])
    expect(await observed('name=gitcoin')).toEqual([...noData, expect.stringContaining('was not read')])
    expect(await holdings(`name=uniswap&${toAsOf(TODAY - 90 * DAY)}`)).toEqual([])
    expect((await observed(`name=uniswap&${toAsOf(NOW + DAY)}`))[1]).toBe('invalid_parameter')
  })
})

describe('/data/daos/treasury/holdings/historic', () => {
  const path = '/data/daos/treasury/holdings/historic'
  const history = (query: string) => read(holdingsHistoricRoute, query)

  /** The assets of a day by a second implementation: the sums over all addresses of a chain. */
  function toAssets({ observed_at, holdings: held }: DaoTreasuryRow) {
    const groups = new Map<string, typeof held>()
    for (const one of held) {
      const key = `${one.chain} ${one.contract}`
      groups.set(key, [...(groups.get(key) ?? []), one])
    }
    const chainOf = (slug: string) => database.registry.chainBySlug.get(slug)?.id ?? null
    const assets = [...groups.values()].map((group) => {
      const [{ symbol, contract, chain, kind }] = group as [(typeof held)[number]]
      const quantity = group.reduce((sum, one) => sum + one.quantity, 0)
      const isUnknown = group.some(({ value_usd }) => value_usd === null)
      const valueUsd = isUnknown ? null : group.reduce((sum, { value_usd }) => sum + (value_usd ?? 0), 0)
      return {
        recordedAt: new Date(observed_at).toISOString(),
        symbol,
        token: contract === uni().contractAddress ? uni().id : null,
        contractAddress: contract === COIN ? null : contract,
        chain: chainOf(chain),
        kind,
        quantity: expect.closeTo(quantity, 4),
        priceUsd: valueUsd === null ? null : expect.closeTo(valueUsd / quantity, 6),
        valueUsd: valueUsd === null ? null : expect.closeTo(valueUsd, 2),
        rank: valueUsd ?? -1,
      }
    })
    return assets
      .sort((a, b) => b.rank - a.rank || (a.symbol < b.symbol ? -1 : 1))
      .map(({ rank: _, ...asset }) => asset)
  }

  it('returns the assets of each day, all addresses of a chain added up', async () => {
    const all = await history('name=uniswap&limit=10000')
    expect(all).toEqual(rows.flatMap(toAssets))
    expect(all.some(({ valueUsd }) => valueUsd === null)).toBe(true)
    const oldestFirst = await history('name=uniswap&limit=10000&order=asc')
    expect(oldestFirst).toEqual([...rows].reverse().flatMap(toAssets))
    const range = `start=${new Date(TODAY - 20 * DAY).toISOString()}&end=${new Date(TODAY - 10 * DAY).toISOString()}`
    const inRange = ({ observed_at }: DaoTreasuryRow) =>
      Date.parse(observed_at) >= TODAY - 20 * DAY && Date.parse(observed_at) < TODAY - 10 * DAY
    expect(await history(`name=uniswap&${range}`)).toEqual(rows.filter(inRange).flatMap(toAssets))
  })

  it('adds up to the points of the history of the total', async () => {
    const points = (await read(treasuryHistoricRoute, 'name=uniswap')) as { recordedAt: string; valueUsd: number }[]
    const all = await history('name=uniswap&limit=10000')
    for (const { recordedAt, valueUsd } of points) {
      const sum = sumOf(all.filter((one) => one.recordedAt === recordedAt))
      expect(Math.abs(sum / valueUsd - 1), recordedAt).toBeLessThan(1e-9)
    }
  })

  it.each(['', '&order=asc', '&kind=stable', '&kind=other&order=asc'])(
    'has the same assets page by page%s',
    async (options) => {
      const all = await history(`name=uniswap&limit=10000${options}`)
      for (const limit of [3, 17]) {
        const pages: Row[] = []
        let next: string | undefined = `${path}?name=uniswap&limit=${limit}${options}`
        while (next !== undefined && pages.length < 40) {
          const { text, headers } = await request(next)
          pages.push(...(JSON.parse(text) as Row[]))
          const query = toNext(headers.get('Link'))
          next = query && `${path}${query}`
        }
        expect(pages).toEqual(all.slice(0, pages.length))
        expect(pages.length).toBeGreaterThanOrEqual(40)
      }
    },
  )

  it('returns only the assets of a kind', async () => {
    const all = await history('name=uniswap&limit=10000')
    for (const kind of ['own', 'stable', 'other'])
      expect(await history(`name=uniswap&limit=10000&kind=${kind}`)).toEqual(all.filter((one) => one.kind === kind))
  })

  it('has null as kind, chain and contract of days with totals only', async () => {
    const total = { symbol: 'AAVE', quantity: 2, priceUsd: 75, valueUsd: 150 }
    const unknown = { token: null, contractAddress: null, chain: null, kind: null }
    expect(await history('name=aave')).toEqual([{ recordedAt: new Date(TODAY).toISOString(), ...unknown, ...total }])
    expect(await history('name=aave&kind=own')).toEqual([])
    expect(await history('name=gitcoin')).toEqual([])
  })

  it('has the assets of several DAOs in one table, with id and name first', async () => {
    const owners = [daoOf('uniswap'), daoOf('aave')].sort((a, b) => (a.id < b.id ? -1 : 1))
    const expected = await Promise.all(
      owners.map(async ({ id, name }) => (await history(`id=${id}&limit=10000`)).map((row) => ({ id, name, ...row }))),
    )
    const query = `${owners.map(({ id }) => `id=${id}`).join('&')}&format=ndjson`
    const toLines = (text: string) =>
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Row)
    const { text } = await request(`${path}?${query}&limit=10000`)
    expect(toLines(text)).toEqual(expected.flat())
    const pages: Row[] = []
    let next: string | undefined = `${path}?${query}&limit=90`
    while (next !== undefined) {
      const page = await request(next)
      pages.push(...toLines(page.text))
      const following = toNext(page.headers.get('Link'))
      next = following && `${path}${following}`
    }
    expect(pages).toEqual(expected.flat())
  })
})

describe('/data/daos/treasury/historic', () => {
  const worth = ({ holdings: held }: DaoTreasuryRow, kind: string) => {
    const values = held.filter((one) => one.kind === kind).map(({ value_usd }) => value_usd)
    if (values.length > 0 && values.every((value) => value === null)) return null
    return values.reduce<number>((sum, value) => sum + (value ?? 0), 0)
  }

  it('returns one point per stored day, newest first, with parts that sum up to the total', async () => {
    const points = await read(treasuryHistoricRoute, 'name=uniswap')
    expect(points.map(({ recordedAt }) => recordedAt)).toEqual(rows.map(({ observed_at }) => observed_at))
    for (const [index, point] of points.entries()) {
      const row = rows[index] as DaoTreasuryRow
      expect(point).toMatchObject({ valueUsd: row.value_usd, assets: row.tokens.length })
      const parts = ['own', 'stable', 'other'].map((kind) => worth(row, kind))
      const found = [point.ownTokenUsd, point.stablecoinUsd, point.otherUsd]
      for (const [at, part] of parts.entries())
        if (part === null) expect(found[at]).toBeNull()
        else expect(Math.abs(Number(found[at]) - part)).toBeLessThanOrEqual(1e-9 * part)
      expect(Math.abs(parts.reduce<number>((sum, part) => sum + (part ?? 0), 0) / row.value_usd - 1)).toBeLessThan(1e-9)
    }
  })

  it('returns null parts for a day with only a stored total', async () => {
    const unknown = { ownTokenUsd: null, stablecoinUsd: null, otherUsd: null }
    expect(await read(treasuryHistoricRoute, 'name=aave')).toEqual([
      { recordedAt: new Date(TODAY).toISOString(), valueUsd: 150, ...unknown, assets: 1 },
    ])
  })

  it('uses the first stored day of each week, at the start of the week', async () => {
    const all = await read(treasuryHistoricRoute, 'name=uniswap')
    const range = 'name=uniswap&start=2024-04-08&end=2024-04-22'
    const weeks = await read(treasuryHistoricRoute, `${range}&interval=7d&order=asc`)
    expect(weeks).toEqual([
      all.findLast(({ recordedAt }) => String(recordedAt) >= '2024-04-08'),
      all.findLast(({ recordedAt }) => String(recordedAt) >= '2024-04-15'),
    ])
    // The first week of the series also has a point, although its Monday has no data.
    const [first] = await read(treasuryHistoricRoute, 'name=uniswap&interval=7d&order=asc')
    expect(first).toEqual({ ...all.at(-1), recordedAt: first?.recordedAt })
    expect(new Date(String(first?.recordedAt)).getUTCDay()).toBe(1)
    expect(new Date(String(all.at(-1)?.recordedAt)).getUTCDay()).not.toBe(1)
  })
})

describe('/data/tokens/holders/historic', () => {
  it('returns the first snapshot of each day, newest first', async () => {
    const firsts = snapshots.filter(({ at }) => at % DAY === 2 * HOUR)
    const sumOf = (shares: readonly number[], places: readonly number[]) =>
      Number(places.reduce((sum, place) => sum + (shares[place] ?? 0), 0).toFixed(10))
    const points = await read(holdersHistoricRoute, 'name=uniswap')
    expect(points).toEqual(
      firsts.map(({ at, total, shares }) => ({
        recordedAt: new Date(at - 2 * HOUR).toISOString(),
        totalHolders: total,
        top10Share: sumOf(shares, [...shares.keys()].slice(0, 10)),
        top100Share: 60,
      })),
    )
    expect(await read(holderLabelsHistoricRoute, 'name=uniswap')).toEqual(
      firsts.map(({ at, shares }) => ({
        recordedAt: new Date(at - 2 * HOUR).toISOString(),
        treasuryShare: sumOf(shares, [1, 3]),
        contractShare: sumOf(shares, [4]),
        burnShare: sumOf(shares, [6, 9]),
      })),
    )
    const { headers } = await request('/data/tokens/holders/historic?name=uniswap')
    expect(headers.get('X-Series-Missing')).toBe('5')
    expect(headers.get('X-Data-As-Of')).toBe(new Date(TODAY - DAY + 2 * HOUR).toISOString())
    expect(headers.get('X-Data-Stale')).toBeNull()
  })

  it('rejects interval=7d and returns no points for a token without snapshots', async () => {
    expect((await request('/data/tokens/holders/historic?name=uniswap&interval=7d')).status).toBe(400)
    expect(await read(holdersHistoricRoute, 'name=aave')).toEqual([])
  })
})
