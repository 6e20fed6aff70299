import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { routes } from '../../api/routes.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeEveryDataset } from '../support/every-dataset.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'
import { readTable, toExpected } from '../support/tables.ts'

const NOW = Date.parse('2024-05-06T12:02:00Z')
const HOUR = 3_600_000
const SEED = 93

const tokenList = z.array(
  z.object({
    _id: z.string(),
    financialData: z.object({
      marketCap: z.number().nullable(),
      volume24h: z.number().nullable(),
      percentChange24h: z.number().nullable(),
    }),
  }),
)
const treasuryList = z.array(z.object({ treasuryData: z.object({ valueUsd: z.number() }) }))
const amount = z.number().nullable()

const random = createRandom(SEED)
const changeFeed = createHandFeed()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi

beforeAll(async () => {
  const config = createTestConfig()
  database = await createApiDatabase(config)
  const { writer, registry } = database
  await storeEveryDataset(writer, registry, NOW)
  const tokens = registry.tokens.filter(({ live, until = 0 }) => live || until > NOW)
  const hours = Array.from({ length: 60 }, (_, hour) => NOW - hour * HOUR - 60_000)
  const quotes = tokens.flatMap(({ key }) =>
    hours.map((at) => ({
      ...{ token: key, at, is_latest: at === hours[0], price: 1 + random.next() },
      ...{ market_cap: random.chance(0.2) ? null : 1e9 * random.next() },
      ...{ volume_24h: random.chance(0.2) ? null : 1e6 * random.next() },
      ...{ percent_change_24h: random.chance(0.2) ? null : random.pick([-100, 12.5, -30 * random.next()]) },
    })),
  )
  await storeQuotes(writer, quotes)
  const recent = registry.daos.filter(({ live }) => live).slice(8, 30)
  const treasuries = recent.flatMap(({ key }, n) =>
    [0, 1, 2].map((day) => ({
      ...{ dao: key, observed_at: new Date(NOW - (NOW % (24 * HOUR)) - day * 24 * HOUR).toISOString() },
      ...{ value_usd: 1e6 * (n + 1) + day, tokens: [{ symbol: 'X', quantity: 1, value_usd: 1e6 * (n + 1) + day }] },
      source: 'goldrush',
    })),
  )
  await writer.insert({ table: 'dao_treasuries', rows: treasuries })
  api = await startApi({ config, ...database, changeFeed, now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

async function get(path: string, query: Record<string, string>) {
  const response = await fetch(`${api.url}/data/${path}?${new URLSearchParams(query)}`)
  const body: unknown = await response.json()
  expect(response.status, JSON.stringify(body)).toBe(200)
  return { body, headers: response.headers }
}

function sum(values: readonly (number | null)[]) {
  const available = values.filter((value) => value !== null)
  return available.length === 0 ? null : available.reduce((total, value) => total + value, 0)
}

const near = (value: number | null) => (value === null ? null : expect.closeTo(value, 2))

describe.each([
  { leaf: 'categories', name: 'category', plural: 'categories' },
  { leaf: 'chains', name: 'chain', plural: 'chains' },
])('/data/aggregated/$leaf', ({ leaf, name }) => {
  const route = routes.find((one) => one.path === `/data/aggregated/${leaf}`)
  const sums = z.object({
    ...{ tokens: z.number(), daos: z.number() },
    ...{ marketCapUsd: amount, treasuryUsd: amount, volume24hUsd: amount, change24h: amount },
  })
  const read = async (query: Record<string, string> = {}) => {
    const { body, headers } = await get(`aggregated/${leaf}`, query)
    expect(route?.response.parse(body)).toEqual(body)
    const all = z.array(z.record(z.string(), z.unknown())).parse(body)
    return { records: all.map((one) => ({ id: String(one[name]), sums: sums.parse(one) })), all, headers }
  }
  /** Computes the sums of one group from the lists. With a moment, skips tokens that replaced others after it. */
  const recount = async (id: string, asOf: Record<string, string>, time = Number.POSITIVE_INFINITY) => {
    const [tokens, treasuries, daos] = await Promise.all([
      get('tokens', { [name]: id, limit: '500', ...asOf }),
      get('daos/treasury', { [name]: id, limit: '500', ...asOf }),
      get('daos', { [name]: id }),
    ])
    const counted = tokenList.parse(tokens.body).filter(({ _id }) => {
      return (database.registry.tokenById.get(_id)?.since ?? 0) <= time
    })
    const data = counted.map(({ financialData }) => financialData)
    const comparable = data.flatMap(({ marketCap, percentChange24h: change }) =>
      marketCap === null || change === null || change <= -100
        ? []
        : [{ now: marketCap, before: marketCap / (1 + change / 100) }],
    )
    const [now, before] = [sum(comparable.map((one) => one.now)), sum(comparable.map((one) => one.before))]
    return {
      tokens: data.length,
      daos: Number(daos.headers.get('x-total-count')),
      marketCapUsd: near(sum(data.map(({ marketCap }) => marketCap))),
      treasuryUsd: near(sum(treasuryList.parse(treasuries.body).map(({ treasuryData }) => treasuryData.valueUsd))),
      volume24hUsd: near(sum(data.map(({ volume24h }) => volume24h))),
      change24h: now === null || before === null ? null : expect.closeTo(100 * (now / before - 1), 6),
    }
  }

  it('sums the records of the lists by group', async () => {
    const { records, headers } = await read()
    const groups = z.array(z.object({ _id: z.string() })).parse((await get(leaf, {})).body)
    expect(records.map(({ id }) => id).sort()).toEqual(groups.map(({ _id }) => _id).sort())
    for (const one of records) expect(one.sums, one.id).toEqual(await recount(one.id, {}))
    const caps = records.map((one) => one.sums.marketCapUsd ?? -1)
    expect(caps).toEqual(caps.toSorted((a, b) => b - a))
    const available = records.filter((one) => one.sums.change24h !== null && one.sums.treasuryUsd !== null)
    expect(available.length).toBeGreaterThan(1)
    expect(headers.get('x-total-count')).toBe(String(records.length))
    expect(headers.get('x-data-as-of')).toBe((await get('tokens', { limit: '500' })).headers.get('x-data-as-of'))
    expect(headers.get('x-data-stale')).toBeNull()
  })

  it('sums the records of random moments without tokens that replaced others later', async () => {
    const { tokens } = database.registry
    expect(tokens.filter(({ since = 0 }) => since > NOW).map(({ symbol }) => symbol)).toContain('SKY')
    for (const time of Array.from({ length: 4 }, () => NOW - random.below(40) * HOUR - random.below(600_000))) {
      const asOf = { asOf: new Date(time).toISOString() }
      for (const { id, sums: found } of (await read(asOf)).records) {
        const { daos: _, ...expected } = await recount(id, asOf, time)
        const { daos, ...rest } = found
        expect(rest, `${id} ${asOf.asOf}`).toEqual(expected)
        const { registry } = database
        const slug = (name === 'category' ? registry.categories : registry.chains).find((one) => one.id === id)?.slug
        const were = registry.daos.filter((dao) => dao.live || (dao.until !== undefined && isThereAt(dao, time)))
        const own = were.filter((dao) => (name === 'category' ? dao.categories : dao.chains).includes(slug ?? ''))
        expect(daos).toBe(own.length)
      }
    }
  })

  it('sorts, filters, and returns the same records in every format', async () => {
    const { records } = await read({ sort: '-tokens', filter: 'marketCapUsd!=null' })
    expect(records.length).toBeGreaterThan(0)
    const counts = records.map((one) => one.sums.tokens)
    expect(counts).toEqual(counts.toSorted((a, b) => b - a))
    const { all } = await read()
    const record = (route?.response as z.ZodArray | undefined)?.element as z.ZodType
    for (const format of ['csv', 'ndjson', 'parquet', 'arrow'] as const) {
      const response = await fetch(`${api.url}/data/aggregated/${leaf}?format=${format}`)
      const rows = await readTable(format, Buffer.from(await response.arrayBuffer()))
      expect(rows, format).toEqual(toExpected(format, all, record))
    }
  })

  it('returns another ETag after a change of prices', async () => {
    const before = (await read()).headers.get('etag')
    changeFeed.commit('governance')
    expect((await read()).headers.get('etag')).toBe(before)
    const token = database.registry.tokens.find(({ live }) => live)?.key ?? 0
    await storeQuotes(database.writer, [{ token, at: NOW - 1, is_latest: true, market_cap: 5e9 * random.next() }])
    changeFeed.commit('prices')
    expect((await read()).headers.get('etag')).not.toBe(before)
  })
})
