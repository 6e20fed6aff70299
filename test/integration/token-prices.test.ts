import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { TokenPriceRow } from '../../shared/datasets/token-prices.ts'
import { INTERVAL_SECONDS, INTERVALS, type Interval, toBucketStart } from '../../shared/intervals.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'

const COLLECTED_AT = '2024-06-01T00:00:00Z'
const ROLL_UPS = INTERVALS.filter((interval) => interval !== '5m')

function row(token: number, at: string | number, price: number, more: Partial<TokenPriceRow> = {}): TokenPriceRow {
  const unknown = null
  return {
    token,
    observed_at: new Date(at).toISOString(),
    is_latest: false,
    price,
    volume_24h: unknown,
    market_cap: unknown,
    total_supply: unknown,
    circulating_supply: unknown,
    max_supply: unknown,
    fully_diluted_market_cap: unknown,
    volume_change_24h: unknown,
    percent_change_1h: unknown,
    percent_change_24h: unknown,
    percent_change_7d: unknown,
    percent_change_30d: unknown,
    percent_change_60d: unknown,
    percent_change_90d: unknown,
    tvl: unknown,
    ...more,
  }
}

const point = z.object({
  bucket_at: z.string(),
  observed_at: z.string(),
  price: z.number(),
  volume_24h: z.number().nullable(),
})

