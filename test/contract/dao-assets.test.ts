import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ratingsRoute } from '../../api/routes/daos/ratings.ts'
import { treasuryKindsRoute } from '../../api/routes/daos/treasury/kinds.ts'
import { treasuryRoute } from '../../api/routes/daos/treasury.ts'
import type { DaoRatingRow } from '../../shared/datasets/ratings.ts'
import type { DaoTreasuryRow } from '../../shared/datasets/treasury.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao, getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const TODAY = Date.parse('2024-03-10T00:00:00Z')
const DAY = 86_400_000
/** Descending market cap: ENS, UNI, AAVE. Gitcoin has no quote. */
const SLUGS = ['uniswap', 'aave', 'ens', 'gitcoin']

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const daoOf = (slug: string) => getDao(database.registry, slug)
const at = (daysAgo: number) => new Date(TODAY - daysAgo * DAY).toISOString()

function toTreasury(slug: string, daysAgo: number, value: number, source = 'goldrush'): DaoTreasuryRow {
  const tokens = [
    { symbol: 'UNI', quantity: 1.5, value_usd: value },
    { symbol: 'LP', quantity: 123456789.12345679, value_usd: null },
  ]
  return {
    dao: daoOf(slug).key,
    observed_at: at(daysAgo),
    value_usd: value,
    tokens,
    holdings: [],
    spam_count: null,
    spam: [],
    unread: [],
    source,
  }
}

/** The same with holdings: 60 % of the value in own tokens, 30 % in stablecoins, and 10 % in others. */
function withKinds(row: DaoTreasuryRow): DaoTreasuryRow {
  const rest = { chain: 'ethereum', address: null, contract: null, price_source: 'goldrush', quantity: 1 }
  const toHolding = (kind: 'own' | 'stable' | 'other', share: number) => ({
    ...{ ...rest, kind, symbol: kind },
    value_usd: row.value_usd * share,
  })
  return { ...row, holdings: [toHolding('own', 0.6), toHolding('stable', 0.3), toHolding('other', 0.1)] }
}

