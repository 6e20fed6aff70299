import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { writeRecords } from '../../api/formats/formats.ts'
import { toCell, toCsv, toLine } from '../../web/sql/result.ts'
import {
  type FileTable,
  findLimit,
  findNamed,
  findScans,
  type PublishedDataset,
  type PublishedFile,
  QUESTIONS,
  selectFiles,
  toDuckdbType,
  toGroups,
  toStatement,
  toTableStatement,
  toViewStatement,
} from '../../web/sql/views.ts'
import { published } from '../../workers/publish/datasets.ts'
import { toColumns } from '../../workers/publish/define-published.ts'

const toFile = (month: string, from: string, to: string): PublishedFile => ({
  ...{ path: `dex-trades/year=2024/month=${month}/part-1.parquet`, bytes: 1, rows: 2, from, to },
  keys: { year: '2024', month },
})
const FEBRUARY = toFile('02', '2024-02-01T00:00:00.000Z', '2024-02-29T23:00:00.000Z')
const MARCH = toFile('03', '2024-03-01T00:00:00.000Z', '2024-03-31T23:00:00.000Z')
const DATASET: PublishedDataset = {
  name: 'dex-trades',
  description: 'Trades.',
  partitionedBy: ['year', 'month'],
  sortedBy: ['token_id', 'traded_at'],
  columns: [
    { name: 'token_id', type: 'String', description: 'Id.', unit: null },
    { name: 'traded_at', type: "DateTime64(3, 'UTC')", description: 'Time.', unit: null },
    { name: 'amount', type: 'Nullable(Float64)', description: 'Amount.', unit: 'tokens' },
  ],
  partitions: [FEBRUARY],
}

describe('toDuckdbType', () => {
  it.each([
    ['String', 'VARCHAR'],
    ['LowCardinality(Nullable(String))', 'VARCHAR'],
    ["Nullable(DateTime64(3, 'UTC'))", 'TIMESTAMP'],
    ['Date32', 'DATE'],
    ['Array(Float64)', 'DOUBLE[]'],
    ['Nullable(Decimal(38, 18))', 'DECIMAL(38, 18)'],
    ['UInt64', 'UBIGINT'],
    ['Bool', 'BOOLEAN'],
  ])('converts %s', (type, expected) => expect(toDuckdbType(type)).toBe(expected))

  it('throws for a type that it does not know', () => {
    expect(() => toDuckdbType('Map(String, String)')).toThrow('Map(String, String)')
  })
})

describe('toGroups', () => {
  it('groups the months of a year', () => {
    const later = { ...MARCH, keys: { year: '2025', month: '03' } }
    expect(toGroups({ ...DATASET, partitions: [FEBRUARY, MARCH, later] })).toEqual([[FEBRUARY, MARCH], [later]])
  })
})

describe('tables and views', () => {
  const one: FileTable = { dataset: DATASET, files: [FEBRUARY], table: 'published_7' }

  it('have a table for a file, and its keys and time range in the view', () => {
    expect(toTableStatement(one)).toBe(
      'CREATE TABLE files.published_7 ("token_id" VARCHAR, "traded_at" TIMESTAMP, "amount" DOUBLE)',
    )
    expect(toViewStatement(DATASET, [one])).toBe(
      `CREATE OR REPLACE VIEW "dex_trades" AS SELECT *, 2024::BIGINT AS "year", 2::BIGINT AS "month" FROM files.published_7 WHERE "traded_at" BETWEEN TIMESTAMP '2024-02-01 00:00:00.000' AND TIMESTAMP '2024-02-29 23:00:00.000'`,
    )
  })

  it('have days as dates, also in the time range of a view', () => {
    const columns = DATASET.columns.map((one) => (one.name === 'traded_at' ? { ...one, type: 'Date32' } : one))
    const dataset = { ...DATASET, columns }
    expect(toTableStatement({ ...one, dataset })).toContain('"traded_at" DATE')
    expect(toViewStatement(dataset, [{ ...one, dataset }])).toContain(
      `WHERE "traded_at" BETWEEN DATE '2024-02-01' AND DATE '2024-02-29'`,
    )
  })

  it('have a table for several files, with the keys that differ as columns', () => {
    const two: FileTable = { ...one, files: [FEBRUARY, MARCH] }
    expect(toTableStatement(two)).toBe(
      'CREATE TABLE files.published_7 ("token_id" VARCHAR, "traded_at" TIMESTAMP, "amount" DOUBLE, "month" BIGINT)',
    )
    expect(toViewStatement(DATASET, [two])).toBe(
      `CREATE OR REPLACE VIEW "dex_trades" AS SELECT * EXCLUDE ("month"), 2024::BIGINT AS "year", "month" FROM files.published_7 WHERE "traded_at" BETWEEN TIMESTAMP '2024-02-01 00:00:00.000' AND TIMESTAMP '2024-03-31 23:00:00.000'`,
    )
  })

  it('have the month of each row in the view if a file has the rows of a year', () => {
    const year: FileTable = { ...one, files: [{ ...FEBRUARY, keys: { year: '2024' } }] }
    expect(toViewStatement(DATASET, [year])).toContain(
      'SELECT *, 2024::BIGINT AS "year", month("traded_at") AS "month" FROM files.published_7',
    )
  })

  it('have an empty view for a dataset without files', () => {
    expect(toViewStatement({ ...DATASET, partitions: [] }, [])).toMatch(
      /^CREATE OR REPLACE VIEW "dex_trades" AS SELECT NULL::VARCHAR .* WHERE false$/,
    )
  })
})

