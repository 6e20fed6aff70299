import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  limit,
  manyIds,
  manyNames,
  nearestPath,
  nearestWord,
  oneId,
  oneName,
  oneOf,
  optionalLimit,
  time,
} from '../../api/parameters/kinds.ts'
import { parseParameters, type QueryShape, readQuery } from '../../api/parameters/parse.ts'
import { recordParameters, toQuestions } from '../../api/parameters/questions.ts'
import { Problem } from '../../api/problem/problem.ts'
import { INTERVALS } from '../../shared/intervals.ts'

const A = 'a'.repeat(24)
const B = 'b'.repeat(24)

const list = {
  id: manyIds('tokens', A),
  name: manyNames('tokens', 'Uniswap'),
  limit: limit('tokens', { default: 10, max: 500 }),
}
const one = {
  id: oneId('token', A).optional(),
  name: oneName('token', 'Uniswap').optional(),
  interval: oneOf(INTERVALS, 'Length.', '1d'),
  start: time('First.', '2024-01-01', { earliest: '2022-02-01' }),
  limit: optionalLimit('points', { max: 1_000_000 }),
}

const parse = <Shape extends QueryShape>(shape: Shape, query: string) =>
  parseParameters(shape, readQuery(`/path?${query}`))
const failure = (shape: QueryShape, query: string): Problem => {
  try {
    parse(shape, query)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error(`${query} was accepted`)
}

describe('parseParameters with lists', () => {
  it.each([`id=${A}&id=${B}`, `id[]=${B}&id[]=${A}`, `id=${A},${B}`, `id%5B%5D=${A}&id=${B},${A}`])(
    'accepts the ids in %s',
    (query) => {
      expect(parse(list, query)).toEqual({ id: [A, B], limit: 10 })
    },
  )

  it('does not split names, which may contain commas and spaces', () => {
    expect(parse(list, 'name=a,b&name[]=c+d%2Be').name).toEqual(['a,b', 'c d+e'])
  })

  it.each(['0', '-1', 'ten', '1.5', '501', '', '1e2', '0x10', '%2010', '99999999999999999999'])(
    'rejects limit=%s',
    (value) => {
      const problem = failure(list, `limit=${value}`)
      expect(problem.code).toBe('invalid_parameter')
      expect(problem.particulars.param).toBe('limit')
      if (value !== '') expect(problem.message).toContain('500')
    },
  )

  it('accepts at most 100 values', () => {
    const ids = (count: number) => Array.from({ length: count }, (_, i) => i.toString(16).padStart(24, '0')).join()
    expect(parse(list, `id=${ids(100)}`).id).toHaveLength(100)
    expect(failure(list, `id=${ids(101)}`).message).toContain('100')
  })

  it.each(['id=', `id=${A},`, 'id=xyz', `id=${'A'.repeat(24)}`, 'name=', 'name=%20', 'limit=1&limit=2', 'limit[]=1'])(
    'rejects %s',
    (query) => {
      expect(failure(list, query).code).toBe('invalid_parameter')
    },
  )

  it('suggests the nearest known parameter', () => {
    const problem = failure(list, 'nmae=x')
    expect(problem.code).toBe('unknown_parameter')
    expect(problem.message).toContain('"name"')
    expect(problem.particulars.allowed).toEqual(['id', 'name', 'limit'])
  })

  it('stops validating values after the first one over the limit', () => {
    let lookups = 0
    const counted = z.string().refine(() => {
      lookups += 1
      return true
    })
    const shape = {
      id: z.array(counted).max(100, 'must have at most 100 values'),
      ...recordParameters(z.object({ a: z.string() })),
    }
    const many = Array.from({ length: 5_000 }, (_, i) => i).join()
    expect(failure(shape, `id=${many}`).message).toContain('100')
    expect(lookups).toBeLessThanOrEqual(101)
    expect(failure(shape, `fields=${many}&id=1`).particulars.allowed).toEqual(['a'])
  })

  it('counts repeated values before removing duplicates', () => {
    expect(parse(list, `id=${Array(100).fill(A).join()}`).id).toEqual([A])
    expect(failure(list, `id=${Array(101).fill(A).join()}`).message).toContain('100')
  })

  it('splits a long text only up to the value that exceeds the limit', () => {
    const limits: (number | undefined)[] = []
    const text = Object.assign(new String(','.repeat(240_000)), {
      split: (separator: string, limit?: number) => {
        limits.push(limit)
        return ','.repeat(200).split(separator, limit)
      },
    }) as unknown as string
    const raw = { values: new Map([['id', [text, text, text]]]), bracketed: new Set<string>() }
    expect(() => parseParameters(list, raw)).toThrow('at most 100 values')
    expect(limits).toEqual([101])
  })

  it('rejects more than 1000 parameters', () => {
    expect(failure(list, '&'.repeat(1_000)).message).toContain('1000 parameters')
    expect(failure(list, 'nmae=x&'.repeat(2_000)).message).toContain('1000 parameters')
  })

  it('rejects malformed percent-encoding', () => {
    expect(failure(list, 'name=%E0%A4%A').code).toBe('invalid_parameter')
  })
})

describe('parseParameters with one entity', () => {
  it('parses times and enum values', () => {
    expect(parse(one, `id=${A}&interval=1h&start=2024-01-01&limit=7`)).toEqual({
      id: A,
      interval: '1h',
      start: Date.UTC(2024, 0, 1),
      limit: 7,
    })
  })

  it('names a missing required parameter', () => {
    const problem = failure(one, 'start=2024-01-01')
    expect([problem.code, problem.particulars.param]).toEqual(['missing_parameter', 'interval'])
  })

  it('lists the allowed values', () => {
    const problem = failure(one, 'interval=2h&start=2024-01-01')
    expect([problem.code, problem.particulars.allowed]).toEqual(['invalid_parameter', [...INTERVALS]])
  })

  it('names the earliest start', () => {
    expect(failure(one, 'interval=1h&start=2022-01-31T23:59:59.999Z').message).toContain('2022-02-01')
  })

  it.each([`id=${A}&id=${B}`, `id=${A},${B}`, `id[]=${A}`, `name=a&name=b`])('rejects %s', (query) => {
    expect(failure(one, query).code).toBe('invalid_parameter')
  })
})

describe('toQuestions', () => {
  const { parameters, toFilters } = toQuestions(z.object({ name: z.string(), price: z.number().nullable() }))

  it.each([
    ['price>=1', '>=', 1],
    [' price = 1.5 ', '=', 1.5],
    ['price=.5', '=', 0.5],
    ['price<2.', '<', 2],
    ['name=  Uni   Token ', '=', 'uni   token'],
    ['name!=a=b', '!=', 'a=b'],
    ['name=a\n b', '=', 'a\n b'],
    ['price!=null', '!=', null],
  ])('parses the filter %j', (text, operator, literal) => {
    expect(toFilters([text])).toMatchObject([{ operator, literal }])
  })

  it.each(['price', '>=1', 'price 1', 'price=', 'price=1.2.3', 'price=x', '=', ''])('rejects the filter %j', (text) => {
    expect(failure(parameters, `filter=${encodeURIComponent(text)}`).code).toBe('invalid_parameter')
  })

  it('rejects a sort or filter of more than 300 characters', () => {
    for (const text of [`name=a${' '.repeat(300)}b`, `nothing${'x'.repeat(300)}`]) {
      const observed = [parameters.sort.safeParse(text), parameters.filter.safeParse([text])]
      for (const { error } of observed)
        expect(error?.issues.map(({ message }) => message)).toEqual(['must have at most 300 characters'])
    }
  })
})

describe('nearestWord', () => {
  it.each([
    ['nmae', 'name'],
    ['names', 'name'],
    ['ID', 'id'],
    ['intervall', 'interval'],
    ['strat', 'start'],
  ])('suggests for %s the word %s', (word, suggestion) => {
    expect(nearestWord(word, ['id', 'name', 'interval', 'start', 'limit'])).toBe(suggestion)
  })

  it.each(['colour', 'x'.repeat(10_000)])('returns undefined if no word is near', (word) => {
    expect(nearestWord(word, ['id', 'name', 'limit'])).toBeUndefined()
  })
})

describe('nearestPath', () => {
  const MEMBERS = [
    '_id',
    'name',
    'financialData.price',
    'financialData.marketCap',
    'supply.marketCap',
    'holders[].share',
  ]

  it.each([
    ['price', 'financialData.price'],
    ['marketcap', 'financialData.marketCap'],
    ['market_cap', 'financialData.marketCap'],
    ['financialData_marketCap', 'financialData.marketCap'],
    ['quote.price', 'financialData.price'],
    ['pirce', 'financialData.price'],
    ['financialdata.prise', 'financialData.price'],
    ['share', 'holders[].share'],
    ['nmae', 'name'],
  ])('finds for %s the member %s', (path, suggestion) => {
    expect(nearestPath(path, MEMBERS)).toBe(suggestion)
  })

  it.each(['colour', '', '...', 'x'.repeat(10_000)])('returns undefined if no member is near', (path) => {
    expect(nearestPath(path, MEMBERS)).toBeUndefined()
  })
})
