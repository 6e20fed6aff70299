import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { DaoTreasuryRow } from '../../shared/datasets/treasury.ts'
import { toTreasuryValues } from '../../shared/datasets/treasury-value.ts'
import { toLifetimes } from '../../shared/registry/ends.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao } from '../support/entities.ts'

const DAY = 86_400_000
const TODAY = Date.UTC(2024, 2, 10)
const NOW = TODAY + 3_600_000
const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

const daoOf = (slug: string) => getDao(database.registry, slug)

/** 3 million of UNI and 5 million of USDC; on a partial day the USDC cannot be read. */
function toRow(slug: string, daysAgo: number, isPartial: boolean): DaoTreasuryRow {
  const chain = { chain: 'ethereum', address: '0xabc', price_source: 'goldrush' }
  const all = [
    { symbol: 'USDC', contract: USDC, quantity: 5e6, value_usd: 5e6, kind: 'stable' as const },
    { symbol: 'UNI', contract: '0x1f98', quantity: 3e5, value_usd: 3e6, kind: 'own' as const },
  ].filter(({ symbol }) => !isPartial || symbol !== 'USDC')
  return {
    ...{ dao: daoOf(slug).key, observed_at: new Date(TODAY - daysAgo * DAY).toISOString() },
    tokens: all.map(({ symbol, quantity, value_usd }) => ({ symbol, quantity, value_usd })),
    holdings: all.map((one) => ({ ...chain, ...one })),
    ...{ value_usd: isPartial ? 3e6 : 8e6, spam_count: 0, spam: [], source: 'goldrush' },
    unread: isPartial ? [{ chain: 'ethereum', address: '0xabc', contract: USDC, symbol: 'USDC' }] : [],
  }
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  await database.writer.insert({
    table: 'dao_treasuries',
    rows: [
      ...[0, 1, 7, 30].map((ago) => toRow('uniswap', ago, ago === 0)),
      ...[0, 1, 7, 30].map((ago) => toRow('aave', ago, ago === 1 || ago === 30)),
    ],
  })
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

const text = async (path: string) => {
  const response = await fetch(`${api.url}${path}`)
  const body = await response.text()
  expect(response.status, body).toBe(200)
  return body
}
const get = async (path: string) => JSON.parse(await text(path)) as Record<string, unknown>[]

describe('a treasury of which a holding could not be read', () => {
  it('has `isPartial` in the list, and no changes, also against a partial day', async () => {
    const byName = async (name: string) => (await get(`/data/daos/treasury?name=${name}`))[0]?.treasuryData
    expect(await byName('uniswap')).toMatchObject({
      ...{ valueUsd: 3e6, isPartial: true },
      ...{ percentChange24h: null, percentChange7d: null, percentChange30d: null },
    })
    const aave = await byName('aave')
    expect(aave).toMatchObject({ percentChange24h: null, percentChange7d: 0, percentChange30d: null })
    expect(aave).not.toHaveProperty('isPartial')
  })

  it('can be selected by `isPartial`', async () => {
    const names = async (filter: string) =>
      (await get(`/data/daos/treasury?filter=${encodeURIComponent(filter)}`)).map(({ name }) => name)
    expect(await names('treasuryData.isPartial=true')).toEqual([daoOf('uniswap').name])
    expect(await names('treasuryData.isPartial=null')).toEqual([daoOf('aave').name])
  })

  it('has `isPartial` in the points of its days only', async () => {
    const path = `/data/daos/treasury/historic?id=${daoOf('aave').id}`
    const points = await get(path)
    expect(points.map((point) => [point.valueUsd, 'isPartial' in point && point.isPartial])).toEqual([
      [8e6, false],
      [3e6, true],
      [8e6, false],
      [3e6, true],
    ])
    expect(await get(`${path}&fields=recordedAt,isPartial&limit=2`)).toEqual([
      { recordedAt: '2024-03-10T00:00:00.000Z', isPartial: null },
      { recordedAt: '2024-03-09T00:00:00.000Z', isPartial: true },
    ])
    const filled = await get(`${path}&fill=null&start=2024-03-08&end=2024-03-11`)
    expect(filled.map(({ valueUsd, isPartial }) => [valueUsd, isPartial])).toEqual([
      [8e6, undefined],
      [3e6, true],
      [null, undefined],
    ])
  })

  it('has a column `isPartial` in tables', async () => {
    const path = `/data/daos/treasury/historic?id=${daoOf('aave').id}&limit=2`
    const [head, ...rows] = (await text(`${path}&format=csv`)).trim().split('\n')
    expect(head?.split(',').at(-1)).toBe('"isPartial"')
    expect(rows.map((row) => row.split(',').at(-1))).toEqual(['', 'true'])
    const lines = (await text(`${path}&format=ndjson`)).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).isPartial)).toEqual([undefined, true])
    const list = await text(`/data/daos/treasury?format=csv&sort=name`)
    expect(list.split('\n')[0]).toContain('"treasuryData_isPartial"')
    const parquet = await fetch(`${api.url}${path}&format=parquet`)
    expect(Buffer.from(await parquet.arrayBuffer()).toString('latin1')).toContain('isPartial')
  })

  it('has `isPartial` in its kinds, without changes', async () => {
    const kinds = await get('/data/daos/treasury/kinds?sort=-valueUsd')
    expect(kinds).toMatchObject([
      { name: daoOf('aave').name, percentChange30d: null },
      { name: daoOf('uniswap').name, isPartial: true, percentChange30d: null, withoutOwnTokenPercentChange30d: null },
    ])
    expect(kinds[0]).not.toHaveProperty('isPartial')
  })

  it('is no part of sums over treasuries', async () => {
    const sums = await get('/data/aggregated/chains')
    const total = Math.max(...sums.map(({ treasuryUsd }) => Number(treasuryUsd)))
    expect(total).toBe(8e6)
    const days = await database.writer.rows({
      name: 'members',
      sql: `SELECT toString(toDate(day)) AS day, count() AS daos FROM (${toTreasuryValues(0)}) GROUP BY day ORDER BY day`,
      params: { ...toLifetimes(database.registry.daos), from: TODAY - 31 * DAY, to: TODAY + DAY },
      schema: z.object({ day: z.string(), daos: z.int() }),
    })
    expect(days).toEqual([
      { day: '2024-02-09', daos: 1 },
      { day: '2024-03-03', daos: 2 },
      { day: '2024-03-09', daos: 1 },
      { day: '2024-03-10', daos: 1 },
    ])
  })
})
