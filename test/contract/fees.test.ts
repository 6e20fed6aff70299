import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { feesHistoricRoute } from '../../api/routes/daos/fees/historic.ts'
import { feesRoute } from '../../api/routes/daos/fees.ts'
import type { DaoFeesRow } from '../../shared/datasets/fees.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

const DAY = 86_400_000
/** A Sunday: the running week has six days that are over. */
const NOW = Date.parse('2024-03-10T12:02:00Z')
const TODAY = Date.parse('2024-03-10T00:00:00Z')

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const daoOf = (slug: string) => getDao(database.registry, slug)

/** The row of a day: yesterday is 1 day ago. */
const rowOf = (slug: string, daysAgo: number, fees: number | null, revenue: number | null = null): DaoFeesRow => ({
  dao: daoOf(slug).key,
  observed_at: new Date(TODAY - (daysAgo - 1) * DAY - 1).toISOString(),
  fees_usd: fees,
  revenue_usd: revenue,
})

beforeAll(async () => {
  database = await createApiDatabase(config)
  const rows = [
    // 40 days; fees of a day are 100, of yesterday 150, of the day a week before it 300. Revenue of one day is unknown.
    ...Array.from({ length: 40 }, (_, n) =>
      rowOf('uniswap', n + 1, n === 0 ? 150 : n === 7 ? 300 : 100, n === 20 ? null : 10),
    ),
    // One day is missing, and the fees of another were negative.
    ...[1, 2, 3, 4, 6, 7, 8].map((ago) => rowOf('aave', ago, ago === 8 ? -5 : 10, 1)),
    // The newest day has revenue only.
    rowOf('ens', 1, null, 3),
    rowOf('ens', 2, 7, 3),
  ]
  await database.writer.insert({ table: 'dao_fees', rows })
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

async function get(query: string): Promise<unknown> {
  const response = await fetch(`${api.url}/data/daos/${query}`)
  expect(response.status, query).toBe(200)
  return response.json()
}

async function feesOf(slug: string, query = '') {
  const [record] = feesRoute.response.parse(await get(`fees?id=${daoOf(slug).id}${query}`)) as { feesData: object }[]
  return record?.feesData
}

describe('/data/daos/fees', () => {
  it('returns sums up to the newest day that is over, and its changes over a day, a week and a month', async () => {
    expect(await get(`fees?name=uniswap`)).toEqual([
      {
        _id: daoOf('uniswap').id,
        name: 'Uniswap',
        feesData: {
          fees24h: 150,
          fees7d: 750,
          fees30d: 28 * 100 + 300 + 150,
          revenue24h: 10,
          revenue7d: 70,
          revenue30d: null,
          percentChange24h: 50,
          percentChange7d: -50,
          percentChange30d: 50,
          lastUpdated: '2024-03-09T23:59:59.999Z',
        },
      },
    ])
  })

  it('returns null for sums with an unknown day, and for changes against a day that is missing or not above 0', async () => {
    expect(await feesOf('aave')).toEqual({
      fees24h: 10,
      fees7d: null,
      fees30d: null,
      revenue24h: 1,
      revenue7d: null,
      revenue30d: null,
      percentChange24h: 0,
      percentChange7d: null,
      percentChange30d: null,
      lastUpdated: '2024-03-09T23:59:59.999Z',
    })
    expect(await feesOf('ens')).toMatchObject({ fees24h: null, revenue24h: 3, percentChange24h: null })
  })

  it('returns the sums as they were known with asOf, and no record of a DAO without fees', async () => {
    const past = await feesOf('uniswap', '&asOf=2024-03-03T12:00:00Z')
    expect(past).toMatchObject({ fees24h: 300, fees7d: 900, lastUpdated: '2024-03-02T23:59:59.999Z' })
    expect(await get('fees?name=gitcoin')).toEqual([])
    expect(await get('fees?sort=-feesData.fees24h&limit=2')).toMatchObject([{ name: 'Uniswap' }, { name: 'Aave' }])
  })

  it('returns the same as CSV', async () => {
    const response = await fetch(`${api.url}/data/daos/fees?name=uniswap&format=csv`)
    const [head, row] = (await response.text()).replaceAll('"', '').split(/\r?\n/)
    expect(head).toBe(
      '_id,name,feesData_fees24h,feesData_fees7d,feesData_fees30d,feesData_revenue24h,feesData_revenue7d,feesData_revenue30d,feesData_percentChange24h,feesData_percentChange7d,feesData_percentChange30d,feesData_lastUpdated',
    )
    expect(row).toBe(`${daoOf('uniswap').id},Uniswap,150,750,3250,10,70,,50,-50,50,2024-03-09T23:59:59.999Z`)
  })

  it('is as old as the end of the newest day, not as its start', async () => {
    const response = await fetch(`${api.url}/data/daos/fees?name=uniswap`)
    expect(response.headers.get('x-data-as-of')).toBe('2024-03-09T23:59:59.999Z')
    expect(response.headers.get('x-data-stale')).toBeNull()
  })
})

describe('/data/daos/fees/historic', () => {
  const historic = async (slug: string, query = '') =>
    feesHistoricRoute.response.parse(await get(`fees/historic?id=${daoOf(slug).id}${query}`)) as {
      recordedAt: string
      feesUsd: number | null
      revenueUsd: number | null
    }[]

  it('returns a point at the start of each day that is over, newest first', async () => {
    const points = await historic('uniswap')
    expect(points).toHaveLength(40)
    expect(points.slice(0, 2)).toEqual([
      { recordedAt: '2024-03-09T00:00:00.000Z', feesUsd: 150, revenueUsd: 10 },
      { recordedAt: '2024-03-08T00:00:00.000Z', feesUsd: 100, revenueUsd: 10 },
    ])
    expect(points[20]?.revenueUsd).toBeNull()
    expect(await historic('uniswap', '&start=2024-03-05&end=2024-03-07')).toHaveLength(2)
  })

  it('counts no day as missing before it can be stored', async () => {
    const response = await fetch(`${api.url}/data/daos/fees/historic?id=${daoOf('uniswap').id}&start=2024-03-01`)
    expect(response.headers.get('x-series-points')).toBe('9')
    expect(response.headers.get('x-series-missing')).toBe('0')
  })

  it('returns the sum of the days of a week, and null if a day is unknown or not over', async () => {
    const weeks = await historic('uniswap', '&interval=7d&order=asc&start=2024-02-12')
    expect(weeks).toEqual([
      { recordedAt: '2024-02-12T00:00:00.000Z', feesUsd: 700, revenueUsd: null },
      { recordedAt: '2024-02-19T00:00:00.000Z', feesUsd: 700, revenueUsd: 70 },
      { recordedAt: '2024-02-26T00:00:00.000Z', feesUsd: 900, revenueUsd: 70 },
      { recordedAt: '2024-03-04T00:00:00.000Z', feesUsd: null, revenueUsd: null },
    ])
  })

  it('sums whole weeks when the range begins and ends within a week', async () => {
    const weeks = await historic('uniswap', '&interval=7d&order=asc&start=2024-02-14&end=2024-02-28')
    expect(weeks).toEqual([
      { recordedAt: '2024-02-19T00:00:00.000Z', feesUsd: 700, revenueUsd: 70 },
      { recordedAt: '2024-02-26T00:00:00.000Z', feesUsd: 900, revenueUsd: 70 },
    ])
  })

  it('returns a row of nulls for each missing day with fill=null', async () => {
    const points = await historic('aave', '&fill=null&order=asc&start=2024-03-04')
    expect(points.map(({ feesUsd }) => feesUsd)).toEqual([10, null, 10, 10, 10, 10])
  })

  it('returns the same as CSV', async () => {
    const response = await fetch(`${api.url}/data/daos/fees/historic?id=${daoOf('ens').id}&format=csv`)
    expect((await response.text()).replaceAll('"', '').trim().split(/\r?\n/)).toEqual([
      'recordedAt,feesUsd,revenueUsd',
      '2024-03-09T00:00:00.000Z,,3',
      '2024-03-08T00:00:00.000Z,7,3',
    ])
  })
})
