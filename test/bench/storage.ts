import { z } from 'zod'
import type { Database } from '../../shared/store/store.ts'
import {
  atMost,
  type BenchContext,
  type Benchmark,
  type BenchRow,
  type BenchTable,
  type Findings,
} from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { listPriceData, type PriceData } from './price-data.ts'

const RAW = 'token_prices'
const ROLL_UPS = 'token_price_rollups'

const VALUES = ['price', 'volume_24h', 'market_cap', 'total_supply', 'circulating_supply'] as const
const COLUMNS = ['token', 'observed_at', ...VALUES] as const

/** Ways to store the same columns: a codec for each kind of column. */
const VARIANTS: Readonly<Record<string, { readonly key: string; readonly time: string; readonly value: string }>> = {
  'default codecs': { key: '', time: '', value: '' },
  'the same again': { key: '', time: '', value: '' },
  'Gorilla, ZSTD': { key: 'CODEC(ZSTD(1))', time: 'CODEC(DoubleDelta, ZSTD(1))', value: 'CODEC(Gorilla, ZSTD(1))' },
  'FPC, ZSTD': { key: 'CODEC(ZSTD(1))', time: 'CODEC(DoubleDelta, ZSTD(1))', value: 'CODEC(FPC(12), ZSTD(1))' },
  'Delta, ZSTD': { key: 'CODEC(Delta, ZSTD(1))', time: 'CODEC(Delta, ZSTD(1))', value: 'CODEC(Delta, ZSTD(3))' },
  'ZSTD(1)': { key: 'CODEC(ZSTD(1))', time: 'CODEC(ZSTD(1))', value: 'CODEC(ZSTD(1))' },
  'ZSTD(9)': { key: 'CODEC(ZSTD(9))', time: 'CODEC(T64, ZSTD(9))', value: 'CODEC(ZSTD(9))' },
}

export const storage: Benchmark = {
  name: 'storage',
  about:
    'Bytes on disk of a price point, fully merged, in the current tables and with other codecs. All values are compared bit by bit before the sizes.',
  run: (context) =>
    withEngine((engine) => withDatabase(engine, 'storage', (database) => measureAll(context, database))),
}

async function measureAll({ dataDir, quick, say }: BenchContext, database: BenchDatabase): Promise<Findings> {
  const rows: BenchRow[] = []
  const tables: BenchTable[] = []
  const data = listPriceData(dataDir, quick)
  if (data.length === 1) say(`recorded data skipped: there is none in ${dataDir}`)
  for (const set of data) {
    const points = await load(database.db, set)
    say(`${set.name}: ${points.toLocaleString('en-US')} points`)
    await storeOwn(database.db)
    await requireSameBits(database.db, points)
    for (const [variant, codecs] of Object.entries(VARIANTS)) await storeVariant(database.db, variant, codecs)
    const sizes = await readSizes(database.db)
    rows.push(...toRows(set, points, sizes))
    tables.push(toTable(set, points, sizes))
    await clear(database.db)
  }
  const small = 'In a very small table the columns share a file, so they have no separate size.'
  return { rows, tables, notes: [...data.map(({ name, about }) => `${name}: ${about}.`), small] }
}

/** Loads the source table with plain values. @returns its points. */
async function load(db: Database, set: PriceData): Promise<number> {
  const types = ['UInt64', "DateTime64(3, 'UTC')", 'Float64', ...Array(4).fill('Nullable(Float64)')]
  const columns = COLUMNS.map((name, index) => `${name} ${types[index]}`).join(', ')
  await db.command({
    name: 'source',
    sql: `CREATE TABLE source (${columns}) ENGINE = MergeTree ORDER BY (token, observed_at)`,
  })
  let points = 0
  let token = 1_000_000_007
  for (const series of set.series()) {
    token += 345_678_901_234_567 // Keys of tokens are spread over 52 bits.
    const rows = series.map(({ at, price, volume24h, marketCap, totalSupply, circulatingSupply }) => ({
      token,
      observed_at: new Date(at).toISOString(),
      price,
      volume_24h: volume24h,
      market_cap: marketCap,
      total_supply: totalSupply,
      circulating_supply: circulatingSupply,
    }))
    await db.insert({ table: 'source', rows })
    points += rows.length
  }
  return points
}

async function storeOwn(db: Database): Promise<void> {
  const columns = COLUMNS.join(', ')
  await db.command({
    name: 'store',
    sql: `INSERT INTO token_quotes_in (${columns}, is_latest) SELECT ${columns}, false FROM source`,
  })
  for (const table of [RAW, ROLL_UPS]) await db.command({ name: 'merge', sql: `OPTIMIZE TABLE ${table} FINAL` })
}

async function storeVariant(db: Database, variant: string, codecs: { key: string; time: string; value: string }) {
  const columns = [
    `token UInt64 ${codecs.key}`,
    `observed_at DateTime64(3, 'UTC') ${codecs.time}`,
    `price Float64 ${codecs.value}`,
    ...VALUES.slice(1).map((name) => `${name} Nullable(Float64) ${codecs.value}`),
  ]
  const table = `\`${variant}\``
  await db.command({
    name: 'variant',
    sql: `CREATE TABLE ${table} (${columns.join(', ')}) ENGINE = ReplacingMergeTree
      PARTITION BY toYear(observed_at) ORDER BY (token, observed_at) SETTINGS index_granularity = 1024`,
  })
  await db.command({ name: 'variant', sql: `INSERT INTO ${table} SELECT * FROM source` })
  await db.command({ name: 'variant', sql: `OPTIMIZE TABLE ${table} FINAL` })
}

