import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { toId, toKey } from '../../shared/ids.ts'
import { duplicateMistakes } from '../../shared/registry/references.ts'
import { loadRegistry, RegistryError } from '../../shared/registry/registry.ts'

const ADDRESS = '0x1F9840a85d5aF5bf1D1762F925BDADdC4201F984'
const category = { slug: 'dex', name: 'Exchange' }
const chain = { slug: 'ethereum', name: 'Ethereum', chainId: 1, evm: true }
const solana = { slug: 'solana', name: 'Solana', chainId: null, evm: false }
const token = {
  symbol: 'UNI',
  name: 'Uniswap',
  chain: 'ethereum',
  contractAddress: ADDRESS,
  decimals: 18,
  dao: 'uniswap',
  cmcId: '7083',
  coingeckoId: 'uniswap',
  live: true,
}
const dao = {
  slug: 'uniswap',
  name: 'Uniswap',
  categories: ['dex'],
  chains: ['ethereum'],
  treasuries: [{ chain: 'ethereum', address: ADDRESS }],
  live: true,
  verified: true,
  isOtc: false,
}

const index = {
  slug: 'basket',
  name: 'Basket',
  launch: '2022-11-29',
  token: { chain: 'ethereum', contractAddress: ADDRESS, mode: 'eth' },
}

/** A composition of the first token. */
const toCompositions = ([first]: { chain: string; contractAddress: string }[] = []) => [
  { validFrom: '2022-11-29', elements: [{ token: `${first?.chain}/${first?.contractAddress}`, quantity: '1.5' }] },
]

const GOVERNOR = `0x${'1'.repeat(40)}`
const governor = { chain: 'ethereum', address: GOVERNOR, family: 'aave-v3', fromBlock: 1 }
const machine = { ...governor, address: `0x${'2'.repeat(40)}`, votesOn: `ethereum/${GOVERNOR}` }

type Files = Record<'categories' | 'chains' | 'tokens' | 'daos' | 'index', unknown>

let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'registry-'))
})

afterEach(() => {
  rmSync(dir, { recursive: true })
})

function write(files: Partial<Files> = {}): void {
  const tokens = Array.isArray(files.tokens) ? files.tokens : [token]
  const all = {
    categories: [category],
    chains: [chain, solana],
    tokens,
    daos: [dao],
    index: { ...index, compositions: toCompositions(tokens) },
    ...files,
  }
  for (const [name, content] of Object.entries(all)) {
    writeFileSync(join(dir, `${name}.json`), typeof content === 'string' ? content : JSON.stringify(content))
  }
}

function mistakesOf(files: Partial<Files> = {}): readonly string[] {
  write(files)
  return thrownMistakes()
}

function thrownMistakes(): readonly string[] {
  try {
    loadRegistry(dir)
  } catch (error) {
    if (error instanceof RegistryError) return error.mistakes
    throw error
  }
  return []
}

describe('included registry', () => {
  const registry = loadRegistry()

  it('has enough DAOs and tokens', () => {
    expect(registry.daos.length).toBeGreaterThanOrEqual(65)
    expect(registry.tokens.length).toBeGreaterThanOrEqual(60)
    expect(registry.daos.filter((entry) => entry.treasuries.length > 0).length).toBeGreaterThan(40)
    expect(registry.daos.filter((entry) => entry.token === null).length).toBeGreaterThan(0)
  })

  it('keeps its ids', () => {
    const uniswap = registry.daoBySlug.get('uniswap')
    expect(uniswap?.id).toBe('893ec80ae8dcc44e6c2a0b49')
    expect(uniswap?.token).toBe('a00a15074c647764fac27d6c')
    expect(uniswap?.id).toBe(toId('dao', 'uniswap'))
    expect(uniswap?.token).toBe(toId('token', 'ethereum', ADDRESS.toLowerCase()))
  })

  it('finds every entity by id and by key', () => {
    for (const entry of registry.tokens) {
      expect(registry.tokenById.get(entry.id)).toBe(entry)
      expect(registry.tokenByKey.get(entry.key)).toBe(entry)
      expect(entry.key).toBe(toKey(entry.id))
      expect(entry.livePrice).toBe(entry.live)
    }
    for (const entry of registry.daos) expect(registry.daoById.get(entry.id)).toBe(entry)
  })

  it('is sorted, so that edits are easy to review', () => {
    const slugs = registry.daos.map((entry) => entry.slug)
    const symbols = registry.tokens.map((entry) => entry.symbol)
    expect(slugs).toEqual([...slugs].sort())
    expect(symbols).toEqual([...symbols].sort())
  })
})

