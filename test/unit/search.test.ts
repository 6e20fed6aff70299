import { describe, expect, it } from 'vitest'
import { isWithin, search } from '../../api/search/search.ts'
import type { Dao, Token } from '../../shared/registry/entities.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { toTestDao, toTestToken } from '../samples.ts'

const TREASURY = `0x${'ab'.repeat(20)}`
const GOVERNOR = `0x${'cd'.repeat(20)}`
const VOTING_TOKEN = `0x${'ef'.repeat(20)}`
const CONTRACT = { chain: 'ethereum', fromBlock: 0, space: '', decimals: 18 }

const token = (key: number, own: Partial<Token>): Token => ({ ...toTestToken(key, {}), dao: 'none', ...own })
const dao = (key: number, own: Partial<Dao>): Dao => ({ ...toTestDao(key, null), ...own })
const exchanged = (successor: string) => ({ at: '2024-01-01', reason: 'exchanged', successor })

const oldest = token(1, { symbol: 'OLD', name: 'Oldest', dao: 'lighthouse', live: false, ended: exchanged('token-2') })
const old = token(2, { symbol: 'MID', name: 'Middle', dao: 'lighthouse', live: false, ended: exchanged('token-3') })
const lighthouse = token(3, { symbol: 'LGT', name: 'Lighthouse', dao: 'lighthouse', formerNames: ['Beacon', 'OLX'] })
const bought = token(4, { symbol: 'BGT', name: 'Bought', dao: 'bought', live: false, ended: exchanged('token-5') })
const buyer = token(5, { symbol: 'BUY', name: 'Orchard', dao: 'orchard', chain: 'solana' })
const beaconry = token(6, { symbol: 'BEA', name: 'Beaconry', dao: 'beaconry' })
const lighthorse = token(7, { symbol: 'OLXY', name: 'Lighthorse', dao: 'lighthorse' })
const short = token(8, { symbol: 'FOX', name: 'Fox' })
const tokens = [oldest, old, lighthouse, bought, buyer, beaconry, lighthorse, short]
const daos = [
  dao(1, {
    ...{ slug: 'lighthouse', name: 'Lighthouse DAO', token: 'token-3', categories: ['lending'], chains: ['ethereum'] },
    formerNames: ['Ship Signals'],
    treasuries: [{ chain: 'ethereum', address: TREASURY }],
    governors: [{ ...CONTRACT, address: GOVERNOR, family: 'bravo', proposalSpace: CONTRACT.space }],
    votingToken: { ...CONTRACT, address: VOTING_TOKEN, family: 'votes', quorums: [] },
  }),
  dao(2, { slug: 'orchard', name: 'Orchard', token: 'token-5' }),
]

const registry: Registry = {
  ...loadRegistry(),
  categories: [{ id: 'category', slug: 'lending', name: 'Lending' }],
  chains: [
    { id: 'chain', slug: 'solana', name: 'Solana', chainId: null, evm: false, stablecoins: [] },
    { id: 'chain-2', slug: 'ethereum', name: 'Ethereum', chainId: 1, evm: true, stablecoins: [] },
  ],
  tokens,
  daos,
  tokenById: new Map(tokens.map((one) => [one.id, one])),
  daoBySlug: new Map(daos.map((one) => [one.slug, one])),
}

const find = (text: string) => search(registry, new Map(), text)
const idsOf = (text: string) => find(text).map(({ _id }) => _id)