/** @throws Error if a stored value differs from the source in any bit. */
async function requireSameBits(db: Database, points: number): Promise<void> {
  const digest = (table: string) =>
    `SELECT count() AS points, toString(groupBitXor(sipHash64(token, observed_at, ${VALUES.map((name) => `${name} IS NULL, reinterpretAsUInt64(ifNull(${name}, 0))`).join(', ')}))) AS digest FROM ${table}`
  const [source, stored] = await db.rows({
    name: 'digests',
    sql: `${digest('source')} UNION ALL ${digest(`${RAW} FINAL`)}`,
    schema: z.object({ points: z.number(), digest: z.string() }),
  })
  if (source?.points !== points || source.digest !== stored?.digest)
    throw new Error('stored values differ from those that came in')
}

interface Size {
  readonly table: string
  readonly bytes: number
  readonly columns: Readonly<Record<string, number>>
}

const sizeRow = z.object({ table: z.string(), column: z.string(), bytes: z.number() })

/** Bytes per table with all its parts, and per column. */
async function readSizes(db: Database): Promise<Map<string, Size>> {
  const schema = z.object({ table: z.string(), bytes: z.number() })
  const tables = await db.rows({
    name: 'table-sizes',
    sql: 'SELECT table, sum(bytes_on_disk) AS bytes FROM system.parts WHERE database = currentDatabase() AND active GROUP BY table',
    schema,
  })
  const columns = await db.rows({
    name: 'column-sizes',
    sql: 'SELECT table, name AS column, data_compressed_bytes AS bytes FROM system.columns WHERE database = currentDatabase()',
    schema: sizeRow,
  })
  return new Map(
    tables.map(({ table, bytes }) => {
      const own = columns.filter((row) => row.table === table).map(({ column, bytes: size }) => [column, size])
      return [table, { table, bytes, columns: Object.fromEntries(own) }]
    }),
  )
}

const toBytes = (sizes: ReadonlyMap<string, Size>, tables: readonly string[]) =>
  tables.reduce((sum, table) => sum + (sizes.get(table)?.bytes ?? Number.NaN), 0)

function toRows({ name, coarse, most }: PriceData, points: number, sizes: ReadonlyMap<string, Size>): BenchRow[] {
  const ownValue = { name: 'as it is', value: toBytes(sizes, [RAW]) / points, unit: 'B/point' }
  const against = (variant: string) => ({ name: variant, value: toBytes(sizes, [variant]) / points, unit: 'B/point' })
  const row = (what: string, a: BenchRow['a'], b: BenchRow['a']) => ({
    what: `${name}: ${what}`,
    a,
    b,
    ratio: a.value / b.value,
  })
  const plain = against('default codecs')
  const rollUps = { name: 'all roll-ups', value: toBytes(sizes, [ROLL_UPS]) / points, unit: 'B/point' }
  const point = row('a price point', ownValue, plain)
  return [
    { ...point, ...(most !== undefined && { target: atMost(most) }), ...(coarse !== undefined && { reason: coarse }) },
    row('a price point', ownValue, against('Gorilla, ZSTD')),
    row('a price point', ownValue, against('FPC, ZSTD')),
    // Daily values have a row in every tier, so their roll-ups are copies.
    ...(coarse === undefined
      ? [{ ...row('all roll-ups together', rollUps, { ...ownValue, name: 'raw table' }), target: atMost(0.35) }]
      : []),
    row('A/A: the noise', against('the same again'), plain),
  ]
}

/** The column with a value's bytes, if the value is computed from another column. */
const STORED_AS: Readonly<Record<string, string>> = {
  price: 'price_code',
  volume_24h: 'volume_24h_code',
  market_cap: 'market_cap_code',
}

function toTable({ name }: PriceData, points: number, sizes: ReadonlyMap<string, Size>): BenchTable {
  const toCells = (title: string, size: Size | undefined, ownValue: boolean) => {
    const toCell = (bytes = 0) => (bytes === 0 ? '' : (bytes / points).toFixed(3))
    const columns = COLUMNS.map((column) => toCell(size?.columns[(ownValue && STORED_AS[column]) || column]))
    return [title, ...columns, toCell(size?.bytes)]
  }
  const variants = Object.keys(VARIANTS).filter((variant) => variant !== 'the same again')
  return {
    title: `Bytes a point, ${name}, ${points.toLocaleString('en-US')} points`,
    head: ['', ...COLUMNS, 'all'],
    body: [
      toCells('as it is', sizes.get(RAW), true),
      ...variants.map((variant) => toCells(variant, sizes.get(variant), false)),
    ],
  }
}

async function clear(db: Database): Promise<void> {
  for (const table of ['source', ...Object.keys(VARIANTS)])
    await db.command({ name: 'drop', sql: `DROP TABLE \`${table}\` SYNC` })
  for (const table of [RAW, ROLL_UPS]) await db.command({ name: 'truncate', sql: `TRUNCATE TABLE ${table} SYNC` })
}
