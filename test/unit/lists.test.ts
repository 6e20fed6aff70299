import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createChunkCache } from '../../api/cache/chunks.ts'
import { timeValue, writeRecords } from '../../api/formats/formats.ts'
import { createRecordSet, selectPage, toTexts } from '../../api/lists/engine.ts'
import { createColumnSet, EVERYTHING, findRecords, type ListQuery, loadRecords } from '../../api/lists/lists.ts'
import { toQuestions } from '../../api/parameters/questions.ts'
import { routes } from '../../api/routes.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import type { Database } from '../../shared/store/store.ts'
import { createHandFeed } from '../support/api.ts'
import { noDatabase } from '../support/no-database.ts'

const record = z.strictObject({
  name: z.string(),
  live: z.boolean(),
  data: z.strictObject({ price: z.number().nullable(), at: timeValue.nullable() }),
})
type Row = z.infer<typeof record>

const questions = toQuestions(record)
const day = (number: number) => `2024-03-0${number}T00:00:00.000Z`
const toRow = (name: string, price: number | null, at: string | null = null, live = true): Row => ({
  name,
  live,
  data: { price, at },
})

/** In their default order: the market cap is ten times the price. */
const ROWS = [
  toRow('delta', 4, day(4)),
  toRow('Charlie', 3, day(1), false),
  toRow('alpha', 2),
  toRow('bravo', 2, day(3)),
  toRow('unknown', null, day(2)),
]

const toSet = (rows: readonly Row[]) =>
  createRecordSet(
    rows.map((row, key) => ({
      key,
      asOf: key,
      marketCap: row.data.price === null ? null : 10 * row.data.price,
      json: Buffer.from(JSON.stringify(row)),
    })),
  )
const set = toSet(ROWS)

const toQuery = (query: { sort?: string; filter?: string[]; limit?: number } & Partial<ListQuery['selection']>) => {
  const { sort, filter, limit, ...selection } = query
  return {
    selection: { ...EVERYTHING, ...selection },
    sort: questions.toSort(sort),
    filters: questions.toFilters(filter),
    ...(limit === undefined ? {} : { limit }),
  }
}
const select = (query: Parameters<typeof toQuery>[0], after = '', from = set) => selectPage(from, toQuery(query), after)
const namesOf = (page: { records: readonly { json: Buffer }[] }) =>
  page.records.map(({ json }) => (JSON.parse(json.toString()) as Row).name)

