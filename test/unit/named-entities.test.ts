import { describe, expect, it } from 'vitest'
import { findNamedEntities } from '../../workers/run/named-entities.ts'

const entity = (key: number, more: object) => ({ key, id: `id-${key}`, name: `Entity ${key}`, ...more })
const request = (more: object) => ({
  provider: 'p',
  method: 'GET' as const,
  host: 'h',
  path: '/',
  query: '',
  sent: '',
  ...more,
})

describe('named entities of a request', () => {
  const find = findNamedEntities([
    entity(1, { contractAddress: '0xAbC1', chain: 'ethereum', ids: { coinmarketcap: 100 } }),
    entity(2, {
      contractAddress: '0xdef2',
      chain: 'ethereum',
      ids: { coinmarketcap: 200 },
      twitter: 'https://x.com/Second',
    }),
    entity(3, { chain: 'ethereum', snapshot: 'third.eth' }),
  ] as never)

  it('are found by a contract in the path, in any case', () => {
    expect(find(request({ path: '/erc20/0xabc1/owners', query: 'chain=ethereum' }))).toEqual([1])
  })
  it('are found by ids in the query', () => {
    expect(find(request({ query: 'id=100,200&limit=300' }))).toEqual([1, 2])
  })
  it('are found by the last segment of a link', () => {
    expect(find(request({ query: 'usernames=second' }))).toEqual([2])
  })
  it('are found in the variables of a body, not in its text', () => {
    expect(
      find(
        request({ sent: JSON.stringify({ query: '{ proposals(first: 100) }', variables: { space: 'third.eth' } }) }),
      ),
    ).toEqual([3])
  })
  it('are none if a number is a count or a word belongs to several', () => {
    expect(find(request({ path: '/ethereum', query: 'limit=100' }))).toEqual([])
  })
})