describe('toStatement', () => {
  it.each([
    ['SELECT 1;\n', 'SELECT 1'],
    ["SELECT ';' -- one; statement", "SELECT ';'"],
    ['SELECT /* ; */ "a;b" FROM t ; ', 'SELECT /* ; */ "a;b" FROM t'],
    ['SELECT $$;$$', 'SELECT $$;$$'],
  ])('takes %j as one statement', (text, expected) => expect(toStatement(text)).toBe(expected))

  it.each(['', ' ;', '-- nothing'])('throws for %j, which has no statement', (text) => {
    expect(() => toStatement(text)).toThrow('no statement')
  })

  it('throws for two statements', () => {
    expect(() => toStatement("SELECT ''';'; SELECT 2")).toThrow('one statement')
  })
})

describe('findNamed', () => {
  it('finds a dataset by the name of its view in any case', () => {
    expect(findNamed('FROM "DEX_TRADES" t', [DATASET])).toEqual([DATASET])
    expect(findNamed('FROM dex_trades_2', [DATASET])).toEqual([])
  })
})

describe('findScans', () => {
  const columns = ['id', 'time', 'price', 'volume'].map((name) => ({
    ...{ name, description: name, unit: null },
    type: name === 'id' ? 'String' : 'Float64',
  }))
  const tables = new Map(
    ['published_1', 'published_12'].map((table) => [
      table,
      { dataset: { ...DATASET, columns }, files: [FEBRUARY], table } satisfies FileTable,
    ]),
  )
  const scan = (facts: object, name = 'SEQ_SCAN ') => ({ name, children: [], extra_info: facts })
  const read = (...scans: object[]) =>
    findScans(JSON.stringify([{ name: 'UNION', children: scans, extra_info: {} }]), tables)
  const find = (...scans: object[]) =>
    Object.fromEntries([...read(...scans)].map(([table, one]) => [table, [...one.columns]]))

  it('finds the tables of files in a plan, with the columns of results and filters', () => {
    expect(
      find(
        scan({ Table: 'memory.files.published_1', Projections: 'price', Filters: ["id='x'", 'time>=1'] }),
        scan({ Table: 'published_12', Projections: ['time', 'price'] }),
        scan({ Table: 'numbers', Projections: 'n' }),
      ),
    ).toEqual({ published_1: ['id', 'time', 'price'], published_12: ['time', 'price'] })
  })

  it('joins the columns of all scans of a table', () => {
    const one = { Table: 'published_1', Projections: 'price' }
    expect(find(scan(one), scan({ ...one, Projections: 'volume' }))).toEqual({ published_1: ['price', 'volume'] })
  })

  it('finds all columns for a scan without known columns', () => {
    const all = { published_1: ['id', 'time', 'price', 'volume'] }
    expect(find(scan({ Table: 'published_1' }))).toEqual(all)
    expect(find(scan({ Table: 'published_1', Projections: 'price' }, 'INDEX_SCAN'))).toEqual(all)
  })

  it('finds no columns for a scan that only counts', () => {
    expect(find(scan({ Table: 'published_1', Projections: '' }))).toEqual({ published_1: [] })
  })

  const filtersOf = (...filters: (string | readonly string[])[]) =>
    read(...filters.map((Filters) => scan({ Table: 'published_1', Projections: 'price', Filters }))).get('published_1')
      ?.filters

  it.each([
    ["id='x'", ['x']],
    ["optional: id IN ('x', 'it''s')", ['x', "it's"]],
    ["optional: id='x' OR id=' OR '''", ['x', " OR '"]],
  ])('finds the values of %s', (filter, id) => expect(filtersOf([filter, 'time>=1'])).toEqual([{ id }]))

  it.each(["id>='x'", "id='x' OR id IS NULL", "price='1'", "id!='x'", "lower(id)='x'", "id='x' OR time='y'"])(
    'needs all rows for %s',
    (filter) => expect(filtersOf(filter)).toBe(undefined),
  )

  it('has a filter for each scan of a table, and none if one of them needs all rows', () => {
    expect(filtersOf("id='x'", "id='y'")).toEqual([{ id: ['x'] }, { id: ['y'] }])
    expect(filtersOf("id='x'", 'time>=1')).toBe(undefined)
    expect(filtersOf('time>=1', "id='x'")).toBe(undefined)
  })
})