describe('selectPage', () => {
  it('returns the records in the default order without sort', () => {
    expect(namesOf(select({}))).toEqual(['delta', 'Charlie', 'alpha', 'bravo', 'unknown'])
  })

  it('puts exact name matches first in the default order only', () => {
    expect(namesOf(select({ exact: [3] }))).toEqual(['bravo', 'delta', 'Charlie', 'alpha', 'unknown'])
    expect(namesOf(select({ exact: [3], sort: '-data.price' }))[0]).toBe('delta')
  })

  it('returns selected keys only and ignores unknown keys', () => {
    expect(namesOf(select({ all: false, keys: [4, 0, 99] }))).toEqual(['delta', 'unknown'])
  })

  it.each([
    ['data.price', ['alpha', 'bravo', 'Charlie', 'delta', 'unknown']],
    ['-data.price', ['delta', 'Charlie', 'alpha', 'bravo', 'unknown']],
    ['name', ['alpha', 'bravo', 'Charlie', 'delta', 'unknown']],
    ['data.at', ['Charlie', 'unknown', 'bravo', 'delta', 'alpha']],
    ['-data.at', ['delta', 'bravo', 'unknown', 'Charlie', 'alpha']],
    ['live,-name', ['Charlie', 'unknown', 'delta', 'bravo', 'alpha']],
  ])('sorts by %s with unknown values last and ties by name', (sort, names) => {
    expect(namesOf(select({ sort }))).toEqual(names)
  })

  it.each([
    [['data.price>=3'], ['delta', 'Charlie']],
    [['data.price<3'], ['alpha', 'bravo']],
    [['data.price!=2'], ['delta', 'Charlie']],
    [['data.price=null'], ['unknown']],
    [
      ['data.price!=null', 'live=true'],
      ['delta', 'alpha', 'bravo'],
    ],
    [['name=CHARLIE'], ['Charlie']],
    [['data.at>2024-03-02'], ['delta', 'bravo']],
  ])('returns the records for which %j holds', (filter, names) => {
    const page = select({ filter })
    expect(namesOf(page)).toEqual(names)
    expect(page.total).toBe(names.length)
  })

  it.each(['', 'data.price', '-data.at,name', '-name'])(
    'returns every record once over pages with sort "%s"',
    (sort) => {
      const query = { limit: 2, ...(sort === '' ? {} : { sort }) }
      const full = namesOf(select({ ...query, limit: 100 }))
      const pages: string[] = []
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page = select(query, after)
        expect(page.total).toBe(ROWS.length)
        pages.push(...namesOf(page))
        after = page.next === '' ? undefined : page.next
      }
      expect(pages).toEqual(full)
    },
  )

  it('continues after the cursor when that record is gone', () => {
    const { next } = select({ sort: '-data.price', limit: 2 })
    const later = toSet(ROWS.filter(({ name }) => name !== 'Charlie'))
    expect(namesOf(select({ sort: '-data.price', limit: 2 }, next, later))).toEqual(['alpha', 'bravo'])
  })

  it.each(['', '[]', '[0,"x"]', '[0,"1","a",0,0,0]', '{}'])('refuses the cursor %j of another order', (text) => {
    if (text === '') return expect(select({ sort: 'name' }, text).total).toBe(ROWS.length)
    expect(() => select({ sort: 'name' }, text)).toThrow(expect.objectContaining({ code: 'invalid_parameter' }))
  })

  it('returns the newest time of the page, and null for an empty page', () => {
    expect(select({ limit: 2 }).asOf).toBe(1)
    expect(select({ filter: ['name=nobody'] })).toMatchObject({ asOf: null, total: 0, next: '', records: [] })
  })
})

describe('createColumnSet', () => {
  const flat = z.strictObject({
    ...{ name: z.string(), note: z.string().nullable(), live: z.boolean() },
    ...{ price: z.number().nullable(), at: timeValue.nullable() },
  })
  const rows = ROWS.map(({ name, live, data }, key) => ({
    ...{ key, asOf: 10 * key, marketCap: data.price },
    json: Buffer.from(JSON.stringify({ name, note: live ? 'Zoë, "no"' : null, live, ...data })),
  }))
  const flatQuestions = toQuestions(flat)
  const read = async (sort: string | undefined, filter: string[], limit: number) => {
    async function* stream() {
      yield* rows
    }
    const query = {
      ...{ selection: EVERYTHING, limit },
      ...{ sort: flatQuestions.toSort(sort), filters: flatQuestions.toFilters(filter) },
    }
    return [createRecordSet(rows), await createColumnSet(flat, stream())].map((own) => {
      const first = selectPage(own, query, '')
      return [first, first.next === '' ? undefined : selectPage(own, query, first.next)]
    })
  }

  it.each([
    [undefined, [], 2],
    ['-price', [], 3],
    ['live,-at', [], 2],
    ['note,name', ['live=true'], 2],
    ['-name', ['price>=2', 'at!=null'], 2],
    ['at', ['note=null'], 10],
  ])('answers like a set of JSON records: sort %s, filter %j, limit %i', async (sort, filter, limit) => {
    const [json, columns] = await read(sort, filter, limit)
    expect(columns).toEqual(json)
  })

  it('takes less memory than JSON records', async () => {
    async function* stream() {
      yield* rows
    }
    expect((await createColumnSet(flat, stream())).bytes).toBeLessThan(createRecordSet(rows).bytes / 2)
  })
})

