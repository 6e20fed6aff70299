import { Readable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type ColumnTypes, toNative } from '../../shared/store/native.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'

const COLUMNS = {
  key: 'UInt64',
  small: 'UInt8',
  middle: 'UInt16',
  large: 'Nullable(UInt32)',
  number: 'Float64',
  maybe: 'Nullable(Float64)',
  isIt: 'Bool',
  at: "DateTime64(3, 'UTC')",
  maybeAt: "Nullable(DateTime64(3, 'UTC'))",
  text: 'String',
  maybeText: 'Nullable(String)',
  few: 'LowCardinality(String)',
  side: "Enum8('BUY' = 1, 'SELL' = 2)",
}
const types: ColumnTypes = new Map(Object.entries(COLUMNS))

const row = {
  key: 7_777_777_777,
  small: 255,
  middle: 65_535,
  large: 4_294_967_295,
  number: 0.1 + 0.2,
  maybe: -1.5e-300,
  isIt: true,
  at: '2024-02-29T23:59:59.999Z',
  maybeAt: '1970-01-01T00:00:00Z',
  text: 'a "text" of\nseveral\t\\ parts',
  maybeText: '\u00fcn\u00efc\u00f6d\u00e9 \u{1f600}',
  few: 'x'.repeat(300),
  side: 'SELL',
}
const blank = { large: null, maybe: null, maybeAt: null, maybeText: null }
const zero = { key: 0, small: 0, middle: 0, number: 0, isIt: false, text: '', few: '', side: 'BUY' }
const rows = [
  row,
  { ...row, ...blank },
  { ...row, ...blank, ...zero },
  { ...row, key: Number.MAX_SAFE_INTEGER, number: -1.7976931348623157e308, maybe: -0 },
  { ...row, key: 2 ** 32, number: 5e-324, at: '2199-12-31T23:59:59.999Z' },
]

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
  const columns = Object.entries(COLUMNS).map(([name, type]) => `${name} ${type}`)
  for (const table of ['native', 'json'])
    await database.db.command({
      name: 'create',
      sql: `CREATE TABLE ${table} (${columns.join(', ')}, more Nullable(String)) ENGINE = MergeTree ORDER BY (key, number)`,
    })
})

beforeEach(async () => {
  for (const table of ['native', 'json']) await database.db.command({ name: 'empty', sql: `TRUNCATE TABLE ${table}` })
})

afterAll(() => database.drop())

const read = (table: string) =>
  database.db.rows({
    name: 'all',
    sql: `SELECT * EXCEPT number, reinterpretAsUInt64(number) AS bits, toString(maybe) AS digits FROM ${table} ORDER BY ALL`,
    schema: z.record(z.string(), z.unknown()),
  })

/** Like the text formats. */
const insertAsJson = (table: string, selected: readonly object[]) =>
  database.db.load({
    table,
    columns: Object.keys(selected[0] ?? {}),
    format: 'JSONEachRow',
    data: Readable.from([selected.map((one) => JSON.stringify(one)).join('\n')]),
  })

describe('rows as a Native block', () => {
  it('are stored like JSON rows', async () => {
    expect(toNative(types, rows)).toBeDefined()
    await database.db.insert({ table: 'native', rows })
    await insertAsJson('json', rows)
    expect(await read('native')).toEqual(await read('json'))
    expect(await read('native')).toHaveLength(rows.length)
  })

  it('have the members of every row, and defaults for the others', async () => {
    await database.db.insert({ table: 'native', rows, every: { more: 'in every row' } })
    await insertAsJson(
      'json',
      rows.map((one) => ({ ...one, more: 'in every row' })),
    )
    expect(await read('native')).toEqual(await read('json'))
  })

  it('have the replacement character for a lone surrogate, as JSON rows have', async () => {
    const texts = ['a\ud800b', '\udfff', '\\ud800', '\\\ud800', '\u{1f600}\ude00', '\u0000\u2028']
    const broken = texts.map((text, key) => ({ ...row, key, text }))
    await database.db.insert({ table: 'native', rows: broken })
    const [first, ...rest] = broken
    await database.db.insert({ table: 'json', rows: [{ ...first, more: null }, ...rest] })
    expect(await read('native')).toEqual(await read('json'))
    expect((await read('json')).map(({ text }) => text)).toEqual([
      ...['a\ufffdb', '\ufffd', '\\ud800', '\\\ufffd', '\u{1f600}\ufffd', '\u0000\u2028'],
    ])
  })

  it('work for a hundred thousand rows', async () => {
    const many = Array.from({ length: 100_000 }, (_, at) => ({ ...row, key: at, number: at / 7, text: `text ${at}` }))
    await database.db.insert({ table: 'native', rows: many })
    const [sums] = await database.db.rows({
      name: 'sums',
      sql: 'SELECT count() AS n, sum(key) AS keys, uniqExact(text) AS texts, countIf(number = key / 7) AS numbers FROM native',
      schema: z.record(z.string(), z.number()),
    })
    expect(sums).toEqual({ n: 100_000, keys: 4_999_950_000, texts: 100_000, numbers: 100_000 })
  })

  it.each([
    ['a number out of range', { small: 256 }],
    ['a part of a whole number', { key: 0.5 }],
    ['a negative number without a sign', { middle: -1 }],
    ['no number', { number: Number.NaN }],
    ['null where there is always a value', { number: null }],
    ['a text for a number', { number: '1' }],
    ['a number for a text', { text: 1 }],
    ['a time in other words', { at: '2024-01-01 00:00:00' }],
    ['a time that does not exist', { at: '2024-13-01T00:00:00Z' }],
    ['a time beyond all others', { at: '2250-01-01T00:00:00Z' }],
    ['a number for yes', { isIt: 1 }],
    ['nothing', { text: undefined }],
    ['another member', { other: 1 }],
    ['a list', { text: ['a'] }],
  ])('leave %s to JSON', (_, wrong) => {
    expect(toNative(types, [row, { ...row, ...wrong }])).toBeUndefined()
  })

  it('leave unknown columns and column types to JSON', async () => {
    expect(toNative(types, [{ ...row, other: 1 }])).toBeUndefined()
    expect(toNative(new Map([['list', 'Array(String)']]), [{ list: [] }])).toBeUndefined()
    await expect(database.db.insert({ table: 'native', rows: [{ ...row, other: 1 }] })).rejects.toThrow(/other/)
    await expect(database.db.insert({ table: 'nowhere', rows })).rejects.toThrow(/nowhere/)
    expect(await read('native')).toEqual([])
  })

  it("are converted after a column's type has changed", async () => {
    await database.db.insert({ table: 'native', rows: [row] })
    await database.db.command({ name: 'alter', sql: 'ALTER TABLE native MODIFY COLUMN small UInt32' })
    await database.db.insert({ table: 'native', rows: [row] })
    const stored = await read('native')
    expect(stored.map(({ small }) => small)).toEqual([255, 255])
  })
})