describe('findScans below a LIMIT', () => {
  const table: FileTable = { dataset: DATASET, files: [FEBRUARY], table: 'published_1' }
  const RANGE = "traded_at>='2024-02-01 00:00:00'::TIMESTAMP AND traded_at<='2024-02-29 23:00:00'::TIMESTAMP"
  const scan = (Filters: string | readonly string[] = RANGE) => ({
    ...{ name: 'SEQ_SCAN ', children: [] },
    extra_info: { Table: 'memory.files.published_1', Projections: 'amount', Filters },
  })
  const node = (name: string, ...children: object[]) => ({ name, children, extra_info: {} })
  const isLimited = (plan: object) =>
    findScans(JSON.stringify([plan]), new Map([[table.table, table]])).get('published_1')?.isLimited

  it.each([
    ['directly', node('LIMIT', scan())],
    ['through nodes that pass rows on', node('PROJECTION', node('STREAMING_LIMIT', node('UNION', scan())))],
  ])('lets LIMIT read any rows %s', (_, plan) => expect(isLimited(plan)).toBe(true))

  it.each([
    ['another condition', node('LIMIT', scan([RANGE, "token_id='x'"]))],
    ['a part of the time range', node('LIMIT', scan(RANGE.replace('02-01', '02-02')))],
    ['an order', node('LIMIT', node('ORDER_BY', scan()))],
    ['no limit', node('PROJECTION', scan())],
    ['two limits', node('LIMIT', node('LIMIT', scan()))],
    ['a second scan of the table', node('LIMIT', node('UNION', scan(), scan()))],
  ])('needs all rows for %s', (_, plan) => expect(isLimited(plan)).toBe(false))
})

describe('findLimit', () => {
  it.each([
    ['SELECT * FROM prices LIMIT 10', 10],
    ['SELECT * FROM prices limit 10 OFFSET 5 -- rows', 15],
    ["SELECT ' LIMIT 3 ' FROM prices\nLIMIT 7", 7],
    ['SELECT * FROM prices', undefined],
    ['SELECT * FROM prices LIMIT 10%', undefined],
    ['SELECT * FROM prices OFFSET 100 LIMIT 10', undefined],
    ['SELECT * FROM (SELECT * FROM prices OFFSET 5) LIMIT 10', undefined],
    ['SELECT * FROM (SELECT * FROM prices LIMIT 3) LIMIT 10', undefined],
    ['SELECT sum(price) FROM (SELECT price FROM prices LIMIT 3)', undefined],
  ])('finds the rows of %j', (statement, rows) => expect(findLimit(statement)).toBe(rows))
})

