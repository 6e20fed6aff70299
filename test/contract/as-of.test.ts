import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { getDao, getToken } from '../support/entities.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'

/** A fixed clock, so that no result depends on the time of the run. */
const NOW = Date.parse('2024-05-06T12:02:00Z')
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const SEED = 506

const config = createTestConfig()
let database: Awaited<ReturnType<typeof createApiDatabase>>
let [cached, uncached]: TestApi[] = []

const keyOf = (symbol: string) => getToken(database.registry, symbol).key
const daoOf = (slug: string) => getDao(database.registry, slug).key

/** Prices of 92 days, every 4 hours and every 5 minutes of the last two; one token stops an hour before the end. */
async function storePrices(): Promise<void> {
  const random = createRandom(SEED)
  const times = [
    ...Array.from({ length: 92 * 6 }, (_, n) => NOW - 92 * DAY + n * 4 * HOUR),
    ...Array.from({ length: 576 }, (_, n) => NOW - 2 * DAY + n * 5 * MINUTE + 7_000),
  ]
  for (const symbol of ['UNI', 'AAVE', 'COMP']) {
    const until = symbol === 'COMP' ? NOW - HOUR : NOW
    await storeQuotes(
      database.writer,
      times
        .filter((at) => at < until)
        .map((at) => ({
          token: keyOf(symbol),
          at,
          price: 5 + random.next(),
          volume_24h: random.chance(0.1) ? null : 1e6 * random.next(),
          market_cap: 1e9 * random.next(),
          circulating_supply: 1e8,
        })),
    )
  }
}

beforeAll(async () => {
  database = await createApiDatabase(config)
  await storePrices()
  const days = Array.from({ length: 40 }, (_, ago) => Date.UTC(2024, 4, 6) - ago * DAY).filter(
    (at) => at % (7 * DAY) !== 0,
  )
  const at = (ms: number) => ({ observed_at: new Date(ms).toISOString() })
  const dao = daoOf('uniswap')
  await database.writer.insert({
    table: 'dao_treasuries',
    rows: days.map((ms, ago) => ({ dao, ...at(ms), value_usd: 100 + ago, tokens: [], source: 'goldrush' })),
  })
  await database.writer.insert({
    table: 'twitter_counts',
    rows: days.map((ms, ago) => ({ dao, ...at(ms), followers: 900 - ago, following: 5, tweets: null })),
  })
  await database.writer.insert({
    table: 'discord_members',
    rows: days.slice(5).map((ms) => ({ dao, ...at(ms), active_members: null, total_members: ms / DAY })),
  })
  await database.writer.insert({
    table: 'token_holders',
    rows: Array.from({ length: 30 }, (_, n) => ({
      ...{ token: keyOf('UNI'), ...at(NOW - n * HOUR), total_holders: 1000 - n, top100_share: 50 },
      holders: [{ address: '0x1', amount: n, amount_usd: null, share: 1 }],
    })),
  })
  const options = { ...database, changeFeed: createHandFeed(), now: () => NOW }
  cached = await startApi({ ...options, config })
  uncached = await startApi({ ...options, config: { ...config, api: { ...config.api, cacheBytes: 0 } } })
})
afterAll(async () => {
  await Promise.all([cached?.close(), uncached?.close()])
  await database?.drop()
})

/** The records of a list as of a moment. Both APIs have to send the same bytes. */
async function request<Row>(path: string, at: number): Promise<{ rows: Row[]; headers: Headers }> {
  const query = `${path}?${path.includes('index') ? '' : 'limit=500&'}asOf=${new Date(at).toISOString()}`
  const responses = await Promise.all([cached, uncached].map((api) => fetch(`${api?.url}${query}`)))
  const bodies = await Promise.all(responses.map(async (response) => response.text()))
  expect(bodies[0], query).toBe(bodies[1])
  expect(responses.map(({ status }) => status)).toEqual([200, 200])
  return { rows: JSON.parse(bodies[0] ?? '') as Row[], headers: (responses[0] as Response).headers }
}

interface Observation {
  at: number
  price: number
  volume: number | null
  cap: number | null
}

async function readObservations(symbol: string): Promise<Observation[]> {
  return database.writer.rows({
    name: 'observations',
    sql: `SELECT toUnixTimestamp64Milli(observed_at) AS at, price, volume_24h AS volume, market_cap AS cap
FROM token_prices FINAL WHERE token = {token: UInt64} ORDER BY observed_at`,
    params: { token: keyOf(symbol) },
    schema: z.object({ at: z.int(), price: z.number(), volume: z.number().nullable(), cap: z.number().nullable() }),
  })
}

