import { describe, expect, it } from 'vitest'
import { limit, manyIds, manyNames, oneId, oneName, oneOf, optionalLimit, time } from '../../api/parameters/kinds.ts'
import { nearestWord } from '../../api/parameters/nearest.ts'
import { parseParameters, type QueryShape, readQuery } from '../../api/parameters/parse.ts'

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

describe('list parameters', () => {
  it.each([`id=${A}&id=${B}`, `id[]=${B}&id[]=${A}`, `id=${A},${B}`, `id%5B%5D=${A}&id=${B},${A}`])('%s', (query) => {
    expect(parse(list, query)).toEqual({ id: [A, B], limit: 10 })
  })

  it('never splits names, which may hold commas and spaces', () => {
    expect(parse(list, 'name=a,b&name[]=c+d%2Be').name).toEqual(['a,b', 'c d+e'])
  })

  it.each(['0', '-1', 'ten', '1.5', '501', '', '1e2', '0x10', '%2010', '99999999999999999999'])('limit=%s', (value) => {
    const problem = failure(list, `limit=${value}`)
    expect(problem.code).toBe('invalid_parameter')
    expect(problem.particulars.param).toBe('limit')
    if (value !== '') expect(problem.message).toContain('500')
  })

  it('takes 100 values and not 101', () => {
    const ids = (count: number) => Array.from({ length: count }, (_, i) => i.toString(16).padStart(24, '0')).join()
    expect(parse(list, `id=${ids(100)}`).id).toHaveLength(100)
    expect(failure(list, `id=${ids(101)}`).message).toContain('100')
  })

  it.each(['id=', `id=${A},`, 'id=xyz', `id=${'A'.repeat(24)}`, 'name=', 'name=%20', 'limit=1&limit=2', 'limit[]=1'])(
    '%s is invalid',
    (query) => {
      expect(failure(list, query).code).toBe('invalid_parameter')
    },
  )

  it('names the nearest known parameter', () => {
    const problem = failure(list, 'nmae=x')
    expect(problem.code).toBe('unknown_parameter')
    expect(problem.message).toContain('"name"')
    expect(problem.particulars.allowed).toEqual(['id', 'name', 'limit'])
  })

  it('refuses a malformed percent-encoding', () => {
    expect(failure(list, 'name=%E0%A4%A').code).toBe('invalid_parameter')
  })
})

describe('single-entity parameters', () => {
  it('parses times and words', () => {
    expect(parse(one, `id=${A}&interval=1h&start=2024-01-01&limit=7`)).toEqual({
      id: A,
      interval: '1h',
      start: Date.UTC(2024, 0, 1),
      limit: 7,
    })
  })

  it('tells which required parameter is missing', () => {
    const problem = failure(one, 'start=2024-01-01')
    expect([problem.code, problem.particulars.param]).toEqual(['missing_parameter', 'interval'])
  })

  it('lists the allowed words', () => {
    const problem = failure(one, 'interval=2h&start=2024-01-01')
    expect([problem.code, problem.particulars.allowed]).toEqual(['invalid_parameter', [...INTERVALS]])
  })

  it('names the earliest start', () => {
    expect(failure(one, 'interval=1h&start=2022-01-31T23:59:59.999Z').message).toContain('2022-02-01')
  })

  it.each([`id=${A}&id=${B}`, `id=${A},${B}`, `id[]=${A}`, `name=a&name=b`])('%s is not one value', (query) => {
    expect(failure(one, query).code).toBe('invalid_parameter')
  })
})

describe('nearest words', () => {
  it.each([
    ['nmae', 'name'],
    ['names', 'name'],
    ['ID', 'id'],
    ['intervall', 'interval'],
    ['strat', 'start'],
  ])('%s means %s', (word, meant) => {
    expect(nearestWord(word, ['id', 'name', 'interval', 'start', 'limit'])).toBe(meant)
  })

  it.each(['colour', 'x'.repeat(10_000)])('is silent where nothing is near', (word) => {
    expect(nearestWord(word, ['id', 'name', 'limit'])).toBeUndefined()
  })
})