describe('loadRegistry', () => {
  it('fills in defaults and lower-cases EVM addresses', () => {
    write()
    const registry = loadRegistry(dir)
    expect(registry.tokens[0]).toMatchObject({ contractAddress: ADDRESS.toLowerCase(), livePrice: true })
    expect(registry.tokens[0]).not.toHaveProperty('primary')
    expect(registry.daos[0]).toMatchObject({
      treasuries: [{ chain: 'ethereum', address: ADDRESS.toLowerCase() }],
      token: registry.tokens[0]?.id,
      twitter: null,
      mission: '',
    })
  })

  it('accepts a byte order mark', () => {
    write({ daos: `\uFEFF${JSON.stringify([dao])}` })
    expect(loadRegistry(dir).daos[0]?.name).toBe(dao.name)
    expect(mistakesOf({ daos: '\uFEFF[] x' })).toEqual(['daos.json: not JSON, line 1 column 4'])
  })

  it('keeps the case of addresses on other chains', () => {
    write({ tokens: [{ ...token, chain: 'solana', contractAddress: 'JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN' }] })
    expect(loadRegistry(dir).tokens[0]?.contractAddress).toBe('JUPyiwrYJFskUPiHa7hkeR8VUtAeFoSYbKedZNsDvCN')
  })

  it('selects the primary token of a DAO', () => {
    const second = { ...token, chain: 'solana', contractAddress: 'uni', cmcId: '1', coingeckoId: null, primary: true }
    write({ tokens: [token, second] })
    expect(loadRegistry(dir).daos[0]?.token).toBe(toId('token', 'solana', 'uni'))
  })

  it('sets the end of a token and the start of its successor', () => {
    const successor = { ...token, symbol: 'TWO', contractAddress: `0x${'2'.repeat(40)}`, cmcId: '2', coingeckoId: null }
    const ended = { at: '2024-03-01', reason: 'exchanged', successor: `ethereum/${successor.contractAddress}` }
    write({
      tokens: [
        { ...token, live: false, ended },
        { ...successor, primary: true },
      ],
    })
    const { tokens, daos } = loadRegistry(dir)
    const [old, next] = tokens
    expect(old).toMatchObject({
      ended: { ...ended, successor: next?.id },
      until: Date.parse('2024-03-01'),
      livePrice: false,
    })
    expect(next).toMatchObject({ ended: null, since: old?.until, live: true })
    expect(next).not.toHaveProperty('until')
    expect(daos[0]?.token).toBe(next?.id)
  })

  it('matches the address of a successor in any case', () => {
    const address = `0x${'ab'.repeat(20)}`
    const second = { ...token, symbol: 'TWO', contractAddress: address, cmcId: '2', coingeckoId: null, primary: true }
    const mixed = `ethereum/0x${'aB'.repeat(20)}`
    write({
      tokens: [{ ...token, live: false, ended: { at: '2024-03-01', reason: 'exchanged', successor: mixed } }, second],
    })
    const [old, next] = loadRegistry(dir).tokens
    expect(old?.ended?.successor).toBe(next?.id)
  })

  it('sets the proposals of a contract that only has the votes on them', () => {
    write({ daos: [{ ...dao, governors: [machine, governor] }] })
    const space = `eip155:1:${GOVERNOR}`
    expect(loadRegistry(dir).daos[0]?.governors).toMatchObject([
      { space: `eip155:1:0x${'2'.repeat(40)}`, proposalSpace: space },
      { space, proposalSpace: space },
    ])
  })

  it('accepts livePrice: false', () => {
    write({ tokens: [{ ...token, livePrice: false }] })
    expect(loadRegistry(dir).tokens[0]?.livePrice).toBe(false)
  })
})

