import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { readCsv } from '../../workers/providers/ratings-file/csv.ts'
import { readJson } from '../../workers/providers/ratings-file/json.ts'
import { toRatings } from '../../workers/providers/ratings-file/rows.ts'
import { toTestDao } from '../samples.ts'

const TODAY = Date.UTC(2024, 4, 6)
const [alfa, bravo, charlie] = [toTestDao(1, null), toTestDao(2, null), toTestDao(3, null)]
const daos = [alfa, bravo, charlie]
const HEADER =
  'dao,overallRating,fundamentalRating,governance,team,competitiveMoat,valueProposition,tokenEconomics,lastUpdated,source'
const GOOD = 'dao-1,70.5,64,60,61,62,63,64,2024-03-01,Somebody'

describe('readCsv', () => {
  it('returns a record for each row with its first line number', () => {
    const text = '\uFEFFdao,source\r\n"dao-1","said ""so"",\r\nin two lines"\r\n\r\n dao-2 ,\r\n'
    expect(readCsv(text, 'r.csv')).toEqual([
      { line: 2, fields: { dao: 'dao-1', source: 'said "so",\nin two lines' } },
      { line: 5, fields: { dao: 'dao-2' } },
    ])
  })

  it('accepts a missing final line break, a file with only a header, and an empty file', () => {
    expect(readCsv('a,b\n1,2', 'r.csv')).toEqual([{ line: 2, fields: { a: '1', b: '2' } }])
    expect(readCsv('a,b\n1,', 'r.csv')).toEqual([{ line: 2, fields: { a: '1' } }])
    expect(readCsv('a,b\n', 'r.csv')).toEqual([])
    expect(readCsv('', 'r.csv')).toEqual([])
  })

  it.each([
    ['a,b\n1,2\n1,2,3\n', 'r.csv:3: 3 cells, the header has 2'],
    ['a,b\n1,"2\n', 'r.csv:2: a quote out of place'],
    ['a,b\n1,"2\n3,4\n5,6\n', 'r.csv:2: a quote out of place'],
    ['a,b\r\n"1\r\n",2\r\n3,4"5\r\n', 'r.csv:4: a quote out of place'],
    ['a,b\n1,2"3"\n', 'r.csv:2: a quote out of place'],
    ['a,b\n1,"2"3\n', 'r.csv:2: a quote out of place'],
  ])('returns a record with a fault for an unreadable line: %j', (text, message) => {
    const faults = readCsv(text, 'r.csv').flatMap(({ line, fault }) => (fault ? [`r.csv:${line}: ${fault}`] : []))
    expect(faults).toEqual([expect.stringContaining(message)])
  })

  it.each([
    ['a,b,a\n1,2,3\n', 'r.csv:1: the column a is there twice'],
    ['a,"b\n1,2\n', 'r.csv:1: a quote out of place'],
  ])('rejects an unreadable header: %j', (text, message) => {
    expect(() => readCsv(text, 'r.csv')).toThrow(
      expect.objectContaining({ code: 'provider_malformed', message: expect.stringContaining(message) }),
    )
  })
})

describe('readJson', () => {
  it('returns a record for each element with its first line number, and flattens nested fundamentals', () => {
    const text = `[
  { "dao": "a]{", "tags": [{ "x": 1 }],
    "fundamentals": { "team": 5 } },

  { "dao": "\\"" },  { "dao": "c" }
]`
    expect(readJson(text, 'r.json')).toEqual([
      { line: 2, fields: { dao: 'a]{', tags: [{ x: 1 }], team: 5 } },
      { line: 5, fields: { dao: '"' } },
      { line: 5, fields: { dao: 'c' } },
    ])
  })

  it.each(['[{', '{"ratings": []}', '"text"'])('rejects JSON that is not an array of objects: %s', (text) => {
    expect(() => readJson(text, 'r.json')).toThrow(expect.objectContaining({ code: 'provider_malformed' }))
  })
})