/** The last observation at or before the moment that is less than 10 minutes old. */
const observedBefore = (all: readonly Observation[], at: number) =>
  all.findLast((one) => one.at <= at && one.at > at - 10 * MINUTE)

const changeOf = (now: number | null | undefined, before: number | null | undefined) =>
  now == null || before == null ? null : 100 * (now / before - 1)

interface TokenRow {
  symbol: string
  financialData: Record<string, number | string | null>
}

const CHANGES = [
  ...([
    ['percentChange1h', HOUR],
    ['percentChange24h', DAY],
    ['percentChange7d', 7 * DAY],
  ] as const),
  ...([
    ['percentChange30d', 30 * DAY],
    ['percentChange60d', 60 * DAY],
    ['percentChanged90d', 90 * DAY],
  ] as const),
]

describe('lists with asOf', () => {
  it('returns the prices of the stored series and changes computed from them', async () => {
    const random = createRandom(SEED)
    const series = new Map<string, Observation[]>()
    for (const symbol of ['UNI', 'AAVE', 'COMP']) series.set(symbol, await readObservations(symbol))
    const moments = [
      ...Array.from({ length: 6 }, () => NOW - random.below(2 * DAY)),
      // On the coarse grid of the past, shortly after it, and when the last observation is stale.
      ...[NOW - 8 * HOUR - 90 * DAY, NOW - 40 * DAY + 5 * MINUTE, NOW - 40 * DAY + HOUR, NOW - 20 * MINUTE],
      // To the millisecond.
      ...[NOW - 2 * DAY + 7_000, NOW - 2 * DAY + 6_999, NOW - 92 * DAY],
    ]
    for (const at of moments) {
      const { rows, headers } = await request<TokenRow>('/data/tokens', at)
      const existing = [...series].flatMap(([symbol, all]) => {
        const one = observedBefore(all, at)
        return one === undefined ? [] : [{ symbol, all, one }]
      })
      expect(new Set(rows.map(({ symbol }) => symbol))).toEqual(new Set(existing.map(({ symbol }) => symbol)))
      expect(headers.get('x-total-count')).toBe(String(existing.length))
      const newest = Math.max(...existing.map(({ one }) => one.at))
      expect(headers.get('x-data-as-of')).toBe(existing.length === 0 ? null : new Date(newest).toISOString())
      expect(headers.get('x-data-stale')).toBeNull()
      for (const { symbol, all, one } of existing) {
        const data = rows.find((row) => row.symbol === symbol)?.financialData ?? {}
        expect(data.lastUpdated).toBe(new Date(one.at).toISOString())
        expect([data.price, data.volume24h, data.marketCap]).toEqual([one.price, one.volume, one.cap])
        expect([data.maxSupply, data.fullyDilutedMarketCap, data.totalSupply]).toEqual([null, null, null])
        for (const [member, ago] of CHANGES) {
          const expected = changeOf(one.price, observedBefore(all, at - ago)?.price)
          if (expected === null) expect(data[member], member).toBeNull()
          else expect(data[member], member).toBeCloseTo(expected, 9)
        }
        const volume = changeOf(one.volume, observedBefore(all, at - DAY)?.volume)
        if (volume === null) expect(data.volumeChange24h).toBeNull()
        else expect(data.volumeChange24h).toBeCloseTo(volume, 9)
      }
    }
  })

  it('returns the quotes of now, with other changes than those that the provider reports', async () => {
    for (const symbol of ['UNI', 'AAVE']) {
      const { at, price, volume, cap } = (await readObservations(symbol)).at(-1) as Observation
      const known = { price, volume_24h: volume, market_cap: cap, circulating_supply: 1e8 }
      const reported = { is_latest: true, percent_change_24h: 1234, max_supply: 2e9 }
      await storeQuotes(database.writer, [{ token: keyOf(symbol), at, ...known, ...reported }])
    }
    const all = (await (await fetch(`${cached?.url}/data/tokens?limit=500`)).json()) as TokenRow[]
    const { rows } = await request<TokenRow>('/data/tokens', NOW)
    const current = rows.map(({ symbol }) => all.find((one) => one.symbol === symbol))
    expect(rows).toHaveLength(2)
    const computed = [...CHANGES.map(([member]) => member), 'volumeChange24h', 'maxSupply', 'fullyDilutedMarketCap']
    const toStored = (row: TokenRow | undefined) => ({
      ...row,
      financialData: Object.entries(row?.financialData ?? {}).filter(([member]) => !computed.includes(member)),
    })
    expect(rows.map(toStored)).toEqual(current.map(toStored))
    const valuesOf = (list: readonly (TokenRow | undefined)[], member: string) =>
      list.map((row) => row?.financialData[member])
    expect(valuesOf(current, 'percentChange24h')).toEqual([1234, 1234])
    expect(valuesOf(rows, 'percentChange24h')).toEqual([expect.any(Number), expect.any(Number)])
    expect(valuesOf(rows, 'maxSupply')).toEqual([null, null])
  })

  it('compares the treasury of a day with exactly 1, 7 and 30 days before', async () => {
    type Row = { name: string; treasuryData: Record<string, number | string | null> }
    const time = Date.UTC(2024, 3, 30, 15)
    const { rows } = await request<Row>('/data/daos/treasury', time)
    const [row] = rows
    const stored = await database.writer.rows({
      name: 'treasuries',
      sql: 'SELECT toUnixTimestamp64Milli(observed_at) AS at, value_usd AS value FROM dao_treasuries FINAL',
      schema: z.object({ at: z.int(), value: z.number() }),
    })
    const valueAt = (at: number) => stored.find((one) => one.at === at)?.value
    const today = Date.UTC(2024, 3, 30)
    expect(row?.treasuryData.lastUpdated).toBe('2024-04-30T00:00:00.000Z')
    expect(row?.treasuryData.valueUsd).toBe(valueAt(today))
    expect(row?.treasuryData.percentChange24h).toBeCloseTo(changeOf(valueAt(today), valueAt(today - DAY)) ?? 0, 9)
    expect(rows).toHaveLength(1)
    // The last row is stale after two days.
    expect((await request('/data/daos/treasury', Date.UTC(2024, 2, 1))).rows).toEqual([])
  })

  it('returns the counts of each network and null for stale ones', async () => {
    type Row = { discordData: Record<string, unknown>; twitterData: Record<string, unknown> }
    const [late] = (await request<Row>('/data/daos/socials', NOW - HOUR)).rows
    expect(late?.twitterData.lastUpdated).toBe('2024-05-06T00:00:00.000Z')
    expect(late?.discordData).toEqual({ activeMembers: null, totalMembers: null, lastUpdated: null })
    const [early] = (await request<Row>('/data/daos/socials', NOW - 10 * DAY)).rows
    expect(early?.discordData.lastUpdated).toBe('2024-04-26T00:00:00.000Z')
    expect(early?.twitterData.lastUpdated).toBe('2024-04-26T00:00:00.000Z')
  })

  it('returns the holders of the last snapshot before the moment', async () => {
    type Row = { holdersData: { totalHolders: number; topHolders: { amount: number }[] } }
    const [row] = (await request<Row>('/data/tokens/holders', NOW - 90 * MINUTE)).rows
    expect(row?.holdersData).toMatchObject({ totalHolders: 998, topHolders: [{ amount: 2 }] })
    expect((await request('/data/tokens/holders', NOW - 40 * HOUR)).rows).toEqual([])
  })

  it('returns the index composition of the moment', async () => {
    const [first, second] = database.registry.index.compositions.filter(({ validFrom }) => validFrom <= NOW)
    const { rows, headers } = await request<{ token: string }>('/data/index/composition', (first?.validFrom ?? 0) + 1)
    expect(rows.map(({ token }) => token)).toEqual(first?.elements.map(({ token }) => token.id))
    expect(headers.get('x-total-count')).toBe(String(rows.length))
    if (second !== undefined) {
      const later = await request<{ token: string }>('/data/index/composition', second.validFrom)
      expect(later.rows.map(({ token }) => token)).toEqual(second.elements.map(({ token }) => token.id))
    }
    expect((await request('/data/index/composition', (first?.validFrom ?? 0) - 1)).rows).toEqual([])
  })

  it('lists tokens that ended after the moment', async () => {
    const ended = database.registry.tokens.find(({ ended: end, until = 0 }) => end !== null && until > NOW)
    if (ended === undefined) throw new Error('no token ends after this test')
    await storeQuotes(database.writer, [{ token: ended.key, at: NOW - MINUTE, price: 3 }])
    const { rows } = await request<TokenRow>('/data/tokens', NOW - 30_000)
    expect(rows.map(({ symbol }) => symbol)).toContain(ended.symbol)
  })
})
