import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Rows } from '../../api/formats/formats.ts'
import { type pricePoint, readStoredRows, toColumnTypes, toTier, writePoints } from '../../api/prices/points.ts'
import { packRows, unpackRows, writeJson } from '../../api/prices/stored-rows.ts'
import type { StoredRows } from '../../api/route/stored-points.ts'
import { INTERVALS, type Interval } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/store.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { PRICE_VECTORS } from '../support/price-codes.ts'
import { readListing } from '../upstream/recorded-files.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const present = existsSync(join(dataDir, 'fixtures-coinmarketcap'))
if (!present) console.log(`price codes: recorded quotes skipped, there is no ${dataDir}`)

const START = Date.parse('2024-01-01T00:00:00Z')
const WEEK = 7 * 86_400_000

interface Quote {
  readonly price: number
  readonly volume_24h: number | null
  readonly market_cap: number | null
  readonly circulating_supply: number | null
}

/** The bits as ClickHouse stores them. */
function toBits(value: number | null): string | null {
  if (value === null) return null
  return Buffer.from(new Float64Array([value]).buffer).toString('hex')
}

const toAllBits = (quote: Quote) =>
  [quote.price, quote.volume_24h, quote.market_cap, quote.circulating_supply].map(toBits)

/** An endless seeded sequence of numbers: of all sizes, with few digits and with all. */
function* numbers(seed: number): Generator<number, never> {
  let state = seed
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  for (;;) {
    const digits = 1 + Math.floor(next() * 17)
    yield Number(
      ((next() + next() / 2 ** 32) * 10 ** Math.floor(next() * 30 - 15) + Number.MIN_VALUE).toPrecision(digits),
    )
  }
}

/** The limits of each encoding, the limits of numbers, and numbers that resemble a code. */
const EDGES = [
  [
    0.1 + 0.2,
    0.1,
    0.3,
    1 / 3,
    1e-12,
    1e-13,
    123456.789012,
    499999999999999,
    5e14,
    500000000000001,
    2 ** 53,
    2 ** 53 - 1,
  ],
  [2 ** 63, 2 ** 64, 1e22, 1e23, 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 4.35, 0.285, 1.005],
  [
    0.000001234567,
    67890.12,
    99999999999999.98,
    4999999999999.99,
    5000000000000.01,
    1 + 2 ** -52,
    1 - 2 ** -53,
    1e15 / 3,
  ],
].flat()

function* quotes(): Generator<Quote> {
  for (const value of EDGES) {
    yield { price: value, volume_24h: value, market_cap: value, circulating_supply: null }
    yield {
      price: value,
      volume_24h: null,
      market_cap: value * 764644260.5013967,
      circulating_supply: 764644260.5013967,
    }
  }
  yield { price: 1, volume_24h: 0, market_cap: 0, circulating_supply: 0 }
  yield { price: 1, volume_24h: -1.5, market_cap: -1.7976931348623157e308, circulating_supply: 3 }
  yield {
    price: 1.7976931348623157e308,
    volume_24h: -5e-324,
    market_cap: 5e-324,
    circulating_supply: 1.7976931348623157e308,
  }
  const random = numbers(7)
  for (let count = 0; count < 2_000; count += 1) {
    const [price, supply] = [random.next().value, random.next().value]
    yield { price, volume_24h: random.next().value, market_cap: price * supply, circulating_supply: supply }
    yield { price, volume_24h: -random.next().value, market_cap: random.next().value, circulating_supply: supply }
  }
}

/** JSON has no infinity: a product beyond the largest number cannot be inserted. */
const ALL = [...quotes()].filter(({ market_cap }) => market_cap === null || Number.isFinite(market_cap))

const point = z.object({
  price: z.string(),
  volume_24h: z.string().nullable(),
  market_cap: z.string().nullable(),
  circulating_supply: z.string().nullable(),
})

/** One weekly observation for each of this many tokens, so that every tier has every observation, in the order of `ALL`. */
const ABREAST = 64

