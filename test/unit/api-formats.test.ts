import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  chooseFormat,
  FORMAT_NAMES,
  FORMATS,
  toColumns,
  toJsonType,
  toRepresentation,
} from '../../api/formats/formats.ts'
import { readCursor, writeCursor } from '../../api/formats/keyset.ts'
import { toFileName } from '../../api/formats/representation.ts'
import { exampleOf, parseParameters, readQuery } from '../../api/parameters/parse.ts'
import { PROBLEM_CODES } from '../../api/problem/codes.ts'
import { routes } from '../../api/routes.ts'

describe('chooseFormat', () => {
  it.each([
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', 'json'],
    ['application/json, text/plain, */*', 'json'],
    ['application/*', 'json'],
    ['text/csv', 'csv'],
    ['Text/CSV; charset=utf-8', 'csv'],
    ['text/csv, */*', 'csv'],
    ['text/csv;q=0.4, application/json;q=0.5', 'json'],
    ['application/json, text/csv', 'json'],
    ['text/*', 'csv'],
    ['application/x-ndjson', 'ndjson'],
    ['application/json;q=0, */*', 'csv'],
    ['application/vnd.apache.parquet', 'parquet'],
    ['application/vnd.apache.arrow.stream, application/json;q=0.9', 'arrow'],
  ])('maps Accept %s to %s', (accept, format) => {
    expect(chooseFormat(accept)).toBe(format)
  })

  it.each(['text/html', 'application/json;q=0', 'image/*'])('throws not_acceptable for Accept %s', (accept) => {
    const allowed = FORMAT_NAMES.map((name) => FORMATS[name].mediaType)
    const problem = { code: 'not_acceptable', status: PROBLEM_CODES.not_acceptable.status, particulars: { allowed } }
    for (const _ of ['asked', 'asked again'])
      expect(() => chooseFormat(accept)).toThrow(expect.objectContaining(problem))
  })
})

describe('toColumns', () => {
  const record = z.strictObject({
    _id: z.string(),
    data: z.strictObject({ at: z.string(), deep: z.strictObject({ usd: z.number().nullable() }) }),
    list: z.array(z.string()),
    token: z.strictObject({ name: z.string(), decimal: z.int() }).nullable(),
  })
  const names = (format: 'json' | 'csv' | 'parquet', fields = Object.keys(record.shape)) =>
    toColumns(record, fields, FORMATS[format]).map(({ name }) => name)

  it('names columns by the path of members to the value', () => {
    expect(names('csv')).toEqual(['_id', 'data_at', 'data_deep_usd', 'list', 'token_name', 'token_decimal'])
    expect(names('parquet', ['data'])).toEqual(['data_at', 'data_deep_usd'])
    expect(names('json')).toEqual(['_id', 'data', 'list', 'token'])
  })

  it('keeps lists, and writes them as JSON for CSV', () => {
    const list = (format: 'csv' | 'parquet') => toColumns(record, ['list'], FORMATS[format])[0]?.sql
    expect(list('csv')).toBe("toJSONString(tupleElement(record, 'list'))")
    expect(list('parquet')).toBe("tupleElement(record, 'list')")
  })

  it('toJsonType() returns the ClickHouse type for the JSON', () => {
    expect(toJsonType(z.array(record))).toBe(
      'Array(Tuple(_id String, data Tuple(at String, deep Tuple(usd Nullable(Float64))), list Array(String), token Variant(Tuple(name String, decimal Int64))))',
    )
  })

  it.each(routes.filter(({ record: own }) => own !== undefined))('returns unique names for $path', (route) => {
    const own = route.record as z.ZodObject
    const all = toColumns(own, Object.keys(own.shape), FORMATS.csv).map(({ name }) => name)
    expect(new Set(all).size).toBe(all.length)
    for (const name of all) expect(name).toMatch(/^\w+$/)
  })
})

describe('cursor', () => {
  it('returns its position for the same query only', () => {
    const key = '[1,"-333333333.3333333","Aave é\\"",2049983409948784]'
    const cursor = writeCursor('/data/tokens?[]', key)
    expect(cursor).toMatch(/^[\w-]+$/)
    expect(readCursor('/data/tokens?[]', cursor)).toBe(key)
    for (const [query, text] of [
      ['/data/daos?[]', cursor],
      ['/data/tokens?[]', `${cursor}A`],
      ['/data/tokens?[]', cursor.slice(0, -2)],
      ['/data/tokens?[]', `x${cursor.slice(1)}`],
      ['/data/tokens?[]', 'garbage'],
      ['/data/tokens?[]', writeCursor('/data/tokens?[]', '')],
    ] as const) {
      const problem = { code: 'invalid_parameter', particulars: { param: 'cursor' } }
      expect(() => readCursor(query, text), text).toThrow(expect.objectContaining(problem))
    }
  })
})

describe('toFileName', () => {
  const start = Date.parse('2024-01-01')
  it.each([
    ['/data/tokens', {}, [], 'csv', 'tokens.csv'],
    ['/data/tokens/holders', {}, [], 'parquet', 'tokens-holders.parquet'],
    ['/data/tokens/historic-financial', { interval: '5m', start }, ['Uniswap'], 'csv', 'uniswap-5m-2024-01-01.csv'],
    [
      '/data/tokens/historic-financial',
      { interval: '1d', start, end: start + 90_000_000 },
      ['yearn.finance', 'Æther "X"\r\n'],
      'arrow',
      'yearn-finance-ther-x-1d-2024-01-01-2024-01-02T0100.arrows',
    ],
    [
      '/data/tokens/historic-financial',
      { interval: '1d', start },
      ['a', 'b', 'c', 'd'],
      'ndjson',
      '4-tokens-1d-2024-01-01.ndjson',
    ],
    ['/data/daos/socials/historic-twitter', {}, ['Aave'], 'csv', 'aave-historic-twitter.csv'],
  ] as const)('for %s %o', (path, query, names, format, name) => {
    expect(toFileName({ path, query, names, format })).toBe(name)
  })
})

describe('nextLink', () => {
  const isTime = (schema: z.ZodType) => /^\d{4}-\d\d-\d\d/.test(String(exampleOf(schema)))
  const all = routes.flatMap(({ path, query, record }) =>
    Object.entries(query).flatMap(([name, schema]) =>
      record !== undefined && 'cursor' in query && isTime(schema) ? [{ path, name, schema, record }] : [],
    ),
  )

  it.each(all)('repeats $name of $path as the same time', ({ path, name, schema, record }) => {
    const written = parseParameters({ [name]: schema }, readQuery(`?${name}=2024-01-01`))
    expect(written[name]).toBe(Date.UTC(2024, 0, 1))
    const facts = { path, query: written, format: 'json' as const, record, usual: [], names: [] }
    const link = /<([^>]*)>/.exec(toRepresentation(facts).nextLink('[]'))?.[1] ?? ''
    expect(new URLSearchParams(link).get(name)).toBe('2024-01-01T00:00:00.000Z')
  })
})