function toRating(slug: string, daysAgo: number, overall: number): DaoRatingRow {
  return {
    dao: daoOf(slug).key,
    observed_at: at(daysAgo),
    rated_at: '2023-12-24T18:30:00.000Z',
    overall_rating: overall,
    fundamental_rating: 61.5,
    governance: 1,
    team: 2,
    competitive_moat: 3,
    value_proposition: 4,
    token_economics: 5,
    source: 'Somebody',
    report_url: null,
  }
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  const { writer, registry } = database
  const keys = ['AAVE', 'UNI', 'ENS'].map((symbol) => getToken(registry, symbol).key)
  await storeMarket(writer, { keys, until: NOW - 60_000, points: 3, stepMs: 300_000 })
  const treasuries = [
    ...SLUGS.map((slug) => toTreasury(slug, 0, 1_000)).map((row, at) =>
      SLUGS[at] === 'gitcoin' ? withKinds(row) : row,
    ),
    withKinds(toTreasury('gitcoin', 30, 500)),
    toTreasury('uniswap', 1, 800),
    toTreasury('uniswap', 7, 2_000),
    toTreasury('uniswap', 30, 1_000),
    // No change is possible: another source, a day that is not exactly a week earlier, no earlier row, a value of zero.
    toTreasury('aave', 1, 500, 'defillama'),
    toTreasury('aave', 6, 500),
    toTreasury('ens', 1, 0),
  ]
  await writer.insert({ table: 'dao_treasuries', rows: treasuries })
  const ratings = [
    ...SLUGS.map((slug) => toRating(slug, 0, 70)),
    toRating('uniswap', 1, 10),
    toRating('compound', 7, 50),
  ]
  await writer.insert({ table: 'dao_ratings', rows: ratings })
  const gone = registry.daos.find(({ live }) => !live)?.slug ?? ''
  await writer.insert({ table: 'dao_treasuries', rows: [toTreasury(gone, 0, 5)] })
  await writer.insert({ table: 'dao_ratings', rows: [toRating(gone, 0, 5)] })
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const get = (leaf: string, query = '') => fetch(`${api.url}/data/daos/${leaf}${query}`)
const names = async (leaf: string, query = '') => {
  const response = await get(leaf, query)
  expect(response.status).toBe(200)
  return ((await response.json()) as { name: string }[]).map(({ name }) => name)
}

describe('/data/daos/treasury', () => {
  it('returns the stored treasury with its changes over a day, a week and a month', async () => {
    const [uniswap] = treasuryRoute.response.parse(await (await get('treasury', '?name=uniswap')).json()) as object[]
    expect(uniswap).toEqual({
      _id: daoOf('uniswap').id,
      name: 'Uniswap',
      treasuryData: {
        lastUpdated: '2024-03-10T00:00:00.000Z',
        tokens: [
          { token: 'UNI', quantity: 1.5, valueUsd: 1_000 },
          { token: 'LP', quantity: 123456789.12345679, valueUsd: null },
        ],
        valueUsd: 1_000,
        percentChange24h: 25,
        percentChange7d: -50,
        percentChange30d: 0,
      },
    })
  })

  it('returns null as the change against another source, another day, a zero value or a missing row', async () => {
    const changes = async (name: string) => {
      const [record] = (await (await get('treasury', `?name=${name}`)).json()) as { treasuryData: object }[]
      return record?.treasuryData
    }
    const none = { percentChange24h: null, percentChange7d: null, percentChange30d: null }
    for (const name of ['aave', 'ens']) expect(await changes(name), name).toMatchObject(none)
  })
})

describe('/data/daos/treasury/kinds', () => {
  const read = async (name: string) =>
    treasuryKindsRoute.response.parse(await (await get('treasury/kinds', `?name=${name}`)).json()) as object[]

  it('returns the value of each kind, the value without own tokens, and the changes over 30 days', async () => {
    expect(await read('gitcoin')).toEqual([
      {
        ...{ _id: daoOf('gitcoin').id, name: daoOf('gitcoin').name, lastUpdated: '2024-03-10T00:00:00.000Z' },
        ...{ valueUsd: 1_000, ownTokenUsd: 600, stablecoinUsd: 300, otherUsd: 100, withoutOwnTokenUsd: 400 },
        ...{ assets: 2, percentChange30d: 100, withoutOwnTokenPercentChange30d: 100 },
      },
    ])
  })

  it('returns null for the kinds if only the total is stored, and for changes against another day', async () => {
    const none = { ownTokenUsd: null, stablecoinUsd: null, otherUsd: null, withoutOwnTokenUsd: null }
    expect(await read('uniswap')).toMatchObject([
      { ...none, valueUsd: 1_000, percentChange30d: 0, withoutOwnTokenPercentChange30d: null },
    ])
    expect(await read('aave')).toMatchObject([{ ...none, percentChange30d: null }])
  })
})

describe('/data/daos/ratings', () => {
  it('returns the values of the newest import', async () => {
    const [uniswap] = ratingsRoute.response.parse(await (await get('ratings', '?name=uniswap')).json()) as object[]
    expect(uniswap).toEqual({
      _id: daoOf('uniswap').id,
      name: 'Uniswap',
      ratings: {
        overallRating: 70,
        fundamentalRating: 61.5,
        fundamentals: { governance: 1, team: 2, competitiveMoat: 3, valueProposition: 4, tokenEconomics: 5 },
        lastUpdated: '2023-12-24T18:30:00.000Z',
      },
    })
  })

  it('omits a DAO that was removed from the ratings file a week ago', async () => {
    expect(await names('ratings', '?name=compound')).toEqual([])
  })
})

describe.each(['treasury', 'treasury/kinds', 'ratings'])('/data/daos/%s', (leaf) => {
  it('lists live DAOs with data in the order of the DAO list', async () => {
    const [ens, uniswap, aave, gitcoin] = ['ens', 'uniswap', 'aave', 'gitcoin'].map((slug) => daoOf(slug).name)
    expect(await names(leaf)).toEqual([ens, uniswap, aave, gitcoin])
    expect(await names(leaf, '?limit=2')).toEqual([ens, uniswap])
    expect(await names(leaf, `?name=AAVE&name=swap`)).toEqual([aave, uniswap])
    expect(await names(leaf, `?id=${daoOf('gitcoin').id}&name=uni`)).toEqual([uniswap, gitcoin])
    expect(await names(leaf, `?id=${'f'.repeat(24)}`)).toEqual([])
  })

  it('returns 400 for unknown parameters and invalid values', async () => {
    for (const query of ['?limit=501', '?limit=0', '?nmae=uniswap', '?id=xyz']) {
      expect((await get(leaf, query)).status, query).toBe(400)
    }
  })

  it('sends the age of the data and returns 304 for a known ETag', async () => {
    const { headers } = await get(leaf)
    expect(headers.get('x-data-as-of')).toBe('2024-03-10T00:00:00.000Z')
    expect(headers.get('x-data-stale')).toBeNull()
    const repeated = await fetch(`${api.url}/data/daos/${leaf}`, {
      headers: { 'if-none-match': headers.get('etag') ?? '' },
    })
    expect(repeated.status).toBe(304)
  })
})

it('/data/status names the source of the ratings', async () => {
  const { datasets } = (await (await fetch(`${api.url}/data/status`)).json()) as { datasets: Record<string, unknown>[] }
  expect(datasets.find(({ dataset }) => dataset === 'ratings')).toMatchObject({ state: 'fresh', note: 'Somebody' })
  expect(datasets.find(({ dataset }) => dataset === 'treasury')).not.toHaveProperty('note')
})
