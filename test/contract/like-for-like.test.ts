import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { routes } from '../../api/routes.ts'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import { createApiDatabase, createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { storeQuotes } from '../support/quotes.ts'
import { createRandom } from '../support/random.ts'
import { readTable, toExpected } from '../support/tables.ts'

const SEED = 509
const NOW = Date.parse('2024-03-10T12:02:00Z')
const DAYS = 40
const FIRST = toBucketStart(NOW, '1d') - (DAYS - 1) * DAY_MS

/** The value of one member on one day. Parts with the same `member` are comparable. */
interface Part {
  readonly day: number
  readonly member: string
  readonly usd: number
}

interface Point {
  readonly recordedAt: string
  readonly [sum: string]: unknown
}

let database: Awaited<ReturnType<typeof createApiDatabase>>
let api: TestApi
/** The first known value of each member and day, computed from all stored rows. */
const parts: Record<string, readonly Part[]> = {}

/**
 * Stores several quotes a day with missing days. The first quote of a day may lack a market cap; one
 * token starts on the tenth day.
 */
async function storeTokens(random: ReturnType<typeof createRandom>): Promise<readonly Part[]> {
  const tokens = database.registry.tokens.filter(({ live, since, until }) => live && !since && !until).slice(0, 6)
  const quotes = tokens.flatMap(({ key }, rank) =>
    Array.from({ length: DAYS }, (_, day) => day).flatMap((day) => {
      const isThere = day !== 20 && (rank > 0 || day >= 10) && !random.chance(0.2)
      const times = isThere ? [1, 5, 11].map((hour) => FIRST + day * DAY_MS + hour * 3_600_000) : []
      const caps = times.map((_, n) => (n === 0 && random.chance(0.3) ? random.pick([null, 0]) : 1e9 * random.next()))
      return times.map((at, n) => ({ token: key, at, market_cap: caps[n] ?? null }))
    }),
  )
  await storeQuotes(database.writer, quotes)
  const values = quotes.filter(({ market_cap }) => market_cap)
  const firsts = new Map<string, Part>()
  for (const { token, at, market_cap } of values) {
    const day = toBucketStart(at, '1d')
    const place = `${token} ${day}`
    if (!firsts.has(place)) firsts.set(place, { day, member: String(token), usd: market_cap ?? 0 })
  }
  return [...firsts.values()]
}

/** Stores one treasury row a day with missing days and zero values. Every second DAO changes its source after day 25. */
async function storeTreasuries(random: ReturnType<typeof createRandom>): Promise<readonly Part[]> {
  const daos = database.registry.daos.filter(({ live }) => live).slice(0, 6)
  const rows = daos.flatMap(({ key }, rank) =>
    Array.from({ length: DAYS }, (_, day) => day)
      .filter((day) => (rank > 0 || day >= 10) && day !== 20 && !random.chance(0.2))
      .map((day) => {
        const value_usd = random.chance(0.1) ? 0 : 1e6 * random.next()
        const tokens = [{ symbol: 'UNI', quantity: 1, value_usd }]
        const source = rank % 2 === 0 && day > 25 ? 'defillama' : 'goldrush'
        return { dao: key, observed_at: new Date(FIRST + day * DAY_MS).toISOString(), value_usd, tokens, source }
      }),
  )
  await database.writer.insert({ table: 'dao_treasuries', rows })
  return rows
    .filter(({ value_usd }) => value_usd > 0)
    .map(({ dao, observed_at, value_usd, source }) => {
      return { day: Date.parse(observed_at), member: `${dao} ${source}`, usd: value_usd }
    })
}

beforeAll(async () => {
  const config = createTestConfig()
  database = await createApiDatabase(config)
  const random = createRandom(SEED)
  parts['market-cap'] = await storeTokens(random)
  parts['treasury-value'] = await storeTreasuries(random)
  api = await startApi({ config, ...database, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await database?.drop()
})

describe.each([
  { leaf: 'market-cap', sum: 'marketCapUsd', count: 'tokensIncluded' },
  { leaf: 'treasury-value', sum: 'treasuryValueUsd', count: 'daosIncluded' },
])('/data/aggregated/$leaf?basis=like-for-like', ({ leaf, sum, count }) => {
  const path = `/data/aggregated/${leaf}`
  const route = routes.find((one) => one.path === path)
  const target = (query: string) => fetch(`${api.url}${path}?basis=like-for-like&${query}`)
  const read = async (query: string) => {
    const response = await target(query)
    const body = (await response.json()) as Point[]
    expect(response.status, JSON.stringify(body)).toBe(200)
    expect(route?.response.parse(body)).toEqual(body)
    return body
  }
  /** Computes the comparison of each day with the day `daysBack` days earlier, in plain JavaScript. */
  const recount = (daysBack: number) => {
    const days = [...new Set((parts[leaf] ?? []).map(({ day }) => day))].sort((a, b) => a - b)
    return days.flatMap((day) => {
      const earlier = new Map(
        (parts[leaf] ?? [])
          .filter((part) => part.day === day - daysBack * DAY_MS)
          .map((part) => [part.member, part.usd]),
      )
      const both = (parts[leaf] ?? []).filter((part) => part.day === day && earlier.has(part.member))
      if (both.length === 0) return []
      const value = both.reduce((total, { usd }) => total + usd, 0)
      const before = both.reduce((total, { member }) => total + (earlier.get(member) ?? 0), 0)
      return [{ day, value, before, count: both.length }]
    })
  }
  const check = (points: readonly Point[], expected: ReturnType<typeof recount>) => {
    expect(points.map(({ recordedAt }) => Date.parse(recordedAt))).toEqual(expected.map(({ day }) => day))
    for (const [index, point] of points.entries()) {
      const { value, before, count: members } = expected[index] as (typeof expected)[number]
      expect(point[sum]).toEqual({
        value: expect.closeTo(value, 3),
        before: expect.closeTo(before, 3),
        change: expect.closeTo(100 * (value / before - 1), 6),
        metadata: { [count]: members },
      })
    }
  }

  it('compares each day with the day before, over the members present on both', async () => {
    const expected = recount(1)
    check(await read('start=2024-01-01'), expected)
    const isNew = ({ day, count: members }: (typeof expected)[number]) =>
      members < (parts[leaf] ?? []).filter((part) => part.day === day).length
    expect(expected.filter(isNew).length).toBeGreaterThan(5)
  })

  it('compares the first comparable day of each week with the day a week earlier', async () => {
    const weeks = new Map<number, ReturnType<typeof recount>[number]>()
    for (const point of recount(7)) {
      const week = toBucketStart(point.day, '7d')
      if (!weeks.has(week)) weeks.set(week, { ...point, day: week })
    }
    const first = Math.min(...weeks.keys())
    check(await read(`start=${new Date(first).toISOString()}&interval=7d`), [...weeks.values()])
  })

  it('returns the same first point for every start of the range', async () => {
    const all = await read('start=2024-01-01')
    for (const at of [5, 17]) {
      const from = all[at]?.recordedAt ?? ''
      expect(await read(`start=${from}`)).toEqual(all.slice(at))
    }
  })

  it('supports order, fill, points and limit like every series', async () => {
    const all = await read('start=2024-01-01')
    expect(await read('start=2024-01-01&order=desc')).toEqual([...all].reverse())
    const filled = await read('start=2024-02-01&fill=null')
    expect(filled).toHaveLength(DAYS - 1)
    for (const points of [4, 5, 6, 20]) {
      const response = await target(`start=2024-01-01&points=${points}`)
      const interval = response.headers.get('x-series-interval') ?? ''
      const weeks = (await read('start=2024-01-01&interval=7d')).length
      expect(interval, `${points} of ${weeks} weeks`).toBe(weeks >= points ? '7d' : '1d')
    }
    const selected = (await read('start=2024-01-01&limit=5')).map(({ recordedAt }) => Date.parse(recordedAt))
    expect(Math.min(...selected)).toBeGreaterThanOrEqual(NOW - 5 * DAY_MS)
  })

  it('returns the same records in every format', async () => {
    const all = await read('start=2024-01-01')
    const [, likeForLike] =
      (route?.response as z.ZodUnion<readonly z.ZodUnion<readonly z.ZodArray[]>[]> | undefined)?.options ?? []
    const record = likeForLike?.options[0]?.element as z.ZodType
    for (const format of ['csv', 'ndjson', 'parquet', 'arrow'] as const) {
      const response = await target(`start=2024-01-01&format=${format}`)
      const rows = await readTable(format, Buffer.from(await response.arrayBuffer()))
      expect(rows, format).toEqual(toExpected(format, all, record))
    }
  })

  it('does not change the stored sums, and rejects an unknown basis', async () => {
    expect(await (await fetch(api.url + path)).json()).toEqual([])
    expect((await fetch(`${api.url}${path}?basis=else`)).status).toBe(400)
  })
})
