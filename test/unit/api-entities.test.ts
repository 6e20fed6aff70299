import { describe, expect, it } from 'vitest'
import { type EntityKind, findOne, type Named, selectMany } from '../../api/route/entities.ts'
import type { Registry } from '../../shared/registry/registry.ts'

const names = ['Uniswap', 'Uni', 'Unicorn', 'Twin', 'TWIN', 'Ökonomie']
const entities: Named[] = names.map((name, key) => ({ id: String(key), key, name }))
const kind: EntityKind<Named> = {
  noun: 'token',
  example: { id: '0', name: 'Uniswap' },
  all: () => entities,
  byId: (_, id) => entities.find((entity) => entity.id === id),
  symbolOf: (_, { name }) => name.slice(0, 3),
  categoriesOf: (_, { key }) => (key < 2 ? ['dex'] : ['dex', 'lending']),
  chainsOf: ({ key }) => (key === 3 ? ['solana'] : []),
}
const registry = {} as Registry
const find = (expected: { id?: string; name?: string }) => findOne(kind, registry, expected).key

describe('findOne', () => {
  it('prefers the exact name to partial matches', () => {
    expect(find({ name: 'uni' })).toBe(1)
  })

  it('matches a unique part of a name, ignoring case', () => {
    expect(find({ name: 'CORN' })).toBe(2)
    expect(find({ name: 'öKO' })).toBe(5)
  })

  it('accepts id and name of the same entity', () => {
    expect(find({ id: '0', name: 'uniswap' })).toBe(0)
  })

  it.each([
    [{}, 'missing_parameter'],
    [{ id: '99' }, 'not_found'],
    [{ name: 'nothing' }, 'not_found'],
    [{ id: '0', name: 'uni' }, 'invalid_parameter'],
    [{ name: 'un' }, 'ambiguous_name'],
    [{ name: 'twin' }, 'ambiguous_name'],
  ])('throws for %o with code %s', (expected, code) => {
    expect(() => find(expected)).toThrowError(expect.objectContaining({ code }))
  })

  it('lists the candidates of an ambiguous name', () => {
    const candidates = [
      { id: '3', name: 'Twin' },
      { id: '4', name: 'TWIN' },
    ]
    expect(() => find({ name: 'twin' })).toThrowError(
      expect.objectContaining({ particulars: expect.objectContaining({ candidates }) }),
    )
  })
})

describe('selectMany', () => {
  it('selects everything without parameters', () => {
    expect(selectMany(kind, registry, {})).toEqual({ all: true, keys: [], exact: [] })
  })

  it('returns the union of ids, parts of names and whole symbols', () => {
    expect(selectMany(kind, registry, { id: ['5', '77'], name: ['UNI', 'twi'] })).toEqual({
      all: false,
      keys: [0, 1, 2, 3, 4, 5],
      exact: [1],
    })
    expect(selectMany(kind, registry, { name: ['none'] }).keys).toEqual([])
  })
})