describe('token price roll-ups', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(createTestConfig())
  })
  afterAll(() => database.drop())

  const insert = (rows: TokenPriceRow[], collected_at = COLLECTED_AT) =>
    database.db.insert({ table: 'token_quotes_in', rows: rows.map((one) => ({ ...one, collected_at })) })
  const rollUp = (interval: Interval, token: number) =>
    database.db.rows({
      name: 'roll-up',
      sql: `SELECT bucket_at, observed_at, price, volume_24h FROM token_price_rollups FINAL
            WHERE token = {token:UInt64} AND interval_seconds = {seconds:UInt32} ORDER BY bucket_at`,
      params: { token, seconds: INTERVAL_SECONDS[interval] },
      schema: point,
    })
  const everything = async () => {
    const tables = ['token_prices', 'token_quotes', 'token_price_rollups']
    const dumps = await Promise.all(
      tables.map((table) =>
        database.db.rows({
          name: 'dump',
          sql: `SELECT '${table}' AS from_table, * FROM ${table} FINAL ORDER BY ALL`,
          schema: z.record(z.string(), z.unknown()),
        }),
      ),
    )
    return JSON.stringify(dumps)
  }

  /** Observations at uneven times over three weeks, sorted by a plain computation. */
  function observations(token: number): TokenPriceRow[] {
    const start = Date.parse('2024-02-20T00:03:11.250Z')
    return Array.from({ length: 3_000 }, (_, i) =>
      row(token, start + i * 613_777, 1 + Math.sin(i) / 3, { volume_24h: i % 7 ? i : null }),
    )
  }
  const expected = (rows: TokenPriceRow[], interval: Interval) => {
    const first = new Map<number, TokenPriceRow>()
    for (const one of rows) {
      const bucket = toBucketStart(Date.parse(one.observed_at), interval)
      const existing = first.get(bucket)
      if (existing === undefined || one.observed_at < existing.observed_at) first.set(bucket, one)
    }
    return [...first]
      .sort(([a], [b]) => a - b)
      .map(([bucket, one]) => ({
        bucket_at: new Date(bucket).toISOString().replace('.000Z', 'Z'),
        observed_at: one.observed_at,
        price: one.price,
        volume_24h: one.volume_24h,
      }))
  }

  it('keep the first observation of each bucket, in any order of inserts', async () => {
    const rows = observations(1)
    const shuffled = rows.map((_, i) => rows[(i * 1_009) % rows.length]).filter((one) => one !== undefined)
    for (let at = 0; at < shuffled.length; at += 500) await insert(shuffled.slice(at, at + 500))
    for (const interval of ROLL_UPS) expect(await rollUp(interval, 1)).toEqual(expected(rows, interval))
  })

  it('do not change when rows are inserted again, concurrently and in other batches', async () => {
    const rows = observations(1)
    const before = await everything()
    await Promise.all([insert(rows), insert(rows.slice(100, 900)), insert(rows.slice().reverse())])
    expect(await everything()).toBe(before)
  })

  it('apply a correction of an observation', async () => {
    await insert([row(2, '2024-05-01T00:00:00Z', 10), row(2, '2024-05-01T00:05:00Z', 11)])
    await insert([row(2, '2024-05-01T00:00:00Z', 12)])
    for (const interval of ROLL_UPS) expect((await rollUp(interval, 2)).map(({ price }) => price)).toEqual([12])
  })

  it('lose no value to a source with fewer known values at the same time', async () => {
    const at = '2024-05-01T00:00:00Z'
    await insert([row(6, at, 10, { volume_24h: 5, market_cap: 7 })])
    await insert([row(6, at, 11)])
    for (const interval of ROLL_UPS) expect(await rollUp(interval, 6)).toMatchObject([{ price: 10, volume_24h: 5 }])
    await insert([row(6, at, 12), row(6, at, 13, { volume_24h: 6, market_cap: 8 })])
    for (const interval of ROLL_UPS) expect(await rollUp(interval, 6)).toMatchObject([{ price: 13, volume_24h: 6 }])
    const sql = 'SELECT price FROM token_prices FINAL WHERE token = 6'
    expect(await database.db.rows({ name: 'raw', sql, schema: z.object({ price: z.number() }) })).toEqual([
      { price: 13 },
    ])
  })

  it('exist for every interval above the raw series', async () => {
    await insert([row(5, '2024-05-01T00:00:00Z', 1)])
    const sql = 'SELECT interval_seconds AS seconds FROM token_price_rollups FINAL WHERE token = 5 ORDER BY seconds'
    const found = await database.db.rows({ name: 'intervals', sql, schema: z.object({ seconds: z.number() }) })
    expect(found.map(({ seconds }) => seconds)).toEqual(ROLL_UPS.map((interval) => INTERVAL_SECONDS[interval]))
  })

  /** A token's first bucket in each tier; the finest tier is the raw series. */
  const everyTier = async (token: number) => {
    const raw = 'SELECT price FROM token_prices FINAL WHERE token = {token:UInt64} ORDER BY observed_at LIMIT 1'
    const fine = await database.db.rows({
      name: 'raw',
      sql: raw,
      params: { token },
      schema: point.pick({ price: true }),
    })
    const coarse = await Promise.all(ROLL_UPS.map(async (interval) => (await rollUp(interval, token))[0]))
    return [...fine, ...coarse].map((one) => one?.price)
  }
  const inEveryTier = (price: number) => INTERVALS.map(() => price)

  it('select the same of two observations at one time in a batch as the raw series', async () => {
    const at = '2024-05-01T00:00:00.123Z'
    await insert([row(10, at, 20), row(10, at, 21)])
    expect(await everyTier(10)).toEqual(inEveryTier(21))
    await insert([row(11, at, 21), row(11, at, 20)])
    expect(await everyTier(11)).toEqual(inEveryTier(20))
    await insert([row(12, at, 20, { market_cap: 7 }), row(12, at, 21), row(12, '2024-05-01T00:00:01Z', 22)])
    expect(await everyTier(12)).toEqual(inEveryTier(20))
    const many = Array.from({ length: 5_000 }, (_, n) => row(13, at, n + 1))
    await insert(many)
    expect(await everyTier(13)).toEqual(inEveryTier(5_000))
  })

  it('keep the later collected of two observations at one time, in any order of inserts', async () => {
    const at = '2024-05-01T00:00:00.123Z'
    const [earlier, later] = ['2024-05-01T01:00:00Z', '2024-05-01T01:01:00Z']
    await insert([row(14, at, 20)], earlier)
    await insert([row(14, at, 21)], later)
    expect(await everyTier(14)).toEqual(inEveryTier(21))
    await insert([row(15, at, 21)], later)
    await insert([row(15, at, 20)], earlier)
    expect(await everyTier(15)).toEqual(inEveryTier(21))
    await insert([row(15, at, 22, { volume_24h: 1 })], earlier)
    expect(await everyTier(15)).toEqual(inEveryTier(22))
  })

  it('return exact values', async () => {
    const values = [Number.MIN_VALUE, 0.1 + 0.2, 1e-12, 123456789.12345678, 1.7976931348623157e308, 5e-324, 2 ** 53 - 1]
    await insert(
      values.map((value, i) =>
        row(3, Date.parse('2024-05-01T00:00:00Z') + i * 1_800_000, value, { volume_24h: value }),
      ),
    )
    const stored = await rollUp('30m', 3)
    expect(stored.map(({ price }) => price)).toEqual(values)
    expect(stored.map(({ volume_24h }) => volume_24h)).toEqual(values)
  })

  it('are complete after a retry if one view failed', async () => {
    const rows = [row(4, '2024-05-01T00:00:00Z', 7), row(4, '2024-05-01T01:00:00Z', 8)]
    await database.db.command({ name: 'break', sql: 'RENAME TABLE token_price_rollups TO token_price_rollups_away' })
    await expect(insert(rows)).rejects.toMatchObject({ code: 'storage' })
    await database.db.command({ name: 'mend', sql: 'RENAME TABLE token_price_rollups_away TO token_price_rollups' })
    await insert(rows)
    await insert(rows)
    expect((await rollUp('1h', 4)).map(({ price }) => price)).toEqual([7, 8])
    expect((await rollUp('4h', 4)).map(({ price }) => price)).toEqual([7])
    const raw = await database.db.rows({
      name: 'raw',
      sql: 'SELECT price FROM token_prices FINAL WHERE token = 4 ORDER BY observed_at',
      schema: z.object({ price: z.number() }),
    })
    expect(raw).toEqual([{ price: 7 }, { price: 8 }])
  })

  it('keep the newest latest quote; history never replaces it', async () => {
    const quotes = () =>
      database.db.rows({
        name: 'quotes',
        sql: 'SELECT price, max_supply FROM token_quotes FINAL WHERE token = 5',
        schema: z.object({ price: z.number(), max_supply: z.number().nullable() }),
      })
    await insert([row(5, '2024-05-01T00:00:00Z', 1, { is_latest: true, max_supply: 100 })])
    await insert([row(5, '2024-06-01T00:00:00Z', 2)])
    await insert([row(5, '2024-04-01T00:00:00Z', 3, { is_latest: true, max_supply: 99 })])
    expect(await quotes()).toEqual([{ price: 1, max_supply: 100 }])
  })
})