function insert({ db }: TestDatabase, token: number) {
  const rows = ALL.map((quote, n) => ({
    token: token + (n % ABREAST),
    observed_at: new Date(START + Math.floor(n / ABREAST) * WEEK).toISOString(),
    is_latest: false,
    ...quote,
  }))
  return db.insert({ table: 'token_quotes_in', rows })
}

const HEX = (column: string) =>
  `if(${column} IS NULL, NULL, lower(hex(reinterpretAsFixedString(assumeNotNull(${column})))))`

/** The values' bits as ClickHouse stores them, without conversion to text. */
async function readBits({ db }: TestDatabase, interval: Interval, token: number) {
  const { table, time, isOfTier } = toTier(interval)
  const columns = Object.keys(point.shape)
  const rows = await db.rows({
    name: 'bits',
    sql: `SELECT ${columns.map((column) => `${HEX(column)} AS ${column}`).join(', ')}
      FROM (SELECT token, ${time}, ${columns.join(', ')} FROM ${table} FINAL WHERE ${isOfTier} AND token >= {token: UInt64} AND token < {token: UInt64} + ${ABREAST})
      ORDER BY ${time}, token`,
    params: { token },
    schema: point,
  })
  return rows.map((row) => [row.price, row.volume_24h, row.market_cap, row.circulating_supply])
}

const toTimes = ({ starts, at, asOf }: Rows) =>
  [...starts].map((start, row) => (row < starts.length - 1 ? [start, at(row), asOf(row)] : [start]))

