import { get, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { indexCompositionRoute } from '../../api/routes/index/composition.ts'
import { indexHistoricRoute } from '../../api/routes/index/historic.ts'
import { indexTokenRoute } from '../../api/routes/index/token-data.ts'
import { toId } from '../../shared/ids.ts'
import { type BasketIndex, toComposition } from '../../shared/registry/index-records.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { toNext } from '../support/next-page.ts'

/** Fixed clock, three years after the launch. */
const NOW = Date.parse('2025-11-29T00:02:00Z')
const SLOT = 300_000
const DAY = 86_400_000
const HISTORIC = '/data/index/historic'
/** Time at which the second composition becomes valid, during the tests. */
const CHANGE = Date.parse('2025-11-29T06:00:00Z')

const clock = { now: NOW }
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let registry: Registry
let index: BasketIndex
let api: TestApi
let points: number

const pointList = z.array(
  z.object({ _id: z.string(), valueUsd: z.number(), composition: z.string(), createdAt: z.string() }),
)
const read = (path: string) => fetch(api.url + path)
const readPoints = async (query: string) => pointList.parse(await (await read(`${HISTORIC}?${query}`)).json())

beforeAll(async () => {
  const config = createTestConfig()
  database = await createApiDatabase(config)
  const [first] = database.registry.index.compositions
  const next = toComposition(CHANGE, (first?.elements ?? []).slice(0, 2))
  index = { ...database.registry.index, compositions: first === undefined ? [] : [first, next] }
  registry = { ...database.registry, index }
  points = Math.floor((NOW - index.launch) / SLOT) + 1
  await database.writer.command({
    name: 'store-index',
    sql: `INSERT INTO index_points SELECT {index: UInt64}, at, at, 100 + number / 7, {composition: String}, 0, now64(3)
FROM (SELECT number, fromUnixTimestamp64Milli({launch: Int64} + toInt64(number) * 300000, 'UTC') AS at FROM numbers({points: UInt32}))`,
    params: { index: index.key, launch: index.launch, points, composition: first?.id },
  })
  api = await startApi({ config, db: database.db, registry, changeFeed, now: () => clock.now })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe(HISTORIC, () => {
  it('returns the points of one day by default, oldest first', async () => {
    const response = await read(HISTORIC)
    const body = pointList.parse(indexHistoricRoute.response.parse(await response.json()))
    expect(body).toHaveLength(288)
    expect(body[0]).toEqual({
      _id: toId('index', index.id, NOW - DAY + SLOT - 120_000),
      valueUsd: 100 + (points - 288) / 7,
      composition: index.compositions[0]?.id,
      createdAt: '2025-11-28T00:05:00.000Z',
    })
    expect(body.at(-1)?.createdAt).toBe('2025-11-29T00:00:00.000Z')
    expect(Object.keys(body[0] ?? {})).toEqual(['_id', 'valueUsd', 'composition', 'createdAt'])
    expect(response.headers.get('x-series-interval')).toBe('5m')
    expect(response.headers.get('x-series-points')).toBe('288')
    expect(response.headers.get('x-series-missing')).toBe('0')
    expect(response.headers.get('x-data-as-of')).toBe('2025-11-29T00:00:00.000Z')
    expect(response.headers.get('x-data-stale')).toBeNull()
  })

  it('returns the day before end if only end is given', async () => {
    const [end, start] = [NOW - 3 * DAY, NOW - 4 * DAY].map((at) => new Date(at).toISOString())
    const alone = await readPoints(`end=${end}`)
    expect(alone).toHaveLength(288)
    expect(alone).toEqual(await readPoints(`start=${start}&end=${end}`))
    expect(await readPoints('end=2100-01-01')).toHaveLength(288)
  })

  it('accepts days as a synonym of period, and both if they agree', async () => {
    const [period, days, both] = await Promise.all([
      readPoints('period=2'),
      readPoints('days=2'),
      readPoints('days=2&period=2'),
    ])
    expect(period).toHaveLength(2 * 288)
    expect(days).toEqual(period)
    expect(both).toEqual(period)
  })

  /** Follows all pages from the first one; the clock advances by the minutes after each page. */
  const walk = async (query: string, minutes: number) => {
    const pages: Awaited<ReturnType<typeof readPoints>>[] = []
    for (let next: string | undefined = `?${query}`; next !== undefined; clock.now += minutes * 60_000) {
      const response = await read(HISTORIC + next)
      expect(response.status).toBe(200)
      pages.push(pointList.parse(await response.json()))
      next = toNext(response.headers.get('link'))
    }
    clock.now = NOW
    return pages
  }

  it.each(['', 'period=1&', 'days=1&', 'points=200&'])('pages through "%s" at any speed', async (query) => {
    const full = await readPoints(`${query}limit=1000`)
    expect((await walk(`${query}limit=100`, 600)).flat()).toEqual(full)
    // With the newest points first, points that left the range in the meantime are skipped.
    const back = await walk(`${query}order=desc&limit=100`, 20)
    expect(back.flat()).toEqual(full.slice(8).reverse())
    expect((await walk(`${query}order=desc&limit=100`, 2880)).slice(1)).toEqual([[]])
  })

  it.each([
    ['period=1&days=2', 'invalid_parameter', 'days'],
    ['period=0', 'invalid_parameter', 'period'],
    ['days=10001', 'invalid_parameter', 'days'],
    ['period=1.5', 'invalid_parameter', 'period'],
    ['periods=1', 'unknown_parameter', 'periods'],
  ])('rejects %s with code %s', async (query, code, param) => {
    const response = await read(`${HISTORIC}?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code, param })
  })

  it.each(['/data/index/historic-data', '/data/index/historic-value'])('is also served at %s', async (alias) => {
    const [canonical, second] = await Promise.all([read(`${HISTORIC}?period=1`), read(`${alias}?period=1`)])
    expect(second.headers.get('link')).toBe(`<${HISTORIC}>; rel="canonical"`)
    expect(await second.text()).toBe(await canonical.text())
    expect(second.headers.get('etag')).toBe(canonical.headers.get('etag'))
  })

  it('returns the same points from the cache and from a stream', async () => {
    const cached = await readPoints('period=27')
    const streamed = await readPoints('period=28')
    expect(cached).toHaveLength(27 * 288)
    expect(streamed).toHaveLength(28 * 288)
    expect(streamed.slice(-cached.length)).toEqual(cached)
  })

  it('streams all points since the launch in constant memory, with an ETag of the data', async () => {
    const path = `${api.url}${HISTORIC}?period=10000`
    const response = await new Promise<IncomingMessage>((resolve, reject) => get(path, resolve).on('error', reject))
    const held = () => process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers
    const before = held()
    let [bytes, peak] = [0, 0]
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length
      peak = Math.max(peak, held() - before)
    }
    expect(response.headers['x-series-points']).toBe(String(points))
    expect(bytes).toBeGreaterThan(points * 120)
    // Server and client share this process. Only a few buffers in transit and uncollected garbage may be in memory.
    expect(peak).toBeLessThan(60_000_000)
    const repeated = await fetch(path, { headers: { 'if-none-match': String(response.headers.etag) } })
    expect(repeated.status).toBe(304)
  })

  it('starts at the launch and counts no missing slot before it', async () => {
    const [first] = await readPoints('period=10000')
    expect(first?.createdAt).toBe('2022-11-29T00:00:00.000Z')
    const response = await fetch(`${api.url}${HISTORIC}?period=10000`, { method: 'HEAD' })
    expect(response.headers.get('x-series-missing')).toBe('0')
  })
})

describe('/data/index/composition', () => {
  it('returns the members of the valid composition with all names', async () => {
    const response = await read('/data/index/composition')
    const body = indexCompositionRoute.response.parse(await response.json()) as { symbol: string }[]
    const elements = index.compositions[0]?.elements ?? []
    expect(body).toHaveLength(elements.length)
    const uni = elements.find(({ token }) => token.symbol === 'UNI')
    const dao = registry.daoBySlug.get('uniswap')
    expect(body.find(({ symbol }) => symbol === 'UNI')).toEqual({
      token: uni?.token.id,
      quantity: Number(uni?.quantity),
      name: 'Uniswap',
      symbol: 'UNI',
      dao: dao?.name,
      chain: 'Ethereum',
      category: dao?.categories.map((slug) => registry.categoryBySlug.get(slug)?.name),
    })
  })

  it('is also served at /data/index/index-composition', async () => {
    const [canonical, second] = await Promise.all([
      read('/data/index/composition'),
      read('/data/index/index-composition'),
    ])
    expect(second.headers.get('link')).toBe('</data/index/composition>; rel="canonical"')
    expect(await second.text()).toBe(await canonical.text())
  })

  it('changes its ETag when the next composition becomes valid', async () => {
    const before = await read('/data/index/composition')
    expect(before.headers.get('etag')).toBeTruthy()
    clock.now = CHANGE
    try {
      const after = await read('/data/index/composition')
      expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'))
      expect(await after.json()).toHaveLength(2)
    } finally {
      clock.now = NOW
    }
  })
})

describe('/data/index/token-data', () => {
  it('returns the newest reading with all digits', async () => {
    const facts = { index_key: index.key, block_number: 1, value_usd: 91.25, eth_usd: 3000, eth_source: 'chainlink' }
    const older = { ...facts, created_at: '2025-11-28T23:50:11.000Z', value: '1', total_supply: '1' }
    const newer = {
      ...facts,
      created_at: '2025-11-28T23:58:11.000Z',
      value: '9007199254740993.000000000000000001',
      total_supply: '312345678901234567890.123456789012345678',
    }
    await database.writer.insert({ table: 'index_token', rows: [newer, older] })
    changeFeed.commit('index-token')
    const response = await read('/data/index/token-data')
    expect(await response.text()).toBe(
      `{"value":"${newer.value}","totalSupply":"${newer.total_supply}","valueUsd":91.25,"createdAt":"${newer.created_at}"}`,
    )
    expect(response.headers.get('x-data-as-of')).toBe(newer.created_at)
    expect((await read('/data/index/token-data?limit=1')).status).toBe(400)
    expect(indexTokenRoute.aliases).toEqual([])
  })
})