describe('writeRecords', () => {
  const write = (format: 'json' | 'ndjson' | 'csv', fields = Object.keys(record.shape), rows = ROWS.slice(0, 2)) =>
    writeRecords(toTexts(toSet(rows).records), { format, fields, hasAllFields: fields.length === 3, record }).toString()

  it('repeats the JSON of the records', () => {
    expect(write('json')).toBe(JSON.stringify(ROWS.slice(0, 2)))
    expect(write('ndjson')).toBe(
      ROWS.slice(0, 2)
        .map((row) => `${JSON.stringify(row)}\n`)
        .join(''),
    )
    expect(write('json', undefined, [])).toBe('[]')
    expect(write('ndjson', undefined, [])).toBe('')
  })

  it('writes the selected fields only', () => {
    expect(write('json', ['name'])).toBe('[{"name":"delta"},{"name":"Charlie"}]')
  })

  it('writes CSV with one column for each value', () => {
    expect(write('csv')).toBe(
      `"name","live","data_price","data_at"\n"delta",true,4,"${day(4)}"\n"Charlie",false,3,"${day(1)}"\n`,
    )
  })

  it('finds members in any order, and leaves unknown ones empty', () => {
    const texts = [
      '{"data":{"at":"2024","price":-0,"more":{"name":"}"}},"other":[{"live":"],\\""}],"name":"a\\"b"}',
      '{"name":"c","live":null,"data":null}',
      '{}',
    ].map((text) => Buffer.from(text))
    const options = { format: 'csv', fields: ['name', 'live', 'data'], hasAllFields: true, record } as const
    expect(writeRecords(texts, options).toString().split('\n').slice(1)).toEqual([
      '"a""b",,-0,"2024"',
      '"c",,,',
      ',,,',
      '',
    ])
    expect(
      writeRecords(texts, { ...options, fields: ['data'] })
        .toString()
        .split('\n')[1],
    ).toBe('-0,"2024"')
  })
})

/** A database that answers each statement with these lines. */
function createLines(lines: readonly string[]) {
  let statements = 0
  const stream: Database['stream'] = async () => {
    statements++
    return Readable.from(lines.map((line) => Buffer.from(`${line}\n`)))
  }
  return { db: { ...noDatabase, stream }, count: () => statements }
}

const END = '0\t0\t\\N\t{"end":true}'
const LINES = ['7\t1000\t30\t{"name":"a\u2028b"}', '8\t2000\t\\N\t{"name":"c"}', END]

describe('loadRecords', () => {
  const source = { name: 'test', key: 'test', datasets: [tokenPrices], sql: 'SELECT 1', params: {} }
  const { signal } = new AbortController()

  function setUp(lines: readonly string[], maxBytes = 1_000_000) {
    const { db, count } = createLines(lines)
    const changeFeed = createHandFeed()
    const chunks = createChunkCache({ maxBytes, changeFeed, db })
    const find = (more: object = {}) =>
      findRecords(chunks, source, () => loadRecords({ chunks, signal }, { ...source, ...more }))
    return { changeFeed, count, find }
  }

  it('reads keys, times, market caps and the JSON as ClickHouse wrote it', async () => {
    const { records } = await setUp(LINES).find()
    expect(records.map(({ key, asOf, marketCap }) => [key, asOf, marketCap])).toEqual([
      [7, 1000, 30],
      [8, 2000, null],
    ])
    expect(records[0]?.json.toString()).toBe('{"name":"a\u2028b"}')
  })

  it('runs one statement for concurrent requests and returns a value once the records are in memory', async () => {
    const { changeFeed, count, find } = setUp(LINES)
    const [one, second] = await Promise.all([find(), find()])
    expect(one).toBe(second)
    expect(find()).toBe(one)
    expect(count()).toBe(1)
    changeFeed.commit('prices')
    expect(find()).toBeInstanceOf(Promise)
    expect(count()).toBe(2)
  })

  it('answers from a list that is larger than the cache without caching it', async () => {
    const { count, find } = setUp(LINES, 100)
    for (const statements of [1, 2]) {
      expect((await find()).records).toHaveLength(2)
      expect(count()).toBe(statements)
    }
  })

  it('keeps the keys of the list only', async () => {
    expect((await setUp(LINES).find({ there: [8, 9] })).records.map(({ key }) => key)).toEqual([8])
  })

  it('fails if the last row is missing', async () => {
    await expect(setUp(LINES.slice(0, 1)).find()).rejects.toMatchObject({ code: 'storage' })
  })
})

describe('defineList', () => {
  it('drops the records of every list when prices change, because the market cap orders them', () => {
    const lists = routes.filter((route) => 'toSource' in route)
    expect(lists.length).toBeGreaterThan(5)
    for (const { path, datasets } of lists) expect(datasets, path).toContain(tokenPrices)
  })
})