describe('toRatings', () => {
  const check = (...lines: string[]) => toRatings(readCsv([HEADER, ...lines].join('\n'), 'r.csv'), daos, TODAY, 'r.csv')

  it('matches DAOs by slug, name and id, and keeps the values', () => {
    const rest = [GOOD.replace('dao-1', 'DAO 2'), GOOD.replace('dao-1', charlie.id)]
    const { rows, faults } = check(GOOD, ...rest)
    expect(faults).toEqual([])
    expect(rows.map(({ dao }) => dao)).toEqual([1, 2, 3])
    expect(rows[0]).toEqual({
      dao: 1,
      observed_at: '2024-05-06T00:00:00.000Z',
      rated_at: '2024-03-01T00:00:00.000Z',
      overall_rating: 70.5,
      fundamental_rating: 64,
      governance: 60,
      team: 61,
      competitive_moat: 62,
      value_proposition: 63,
      token_economics: 64,
      source: 'Somebody',
      report_url: null,
    })
  })

  it('returns the same from JSON, flat or nested, with numbers or texts', () => {
    const fundamentals = { governance: 60, team: 61, competitiveMoat: '62', valueProposition: 63, tokenEconomics: 64 }
    const facts = { overallRating: 70.5, fundamentalRating: 64, lastUpdated: '2024-03-01', source: 'Somebody' }
    const nested = [{ dao: 'dao-1', ...facts, fundamentals }]
    const flat = [{ dao: 'dao-1', ...facts, ...fundamentals }]
    for (const list of [nested, flat]) {
      const records = readJson(JSON.stringify(list), 'r.json')
      expect(toRatings(records, daos, TODAY, 'r.json')).toEqual(check(GOOD))
    }
  })

  it.each([
    ['101', 'overallRating: must be at most 100'],
    ['-1', 'overallRating: must be at least 0'],
    ['A+', 'overallRating: must be a number'],
    ['', 'overallRating: must be a number'],
    ['1e999', 'overallRating: '],
  ])('reports line and column of the invalid score %j', (score, fault) => {
    const { rows, faults } = check(GOOD, `dao-2,${score},64,60,61,62,63,64,2024-03-01,Somebody`)
    expect(rows).toHaveLength(1)
    expect(faults).toEqual([expect.stringContaining(`r.csv:3: ${fault}`)])
  })

  it.each([
    ['2024-02-30', 'lastUpdated: '],
    ['yesterday', 'lastUpdated: '],
    ['2024-13-01', 'lastUpdated: '],
    ['', 'lastUpdated: '],
    ['2024-05-08', 'lastUpdated: is in the future'],
  ])('rejects a missing, invalid or future time: %j', (time, fault) => {
    const { faults } = check(GOOD, `dao-2,70,64,60,61,62,63,64,${time},Somebody`)
    expect(faults).toEqual([expect.stringContaining(`r.csv:3: ${fault}`)])
  })

  it('accepts times with and without a zone', () => {
    const at = (time: string) => check(GOOD.replace('2024-03-01', time)).rows[0]?.rated_at
    expect(at('2024-03-01T10:00:00Z')).toBe('2024-03-01T10:00:00.000Z')
    expect(at('2024-03-01T10:00')).toBe('2024-03-01T10:00:00.000Z')
    expect(at('2024-03-01T10:00:00+02:00')).toBe('2024-03-01T08:00:00.000Z')
  })

  it('accepts one rating per DAO, and only known DAOs', () => {
    const { rows, faults } = check(
      GOOD,
      GOOD.replace('dao-1', 'Dao 1'),
      GOOD.replace('dao-1', 'dao-2'),
      GOOD.replace('dao-1', 'dao-9'),
    )
    expect(rows.map(({ dao }) => dao)).toEqual([1, 2])
    expect(faults).toEqual([
      'r.csv:3: dao: is rated in line 2 already',
      'r.csv:5: dao: no live DAO has the slug, name or id "dao-9"',
    ])
  })

  it('rejects an unknown column', () => {
    const text = `${HEADER},overalRating\n${GOOD},5`
    expect(() => toRatings(readCsv(text, 'r.csv'), daos, TODAY, 'r.csv')).toThrow(
      /r\.csv:2: overalRating: no such column/,
    )
  })

  it('keeps valid ratings next to invalid ones, and throws if all are invalid', () => {
    const bad = GOOD.replace('70.5', 'many')
    expect(check(GOOD, bad, bad)).toMatchObject({ rows: [{ dao: 1 }], faults: { length: 2 } })
    expect(() => check(bad, bad)).toThrow(
      expect.objectContaining({ code: 'rows_rejected', message: expect.stringContaining('r.csv:3: overallRating') }),
    )
  })

  it('skips only lines with a misplaced quote or a wrong number of cells', () => {
    const rest = ['dao-2', charlie.id].map((id) => GOOD.replace('dao-1', id))
    const { rows, faults } = check('a,b', GOOD, 'dao-9,"never closed,1', rest[0] ?? '', 'x"y",1', rest[1] ?? '')
    expect(rows.map(({ dao }) => dao)).toEqual([1, 2, 3])
    expect(faults.map((fault) => fault.slice(0, 8))).toEqual(['r.csv:2:', 'r.csv:4:', 'r.csv:6:'])
  })

  it('skips only elements that are not objects', () => {
    const facts = { overallRating: 70.5, fundamentalRating: 64, lastUpdated: '2024-03-01', source: 'Somebody' }
    const more = { governance: 60, team: 61, competitiveMoat: 62, valueProposition: 63, tokenEconomics: 64 }
    const text = `[\n${JSON.stringify({ dao: 'dao-1', ...facts, ...more })},\nnull,\n"x"]`
    const { rows, faults } = toRatings(readJson(text, 'r.json'), daos, TODAY, 'r.json')
    expect([rows.length, faults]).toEqual([1, ['r.json:3: must be an object', 'r.json:4: must be an object']])
  })

  it('returns null for a link that is not a URL', () => {
    const text = `${HEADER},reportUrl\n${GOOD},nowhere`
    expect(toRatings(readCsv(text, 'r.csv'), daos, TODAY, 'r.csv').rows).toMatchObject([{ report_url: null }])
  })

  it('accepts the sample ratings of the demo, which are marked as samples', () => {
    const text = readFileSync(join(import.meta.dirname, '../upstream/data/sample-ratings.csv'), 'utf8')
    const live = loadRegistry().daos.filter((dao) => dao.live)
    const { rows, faults } = toRatings(readCsv(text, 'sample'), live, TODAY + 365 * 86_400_000, 'sample')
    expect(faults).toEqual([])
    expect(rows.length).toBeGreaterThanOrEqual(40)
    for (const { source } of rows) expect(source).toMatch(/sample/i)
  })
})
