import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { loadMigrations, migrate } from '../../clickhouse/migrate.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { silent } from '../support/silent.ts'
import { readListing } from '../upstream/recorded-files.ts'

const dataDir = process.env.UPSTREAM_DATA_DIR || join(import.meta.dirname, '../../../shared/data')
const present = existsSync(join(dataDir, 'fixtures-coinmarketcap'))
if (!present) console.log(`price codes: recorded quotes skipped, there is no ${dataDir}`)

const directory = join(import.meta.dirname, '../../clickhouse/migrations')
const TABLES = ['', '_30m', '_1h', '_4h', '_1d', '_7d'].map((tier) => `token_prices${tier}`)
const START = Date.parse('2024-01-01T00:00:00Z')
const WEEK = 7 * 86_400_000

interface Quote {
  readonly price: number
  readonly volume_24h: number | null
  readonly market_cap: number | null
  readonly circulating_supply: number | null
}

/** Every bit of it, as the engine has it in memory. */
function toBits(value: number | null): string | null {
  if (value === null) return null
  return Buffer.from(new Float64Array([value]).buffer).toString('hex')
}

const toAllBits = (quote: Quote) =>
  [quote.price, quote.volume_24h, quote.market_cap, quote.circulating_supply].map(toBits)

/** Numbers without end from a seed: of all sizes, with few digits and with all of them. */
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

/** Where one way of storing ends and another begins, the ends of what a number can be, and what looks like a code. */
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

/** JSON has no infinity: a product that is too large for a number cannot come in. */
const ALL = [...quotes()].filter(({ market_cap }) => market_cap === null || Number.isFinite(market_cap))

const point = z.object({
  price: z.string(),
  volume_24h: z.string().nullable(),
  market_cap: z.string().nullable(),
  circulating_supply: z.string().nullable(),
})

/** One observation a week of each of so many tokens, so that every tier has every observation, in the order of `ALL`. */
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

/** The bits of the values as the engine has them, without a number's way through text. */
async function readBits({ db }: TestDatabase, table: string, token: number) {
  const time = table === 'token_prices' ? 'observed_at' : 'bucket_at'
  const columns = Object.keys(point.shape)
  const rows = await db.rows({
    name: 'bits',
    sql: `SELECT ${columns.map((column) => `${HEX(column)} AS ${column}`).join(', ')}
      FROM (SELECT token, ${time}, ${columns.join(', ')} FROM ${table} FINAL WHERE token >= {token: UInt64} AND token < {token: UInt64} + ${ABREAST})
      ORDER BY ${time}, token`,
    params: { token },
    schema: point,
  })
  return rows.map((row) => [row.price, row.volume_24h, row.market_cap, row.circulating_supply])
}

describe('values of the token price tables', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(createTestConfig())
    await insert(database, 1)
  })
  afterAll(() => database.drop())

  it.each(TABLES)('come back from %s bit by bit', async (table) => {
    expect(await readBits(database, table, 1)).toEqual(ALL.map(toAllBits))
  })

  it('are stored as digits where they have few, and a market cap as nothing where it is price times supply', async () => {
    const rows = [{ token: 100, observed_at: '2024-01-01T00:00:00Z', is_latest: false, price: 7.246, volume_24h: 12.5 }]
    const known = rows.map((row) => ({ ...row, market_cap: 7.246 * 3, circulating_supply: 3 }))
    await database.db.insert({ table: 'token_quotes_in', rows: known })
    const [codes] = await database.db.rows({
      name: 'codes',
      sql: 'SELECT price_code, volume_24h_code, market_cap_code FROM token_prices FINAL WHERE token = 100',
      schema: z.object({ price_code: z.number(), volume_24h_code: z.number(), market_cap_code: z.number() }),
    })
    expect(codes).toEqual({ price_code: ~(72460 * 8 + 3), volume_24h_code: ~(1250 * 8 + 2), market_cap_code: 0 })
  })

  it.skipIf(!present)('take nothing for the market caps of a recorded listing', async () => {
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

describe('rows that were stored before values became codes', () => {
  let database: TestDatabase
  beforeAll(async () => {
    const config = createTestConfig()
    database = await createTestDatabase(config, { empty: true })
    const before = mkdtempSync(join(tmpdir(), 'migrations-'))
    writeFileSync(join(before, 'released.sha256'), '')
    for (const file of readdirSync(directory).filter((name) => /^0(0\d|1[0-4])_.*\.sql$/.test(name))) {
      copyFileSync(join(directory, file), join(before, file))
    }
    const { server, db } = database
    await migrate(server, db, config.clickhouse.database, silent, before)
    rmSync(before, { recursive: true })
    await insert(database, 1)
    await migrate(server, db, config.clickhouse.database, silent)
    await insert(database, 1 + ABREAST)
    await db.command({
      name: 'forget',
      sql: "DELETE FROM migrations WHERE name LIKE '015%' SETTINGS lightweight_deletes_sync = 2",
    })
    await migrate(server, db, config.clickhouse.database, silent)
  })
  afterAll(() => database.drop())

  it.each(TABLES)('keep their values in %s, as do new ones, and the change may be repeated', async (table) => {
    expect(await readBits(database, table, 1)).toEqual(ALL.map(toAllBits))
    expect(await readBits(database, table, 1 + ABREAST)).toEqual(ALL.map(toAllBits))
  })

  it.each(TABLES)('merge with what is stored again in %s', async (table) => {
    const count = async () => (await readBits(database, table, 1)).length
    const before = await count()
    await insert(database, 1)
    await database.db.command({ name: 'merge', sql: `OPTIMIZE TABLE ${table} FINAL` })
    expect(await count()).toBe(before)
    expect(await readBits(database, table, 1)).toEqual(ALL.map(toAllBits))
  })
})

it('a row that an old insert brings while values become codes is not lost: the change fails and is done again', async () => {
  const config = createTestConfig()
  const { server, db, drop } = await createTestDatabase(config, { empty: true })
  try {
    const before = mkdtempSync(join(tmpdir(), 'migrations-'))
    writeFileSync(join(before, 'released.sha256'), '')
    for (const { name } of loadMigrations().filter((one) => one.name < '015')) {
      copyFileSync(join(directory, name), join(before, name))
    }
    await migrate(server, db, config.clickhouse.database, silent, before)
    rmSync(before, { recursive: true })
    const statements = loadMigrations().find(({ name }) => name.startsWith('015'))?.statements ?? []
    const check = statements.findIndex((sql) => sql.trimStart().startsWith('INSERT INTO token_prices '))
    expect(check).toBeGreaterThan(0)
    for (const sql of statements.slice(0, check)) await db.command({ name: 'half', sql })
    const late = "SELECT 1, toDateTime64('2024-05-01 00:00:00', 3, 'UTC'), 7.25, 12.5, 4"
    const columns = 'token, observed_at, price, volume_24h, known_count'
    await db.command({ name: 'late', sql: `INSERT INTO token_prices (${columns}) ${late}` })
    await expect(db.command({ name: 'check', sql: String(statements[check]) })).rejects.toThrow(
      'rows came without codes',
    )
    await migrate(server, db, config.clickhouse.database, silent)
    const rows = await db.rows({
      name: 'late',
      sql: 'SELECT price, volume_24h FROM token_prices FINAL WHERE token = 1',
      schema: z.unknown(),
    })
    expect(rows).toEqual([{ price: 7.25, volume_24h: 12.5 }])
  } finally {
    await drop()
  }
})
