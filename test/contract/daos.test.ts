import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { daosRoute } from '../../api/routes/daos.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao, getToken } from '../support/entities.ts'
import { storeMarket } from '../support/market.ts'

const NOW = Date.parse('2024-03-10T12:02:00Z')
const MEMBERS =
  '_id,name,image,category,mission,website,twitter,discord,telegram,whitepaper,tokenomics,chain,token,live,createdAt,updatedAt,__v,twitterid,slug,verified,description,isOtc,snapshotName,treasuryAddress'
const TOKEN_MEMBERS = '_id,name,symbol,contractAddress,decimal,live,dao,cmcId,chain,livePrice,chart24h'

const config = createTestConfig()
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const daoOf = (slug: string) => getDao(database.registry, slug)
const keyOf = (symbol: string) => getToken(database.registry, symbol).key
const get = (path: string) => fetch(api.url + path)
const list = async (query = '') => {
  const response = await get(`/data/daos${query}`)
  expect(response.status).toBe(200)
  return daosRoute.response.parse(await response.json()) as { name: string; token: { symbol: string } | null }[]
}
const names = async (query: string) => (await list(query)).map(({ name }) => name)

beforeAll(async () => {
  database = await createApiDatabase(config)
  const keys = ['AAVE', 'UNI', 'ENS'].map(keyOf)
  await storeMarket(database.writer, { keys, until: NOW - 60_000, points: 3, stepMs: 300_000 })
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})

afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe('/data/daos', () => {
  it('lists DAOs by the market cap of their token, then by name', async () => {
    const found = await names('?limit=5')
    expect(found.slice(0, 3)).toEqual([daoOf('ens').name, 'Uniswap', 'Aave'])
    expect(found.slice(3)).toEqual([...found.slice(3)].sort())
  })

  it('returns the values of the registry', async () => {
    const [found] = await list('?name=Aave&limit=1')
    const aave = daoOf('aave')
    const token = database.registry.tokenById.get(aave.token ?? '')
    const ids = (slugs: string[], bySlug: ReadonlyMap<string, { id: string }>) =>
      slugs.map((slug) => bySlug.get(slug)?.id)
    expect(found).toMatchObject({
      _id: aave.id,
      name: 'Aave',
      image: aave.image,
      category: ids(aave.categories, database.registry.categoryBySlug),
      chain: ids(aave.chains, database.registry.chainBySlug),
      website: aave.website,
      twitter: aave.twitter,
      tokenomics: aave.tokenomics,
      live: true,
      __v: 0,
      twitterid: aave.twitterId,
      slug: 'aave',
      snapshotName: aave.snapshotSpace,
      treasuryAddress: [...new Set(aave.treasuries.map(({ address }) => address))],
    })
    expect(found?.token).toEqual({
      _id: token?.id,
      name: token?.name,
      symbol: 'AAVE',
      contractAddress: token?.contractAddress,
      decimal: token?.decimals,
      live: token?.live,
      dao: aave.id,
      cmcId: token?.cmcId,
      chain: database.registry.chainBySlug.get(token?.chain ?? '')?.id,
      livePrice: token?.livePrice,
      chart24h: `${config.api.publicUrl}/charts/24h/${token?.id}.svg`,
    })
    expect(Object.keys(found ?? {}).join()).toBe(MEMBERS)
    expect(Object.keys(found?.token ?? {}).join()).toBe(TOKEN_MEMBERS)
  })

  it('returns exactly the live DAOs, with token null if a DAO has none', async () => {
    const live = database.registry.daos.filter((dao) => dao.live)
    const found = await list('?limit=500')
    expect(found.map(({ name }) => name).sort()).toEqual(live.map(({ name }) => name).sort())
    const tokenless = live.filter(({ token }) => token === null).map(({ name }) => name)
    expect(
      found
        .filter(({ token }) => token === null)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(tokenless.sort())
  })

  it('matches parts of names and whole symbols, and combines them with ids', async () => {
    expect(await names('?name=UNISW')).toEqual(['Uniswap'])
    expect(await names('?name=aave')).toContain('Aave')
    expect(await names('?name=uni')).toContain('Uniswap')
    expect((await names(`?id=${daoOf('ens').id}&name=Aave`)).sort()).toContain(daoOf('ens').name)
    expect(await names('?id=0123456789abcdef01234567')).toEqual([])
    const dead = database.registry.daos.find(({ live }) => !live)
    expect(await names(`?id=${dead?.id}`)).toEqual([])
  })

  it('sorts the exact name first, regardless of market caps', async () => {
    const [first] = await names('?name=balancer&name=a&limit=3')
    expect(first).toBe('Balancer')
  })

  it('accepts a trailing slash and links to the canonical path', async () => {
    const [plain, slashed] = await Promise.all([get('/data/daos?limit=3'), get('/data/daos/?limit=3')])
    const next = plain.headers.get('link')
    expect(next).toMatch(/^<\?limit=3&cursor=[\w-]+>; rel="next"$/)
    expect(slashed.headers.get('link')).toBe(`${next}, </data/daos>; rel="canonical"`)
    expect(await slashed.text()).toBe(await plain.text())
  })

  it.each([
    ['?limit=0', 'invalid_parameter'],
    ['?limit=501', 'invalid_parameter'],
    ['?id=nonsense', 'invalid_parameter'],
    ['?nmae=x', 'unknown_parameter'],
  ])('returns 400 for %s with code %s', async (query, code) => {
    const response = await get(`/data/daos${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code })
  })
})