describe('selectFiles', () => {
  const files = [
    { ...MARCH, rows: 5, bytes: 9 },
    { ...MARCH, rows: 9, bytes: 30 },
    { ...MARCH, rows: 7, bytes: 20 },
  ]
  it.each([
    [6, [2]],
    [10, [1, 2]],
    [100, [1, 2, 0]],
  ])('selects the smallest file with %s rows, or the longest ones', (rows, expected) =>
    expect([...selectFiles(files, rows)]).toEqual(expected.map((at) => files[at])),
  )
})

describe('toCell', () => {
  const type = (name: string, more: object = {}) => ({ toString: () => name, ...more })
  it('converts times, exact numbers and lists without a loss', () => {
    expect(toCell(Date.parse('2024-02-01T00:00:00Z'), type('Timestamp<MICROSECOND>'))).toBe('2024-02-01T00:00:00.000Z')
    expect(toCell(Date.parse('2024-02-01'), type('Date32<DAY>'))).toBe('2024-02-01')
    expect(toCell(Uint32Array.of(1500, 0, 0, 0), type('Decimal[38e+3]', { scale: 3 }))).toBe('1.500')
    const minusOne = new Uint32Array(4).fill(0xffffffff)
    expect(toCell(minusOne, type('Decimal[38e+3]', { scale: 3 }))).toBe('-0.001')
    expect(toCell(2n ** 60n, type('Int64'))).toBe('1152921504606846976')
    expect(toCell([1n, null], type('List<Int64>', { children: [{ name: 'l', type: type('Int64') }] }))).toBe('[1,null]')
    expect(toCell(undefined, type('Utf8'))).toBe(null)
  })
})

describe('toCsv', () => {
  it('writes the bytes of the API for the same record', () => {
    const record = { name: 'Größe "A", B', price: 1.5, list: ['a"b', 1], note: null, empty: '', at: 'x\ny', on: true }
    const names = Object.keys(record)
    const shape = z.object({
      ...{ name: z.string(), price: z.number(), list: z.array(z.any()), note: z.string().nullable() },
      ...{ empty: z.string(), at: z.string(), on: z.boolean() },
    })
    const json = Buffer.from(JSON.stringify(record))
    const written = writeRecords([json], { format: 'csv', fields: names, hasAllFields: true, record: shape })
    const row = Object.values(record).map((value) => (Array.isArray(value) ? JSON.stringify(value) : value))
    const columns = names.map((name) => ({ name, type: 'Utf8' }))
    expect(toCsv({ columns, rows: [row] })).toBe(`\ufeff${written}`)
  })
})

describe('toLine', () => {
  const toResult = (types: readonly string[], ...rows: readonly (readonly (string | number | null)[])[]) => ({
    ...{ columns: types.map((type, at) => ({ name: `c${at}`, type })), rows, isCut: false, milliseconds: 1 },
  })
  it('draws a number over time in the order of time', () => {
    const rows = [
      ['2024-02-02T00:00:00.000Z', 2],
      ['2024-02-01T00:00:00.000Z', null],
    ] as const
    expect(toLine(toResult(['Timestamp<MICROSECOND>', 'Float64'], ...rows))).toEqual({
      ...{ kind: 'line', as: 'amount', times: [1706745600, 1706832000], lines: [{ name: 'c1', values: [null, 2] }] },
    })
  })

  it.each([
    ['the first column is no time', ['Utf8', 'Float64'], '2024-02-02', 1],
    ['the second column is no number', ['Date32<DAY>', 'Utf8'], '2024-02-02', 'x'],
    ['several rows have one time', ['Date32<DAY>', 'Float64'], '2024-02-01', 1],
  ])('draws nothing if %s', (_, types, time, value) => {
    expect(toLine(toResult(types, ['2024-02-01', 1], [time, value]))).toBe(undefined)
  })
})

describe('QUESTIONS', () => {
  it('are ten, each over published datasets', () => {
    expect(QUESTIONS).toHaveLength(11)
    const datasets = published.map((dataset) => ({
      ...{ ...DATASET, name: dataset.name, partitions: [] },
      columns: toColumns(dataset).map(({ name, description }) => ({ name, description, type: 'String', unit: null })),
    }))
    for (const { title, sql } of QUESTIONS) expect(findNamed(sql, datasets), title).not.toEqual([])
  })
})
