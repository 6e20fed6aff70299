import { describe, expect, it } from 'vitest'
import { toBase, toUrl } from '../../clients/typescript/src/address.ts'
import { toColumns } from '../../clients/typescript/src/columns.ts'
import { toFacts } from '../../clients/typescript/src/facts.ts'

describe('toUrl', () => {
  it.each(['http://a.test/b', 'http://a.test/b/', 'http://a.test/b?c=d#e'])(
    'appends the path to the base %s',
    (base) => {
      expect(toUrl(toBase(base), '/data/tokens')).toBe('http://a.test/b/data/tokens')
    },
  )

  it('repeats lists, sends an empty list, omits undefined and null, and escapes values', () => {
    const values = { name: ['A & B', 'C'], limit: 0, fill: undefined, end: null, filter: 'a>=1', id: [] }
    const url = new URL(toUrl(toBase('http://a.test'), '/data/tokens', values))
    expect([...url.searchParams]).toEqual([
      ['name', 'A & B'],
      ['name', 'C'],
      ['limit', '0'],
      ['filter', 'a>=1'],
      ['id', ''],
    ])
  })

  it('fills in path parameters', () => {
    const url = toUrl(toBase('http://a.test/b'), '/charts/24h/{tokenId}.svg', { tokenId: 'a/$&?', width: 40 })
    expect(url).toBe('http://a.test/b/charts/24h/a%2F%24%26%3F.svg?width=40')
  })
})

describe('toFacts', () => {
  it('returns undefined for missing headers', () => {
    const { isStale, ...facts } = toFacts(new Headers())
    expect(isStale).toBe(false)
    expect(Object.values(facts).every((fact) => fact === undefined)).toBe(true)
  })

  it.each([
    ['</data/tokens?limit=3&cursor=a%2Bb>; rel="next"', 'a+b'],
    ['</data/daos>; rel="canonical", <https://a.test/x/data/daos?cursor=c>; rel="next"', 'c'],
    ['</data/daos?cursor=c>; rel="canonical"', undefined],
  ])('reads the cursor of the next page from %s', (link, next) => {
    expect(toFacts(new Headers({ link })).next).toBe(next)
  })
})

describe('toColumns', () => {
  it('returns a column for each member', () => {
    const points = [
      { at: '2024-01-01', price: 1 },
      { at: '2024-01-02', price: null },
    ]
    const columns = toColumns(points, { time: ({ at }) => Date.parse(at), price: ({ price }) => price })
    expect(columns).toEqual({ time: [1704067200000, 1704153600000], price: [1, null] })
    expect(toColumns([], { a: () => 1 })).toEqual({ a: [] })
  })
})