describe('values of the token price tables', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(createTestConfig())
    await insert(database, 1)
  })
  afterAll(() => database.drop())

  it.each(INTERVALS)('are read from the points of %s bit by bit', async (interval) => {
    expect(await readBits(database, interval, 1)).toEqual(ALL.map(toAllBits))
  })

  it.each(INTERVALS)('are encoded as points of %s with the bytes that ClickHouse writes', async (interval) => {
    const range = { from: START, to: START + (ALL.length / ABREAST + 1) * WEEK }
    const tokens = Array.from({ length: ABREAST }, (_, before) => before + 1)
    const all = await readStoredRows(
      database.db,
      interval,
      tokens.map((token) => ({ token, ...range })),
    )
    let points = 0
    for (const [place, token] of tokens.entries()) {
      const rows = all[place] as StoredRows
      const here = writeJson(rows)
      const unpacked = writeJson(unpackRows(packRows(rows), toColumnTypes(interval)))
      expect(unpacked.bytes.toString()).toBe(here.bytes.toString())
      expect(toTimes(unpacked)).toEqual(toTimes(here))
      const there = await writePoints(database.db, { token, interval, ...range })
      expect(here.bytes.toString()).toBe(there.bytes.toString())
      expect(toTimes(here)).toEqual(toTimes(there))
      points += here.starts.length - 1
    }
    expect(points).toBe(ALL.length)
  })

  it('use the first observation of a bucket, the one with the most known values at equal times, and keep unknown values', async () => {
    const at = (time: string) => `2024-03-01T${time}Z`
    const rows = [
      { observed_at: at('00:00:00.007'), price: 1, total_supply: 5.5 },
      { observed_at: at('00:04:59.999'), price: 2 },
      { observed_at: at('00:05:00'), price: 3 },
      { observed_at: at('00:05:00'), price: 4, volume_24h: 1e21 },
      { observed_at: at('23:59:59.999'), price: 1e-7, market_cap: 1.5e-9, circulating_supply: 1e300 },
    ]
    for (const row of rows) {
      await database.db.insert({ table: 'token_quotes_in', rows: [{ token: 200, is_latest: false, ...row }] })
    }
    for (const interval of INTERVALS) {
      const range = { token: 200, from: Date.parse('2024-02-26'), to: Date.parse('2024-03-04') }
      const [stored] = (await readStoredRows(database.db, interval, [range])) as [StoredRows]
      const here = writeJson(stored)
      const there = await writePoints(database.db, { interval, ...range })
      expect(here.bytes.toString()).toBe(there.bytes.toString())
      expect(toTimes(here)).toEqual(toTimes(there))
      if (interval !== '5m') continue
      expect(JSON.parse(`[${here.bytes}]`).map(({ quote }: z.output<typeof pricePoint>) => quote.USD)).toMatchObject([
        { price: 1, total_supply: 5.5, circulating_supply: null, timestamp: at('00:00:00.007') },
        { price: 4, volume_24h: 1e21 },
        { price: 1e-7, market_cap: 1.5e-9, circulating_supply: 1e300, timestamp: at('23:59:59.999') },
      ])
    }
  })

  it('throw for a malformed response', async () => {
    const torn: Database = { ...database.db, stream: async () => Readable.from([Buffer.alloc(29)]) }
    const range = { token: 1, from: START, to: START + WEEK }
    await expect(readStoredRows(torn, '5m', [range])).rejects.toMatchObject({ code: 'storage' })
  })

  it('are stored as decimal codes if short, and a market cap as an empty code if it is price times supply', async () => {
    const rows = [{ token: 100, observed_at: '2024-01-01T00:00:00Z', is_latest: false, price: 7.246, volume_24h: 12.5 }]
    const values = rows.map((row) => ({ ...row, market_cap: 7.246 * 3, circulating_supply: 3 }))
    await database.db.insert({ table: 'token_quotes_in', rows: values })
    const [codes] = await database.db.rows({
      name: 'codes',
      sql: 'SELECT price_code, volume_24h_code, market_cap_code FROM token_prices FINAL WHERE token = 100',
      schema: z.object({ price_code: z.number(), volume_24h_code: z.number(), market_cap_code: z.number() }),
    })
    expect(codes).toEqual({ price_code: ~(72460 * 8 + 3), volume_24h_code: ~(1250 * 8 + 2), market_cap_code: 0 })
  })

  it('have the codes of the golden vectors, and are decoded from them', async () => {
    const rows = PRICE_VECTORS.map(({ price, volume_24h, market_cap, circulating_supply }, at) => ({
      ...{ token: 300 + at, observed_at: '2024-01-01T00:00:00Z', is_latest: false },
      ...{ price, volume_24h, market_cap, circulating_supply },
    }))
    await database.db.insert({ table: 'token_quotes_in', rows })
    const text = z.string().nullable()
    const found = await database.db.rows({
      name: 'golden-codes',
      sql: `SELECT toString(price_code) AS price_code, toString(volume_24h_code) AS volume_24h_code,
  toString(market_cap_code) AS market_cap_code, price, volume_24h, market_cap, circulating_supply
FROM token_prices FINAL WHERE token >= 300 AND token < 400 ORDER BY token`,
      schema: z.object({
        ...{ price_code: text, volume_24h_code: text, market_cap_code: text, price: z.number() },
        ...{ volume_24h: z.number().nullable(), market_cap: z.number().nullable() },
        circulating_supply: z.number().nullable(),
      }),
    })
    expect(found).toEqual(PRICE_VECTORS)
  })

  it.skipIf(!present)('need no space for the market caps of a recorded listing', async () => {
    const quotes = [...readListing(dataDir).values()].flatMap(({ quote, circulating_supply }, index) => {
      const { price, volume_24h, market_cap } = quote.USD
      const observed_at = '2024-01-01T00:00:00Z'
      return { token: 1_000 + index, observed_at, is_latest: false, price, volume_24h, market_cap, circulating_supply }
    })
    await database.db.insert({ table: 'token_quotes_in', rows: quotes })
    const [found] = await database.db.rows({
      name: 'products',
      sql: 'SELECT countIf(market_cap_code = 0) AS products, groupArray(market_cap) AS caps FROM (SELECT * , market_cap FROM token_prices FINAL WHERE token >= 1000 ORDER BY token)',
      schema: z.object({ products: z.number(), caps: z.array(z.number()) }),
    })
    expect(found).toEqual({ products: quotes.length, caps: quotes.map(({ market_cap }) => market_cap) })
    expect(quotes.length).toBeGreaterThan(50)
  })
})