describe('search', () => {
  it('finds a token and its DAO by former names', () => {
    expect(find('olx').slice(0, 2)).toMatchObject([
      { _id: 'token-3', matched: 'formerName', match: { kind: 'exact', text: 'OLX' } },
      { _id: 'dao-1', matched: 'formerName', match: { kind: 'exact', text: 'OLX' } },
    ])
    expect(find('ship signals')).toMatchObject([{ _id: 'dao-1', match: { kind: 'exact', text: 'Ship Signals' } }])
  })

  it('finds the newest token by the symbol, the name and the address of every token that it replaced', () => {
    for (const text of ['OLD', 'Oldest', 'mid', 'MIDDLE'])
      expect(find(text)).toMatchObject([
        { _id: 'token-3', matched: 'formerName', match: { kind: 'exact' } },
        { _id: 'dao-1', matched: 'formerName', match: { kind: 'exact' } },
      ])
    expect(find(oldest.contractAddress)).toMatchObject([{ _id: 'token-3', matched: 'formerAddress' }])
  })

  it('names the predecessor if it belonged to another DAO', () => {
    expect(find('bgt')).toMatchObject([
      { _id: 'token-5', matched: 'predecessor', match: { kind: 'exact', text: 'BGT' } },
      { _id: 'dao-2', matched: 'predecessor' },
    ])
  })

  it('survives tokens that name each other as successors', () => {
    const pair = [
      token(20, { symbol: 'ONE', live: false, ended: exchanged('token-21') }),
      token(21, { symbol: 'TWO', live: false, ended: exchanged('token-20') }),
    ]
    const tokenById = new Map(pair.map((one) => [one.id, one]))
    expect(search({ ...registry, tokens: pair, daos: [], tokenById }, new Map(), 'one')).toEqual([])
  })

  it('does not list the successor before the exchange', () => {
    const pair = [token(20, { symbol: 'ONE', ended: exchanged('token-21') }), token(21, { symbol: 'TWO' })]
    const tokenById = new Map(pair.map((one) => [one.id, one]))
    const found = search({ ...registry, tokens: pair, daos: [], tokenById }, new Map(), 'one')
    expect(found.map(({ _id }) => _id)).toEqual(['token-20'])
  })

  it('ranks exact former names before prefixes, and prefixes of former names after them', () => {
    expect(idsOf('beacon')).toEqual(['token-3', 'dao-1', 'token-6'])
    expect(idsOf('beac')).toEqual(['token-6', 'token-3', 'dao-1'])
    expect(find('beac').map(({ matched }) => matched)).toEqual(['name', 'formerName', 'formerName'])
  })

  it.each([
    ['a treasury', TREASURY, 'treasury'],
    ['a governor', GOVERNOR, 'governor'],
    ['a voting token', VOTING_TOKEN, 'votingToken'],
  ])('finds a DAO by the complete address of %s in any letter case', (_, address, matched) => {
    for (const text of [address, address.toUpperCase()])
      expect(find(text)).toMatchObject([{ _id: 'dao-1', matched, match: { kind: 'exact', text: address } }])
    expect(find(address.slice(0, -1))).toEqual([])
  })

  it.each([
    ['inserted', 'orcchard'],
    ['missing', 'orchrd'],
    ['replaced', 'orchird'],
    ['swapped', 'orcahrd'],
  ])('finds a name with one %s letter', (_, text) => {
    expect(find(text)).toMatchObject([
      { _id: 'token-5', matched: 'name', match: { kind: 'similar', text: 'Orchard' } },
      { _id: 'dao-2', matched: 'name', match: { kind: 'similar', text: 'Orchard' } },
    ])
  })

  it('finds a name with two typing errors from 8 letters on', () => {
    expect(idsOf('lihgthuose')).toEqual(['token-3', 'dao-1'])
    expect(idsOf('ocrahrd')).toEqual([])
  })

  it('finds words of a name with typing errors, blanks and punctuation', () => {
    for (const text of ['signls', 'shipsignals', 'ship-signal', 'Ship  Sgnals']) expect(idsOf(text)).toContain('dao-1')
  })

  it('ranks fewer typing errors first, after all other matches', () => {
    expect(idsOf('lighthouse')).toEqual(['token-3', 'dao-1', 'token-7'])
    expect(find('lighthoxse').map(({ _id, match }) => [_id, match.kind])).toEqual([
      ['token-7', 'similar'],
      ['token-3', 'similar'],
      ['dao-1', 'similar'],
    ])
  })

  it('expects texts of fewer than 4 letters, addresses and numbers without typing errors', () => {
    expect(idsOf('fex')).toEqual([])
    for (const address of [TREASURY, buyer.contractAddress]) {
      const wrong = `${address.slice(0, -1)}0`
      expect(idsOf(wrong)).toEqual([])
    }
    const numbered = { ...registry, tokens: [token(30, { symbol: 'NUM', name: '12345678' })], daos: [] }
    expect(search(numbered, new Map(), '12345679')).toEqual([])
  })

  it('lists the entities of a category before those of a chain', () => {
    expect(find('lending')).toMatchObject([
      { _id: 'token-3', matched: 'category', match: { kind: 'words', text: 'Lending' } },
      { _id: 'dao-1', matched: 'category' },
    ])
    expect(find('solana')).toMatchObject([
      { _id: 'token-5', matched: 'chain', match: { kind: 'words', text: 'Solana' } },
    ])
    const chains = [{ id: 'chain', slug: 'ethereum', name: 'Lending', chainId: 1, evm: true, stablecoins: [] }]
    const found = search({ ...registry, chains }, new Map(), 'lending').map(({ matched }) => matched)
    expect(found.slice(0, 2)).toEqual(['category', 'category'])
    expect(new Set(found.slice(2))).toEqual(new Set(['chain']))
  })

  it('ranks by market cap among equal matches', () => {
    const caps = new Map([[7, 5]])
    expect(search(registry, caps, 'light').map(({ _id }) => _id)).toEqual(['token-7', 'token-3', 'dao-1'])
    expect(idsOf('light')).toEqual(['token-7', 'token-3', 'dao-1'])
    expect(search(registry, new Map([[3, 5]]), 'light').map(({ _id }) => _id)).toEqual(['token-3', 'dao-1', 'token-7'])
  })

  it('finds every DAO of the shipped registry by the addresses of its treasuries, governors and voting token', () => {
    const shipped = loadRegistry()
    const addresses = shipped.daos
      .filter(({ live }) => live)
      .flatMap(({ id, treasuries, governors, votingToken }) =>
        [...treasuries, ...governors, ...(votingToken === null ? [] : [votingToken])].map((one) => [id, one.address]),
      )
    expect(addresses.length).toBeGreaterThan(100)
    const missed = addresses.filter(
      ([id, address = '']) => !search(shipped, new Map(), address.toUpperCase()).some(({ _id }) => _id === id),
    )
    expect(missed).toEqual([])
  })

  it.each([
    ['MKR', 'Sky', 'SKY'],
    ['Maker', 'Sky', 'SKY'],
    ['LEND', 'Aave', 'AAVE'],
    ['FXS', 'Frax', 'FRAX'],
    ['Merit Circle', 'Beam', 'BEAM'],
    ['0x9f8F72aA9304c8B593d555F12eF6589cC3A579A2', 'Sky', 'SKY'],
  ])('finds the successor of %s in the shipped registry', (text, name, symbol) => {
    expect(search(loadRegistry(), new Map(), text)[0]).toMatchObject({ type: 'token', name, symbol })
  })
})

describe('isWithin', () => {
  it.each([
    ['', '', 0, true],
    ['', 'a', 0, false],
    ['', 'a', 1, true],
    ['abc', 'abc', 0, true],
    ['abcd', 'abdc', 1, true],
    ['abcd', 'acbd', 1, true],
    ['abcd', 'bacd', 1, true],
    ['abcd', 'bcda', 1, false],
    ['abcd', 'bcda', 2, true],
    ['abcd', 'xbcy', 2, true],
    ['abcd', 'xbyz', 2, false],
    ['kitten', 'sitting', 2, false],
    ['abcd', 'abcdefg', 2, false],
  ])('compares %j and %j with %i edits', (one, other, edits, expected) => {
    expect(isWithin(one, other, edits)).toBe(expected)
    expect(isWithin(other, one, edits)).toBe(expected)
  })
})