describe('loadRegistry errors', () => {
  const withStable = (...addresses: string[]) => {
    return { ...chain, stablecoins: addresses.map((address) => ({ symbol: 'USDC', address })) }
  }
  const cases: [string, Partial<Files>, string][] = [
    ['unknown field', { chains: [{ ...chain, rpc: 'x' }] }, 'chains.json[0] (ethereum): rpc: unknown field'],
    ['nested unknown field', nested({ colour: 1 }), 'daos.json[0] (uniswap): treasuries[0].colour: unknown field'],
    ['missing slug', { categories: [category, { name: 'x' }] }, 'categories.json[1] (no slug): slug: '],
    [
      'bad slug',
      { categories: [category, { slug: 'A b', name: 'x' }] },
      'categories.json[1] (A b): slug: must be lower',
    ],
    [
      'duplicate slug',
      { daos: [dao, dao] },
      'daos.json[1] (uniswap): slug: uniswap is already used by daos.json[0] (uniswap)',
    ],
    ['duplicate category', { categories: [category, category] }, 'categories.json[1] (dex): slug: dex is already used'],
    [
      'duplicate chain id',
      { chains: [chain, { ...chain, slug: 'e2' }] },
      'chains.json[1] (e2): chainId: 1 is already used',
    ],
    ['bad stablecoin', { chains: [withStable('0xz')] }, 'stablecoins[0].address: 0xz is not 0x and 40 hex digits'],
    ['stablecoin twice', { chains: [withStable(ADDRESS, ADDRESS.toLowerCase())] }, 'is listed twice'],
    ['unknown chain', { daos: [{ ...dao, chains: ['moon'] }] }, 'chains: moon is not in chains.json'],
    ['unknown category', { daos: [{ ...dao, categories: ['art'] }] }, 'categories: art is not in categories.json'],
    ['category twice', { daos: [{ ...dao, categories: ['dex', 'dex'] }] }, 'categories: dex is listed twice'],
    ['unknown token chain', { tokens: [{ ...token, chain: 'moon' }] }, 'tokens.json[0] (UNI): chain: moon is not in'],
    ['unknown dao', { tokens: [{ ...token, dao: 'none' }] }, 'tokens.json[0] (UNI): dao: none is not in daos.json'],
    ['bad address', { tokens: [{ ...token, contractAddress: '0x12' }] }, 'contractAddress: 0x12 is not 0x and 40 hex'],
    ['bad treasury', nested({ address: '0xz' }), 'treasuries[0].address: 0xz is not 0x and 40 hex digits'],
    ['unknown treasury chain', nested({ chain: 'moon' }), 'treasuries[0].chain: moon is not in chains.json'],
    [
      'votes on an unknown governor',
      { daos: [{ ...dao, governors: [machine] }] },
      `daos.json[0] (uniswap): governors[0].votesOn: ethereum/${GOVERNOR} is no governor of the DAO with proposals of its own`,
    ],
    [
      'fractional counting of a family without parameters',
      { daos: [{ ...dao, governors: [{ ...governor, counting: 'fractional' }] }] },
      'daos.json[0] (uniswap): governors[0].counting: aave-v3 has no fractional votes, remove it or set it to plain',
    ],
    [
      'an unknown counting mode',
      { daos: [{ ...dao, governors: [{ ...governor, counting: 'parts' }] }] },
      'daos.json[0] (uniswap): governors[0].counting: Invalid option',
    ],
    [
      'fractional decimals',
      { tokens: [{ ...token, decimals: 1.5 }] },
      'tokens.json[0] (UNI): decimals: must be a whole number',
    ],
    ['too many decimals', { tokens: [{ ...token, decimals: 300 }] }, 'decimals: must be at most 77'],
    ['no market-data id', { tokens: [{ ...token, cmcId: null, coingeckoId: null }] }, 'cmcId: a live token needs'],
    ['live price of a dead token', { tokens: [{ ...token, live: false, livePrice: true }] }, 'livePrice: needs a live'],
    ['an invalid end date', { tokens: [{ ...token, ended: { at: 'soon', reason: 'x' } }] }, 'ended.at: must be an ISO'],
    [
      'an unknown successor',
      { tokens: [{ ...token, ended: { at: '2024-03-01', reason: 'x', successor: 'ethereum/0x12' } }] },
      'ended.successor: ethereum/0x12 is not a <chain>/<address> of tokens.json',
    ],
    [
      'successor that is the token itself',
      {
        tokens: [
          { ...token, ended: { at: '2024-03-01', reason: 'x', successor: `ethereum/${ADDRESS.toLowerCase()}` } },
        ],
      },
      'ended.successor: is the token itself',
    ],
    [
      'a space of two DAOs',
      {
        daos: [
          { ...dao, snapshotSpace: 'a.eth' },
          { ...dao, slug: 'two', formerSnapshotSpaces: ['a.eth'] },
        ],
      },
      'daos.json[1] (two): snapshotSpace: a.eth is already used by daos.json[0] (uniswap)',
    ],
    ['image without https', { daos: [{ ...dao, image: 'ipfs://x' }] }, 'image: must be an https URL'],
    [
      'invalid twitter',
      { daos: [{ ...dao, twitter: 'https://twitter.com/a/b' }] },
      'twitter: must be https://twitter.com/<handle>',
    ],
    ['not a list', { daos: {} }, 'daos.json: must be a list of records'],
    ['not JSON', { daos: '[\n  {"slug": "a",}\n]' }, 'daos.json: not JSON, line 2 column 16'],
    ['truncated JSON', { daos: '[{"slug": "a"' }, 'daos.json: not JSON, line 1 column 14'],
    ['text after JSON', { daos: '[] x' }, 'daos.json: not JSON, line 1 column 4'],
  ]

  function nested(treasury: object): Partial<Files> {
    return { daos: [{ ...dao, treasuries: [{ chain: 'ethereum', address: ADDRESS, ...treasury }] }] }
  }

  it.each(cases)('reports: %s', (_, files, expected) => {
    const mistakes = mistakesOf(files)
    expect(mistakes.filter((mistake) => mistake.includes(expected))).toHaveLength(1)
  })

  it('reports one contract under two symbols, in any case of the address', () => {
    const twin = { ...token, symbol: 'UNI2', contractAddress: ADDRESS.toLowerCase(), primary: true, cmcId: '1' }
    expect(mistakesOf({ tokens: [token, { ...twin, coingeckoId: null }] })).toEqual([
      `tokens.json[1] (UNI2): contractAddress: ethereum:${ADDRESS.toLowerCase()} is already used by tokens.json[0] (UNI)`,
    ])
  })

  it('reports one market-data id for two live tokens', () => {
    const twin = { ...token, chain: 'solana', contractAddress: 'uni', primary: true }
    expect(mistakesOf({ tokens: [token, twin] })).toEqual([
      'tokens.json[1] (UNI): cmcId: 7083 is already used by tokens.json[0] (UNI)',
      'tokens.json[1] (UNI): coingeckoId: uniswap is already used by tokens.json[0] (UNI)',
    ])
    expect(mistakesOf({ tokens: [token, { ...twin, live: false }] })).toEqual([])
  })

  it('reports several tokens of a DAO without a primary one', () => {
    const second = { ...token, chain: 'solana', contractAddress: 'uni', cmcId: '1', coingeckoId: null }
    expect(mistakesOf({ tokens: [token, second] })).toEqual([
      'tokens.json[0] (UNI), tokens.json[1] (UNI): primary: one token of uniswap must be primary, 0 are',
    ])
  })

  it('has no former names by default, and rejects repeated and current ones', () => {
    write({ tokens: [{ ...token, formerNames: ['UNX', 'Unipeg'] }] })
    expect(loadRegistry(dir)).toMatchObject({
      tokens: [{ formerNames: ['UNX', 'Unipeg'] }],
      daos: [{ formerNames: [] }],
    })
    expect(
      mistakesOf({
        tokens: [{ ...token, formerNames: ['UNX', 'UNX', 'UNI'] }],
        daos: [{ ...dao, formerNames: ['Uniswap', ' '] }],
      }),
    ).toEqual([
      'daos.json[0] (uniswap): formerNames[1]: must not begin or end with blanks',
      'tokens.json[0] (UNI): formerNames: UNX is listed twice',
      'tokens.json[0] (UNI): formerNames: UNI is the current name',
    ])
    expect(mistakesOf({ daos: [{ ...dao, formerNames: ['Uniswap'] }] })).toEqual([
      'daos.json[0] (uniswap): formerNames: Uniswap is the current name',
    ])
  })

  it('duplicateMistakes() reports equal keys', () => {
    const records = ['a', 'b', 'c'].map((place, index) => ({ place, record: index === 1 ? 8 : 7 }))
    expect(duplicateMistakes(records, 'key', (key) => key)).toEqual(['c: key: 7 is already used by a'])
  })

  it('reports a missing file, without errors for references into it', () => {
    write()
    rmSync(join(dir, 'chains.json'))
    expect(thrownMistakes()).toEqual([`chains.json: missing, expected at ${join(dir, 'chains.json')}`])
  })

  it('reports all errors in one exception', () => {
    const mistakes = mistakesOf({
      categories: '[',
      chains: [{ ...chain, evm: 'yes' }],
      tokens: [{ ...token, decimals: -1, cmcId: 'x' }],
      daos: [{ ...dao, website: 'nowhere', chains: ['moon'] }],
    })
    expect(mistakes).toHaveLength(5)
    expect(() => loadRegistry(dir)).toThrow(/The registry has 5 mistake\(s\):\n {2}categories\.json: not JSON/)
  })
})
