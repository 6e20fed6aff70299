import { describe, expect, it } from 'vitest'
import { type DaoTreasuryRow, daoTreasuryRow, sumValues } from '../../shared/datasets/treasury.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { OMITTED } from '../../workers/job/define-job.ts'
import { checkAnswer } from '../../workers/providers/answer.ts'
import { createKinds } from '../../workers/providers/asset-kinds.ts'
import type { TreasuryDao } from '../../workers/providers/contracts/treasury-daos.ts'
import { toCoin } from '../../workers/providers/defillama/prices.ts'
import {
  listUnknown,
  toDailyHoldings,
  toLatestHoldings,
  treasuryAnswer,
} from '../../workers/providers/defillama/treasury-days.ts'
import { balancesData, countSpam, toPositions } from '../../workers/providers/goldrush/balances.ts'
import { portfolioData, toDailyPositions } from '../../workers/providers/goldrush/portfolio.ts'
import { type Holding, mergeHoldings, toTreasuryRow } from '../../workers/providers/treasury-holdings.ts'
import { readFixture } from '../samples.ts'
import { getDao } from '../support/entities.ts'

const TODAY = Date.UTC(2024, 4, 6)
const DAY = 86_400_000
const wallet = { chain: 'ethereum', chainId: 1, address: '0xfc43000000000000000000000000000000000001' }
const held = (chain: string, contract: string, symbol: string, quantity: number, valueUsd: number | null): Holding => ({
  ...{ chain, address: wallet.address, contract, symbol, quantity, valueUsd },
  priceSource: valueUsd === null ? null : 'goldrush',
})
const dao: Pick<TreasuryDao, 'key' | 'kindOf'> = { key: 1, kindOf: () => 'other' }
const toRow = (holdings: readonly Holding[], of = dao) =>
  toTreasuryRow(of, TODAY, 'goldrush', { holdings, spamCount: 0 })
/** Kinds by contract: 0x1 to 0x3 are stablecoins on every chain. */
const toKind: TreasuryDao['kindOf'] = ({ contract }) => (/^0x[123]$/.test(contract ?? '') ? 'stable' : 'other')
const merge = (holdings: readonly Holding[]) => mergeHoldings(holdings, toKind).map(({ total }) => total)
const source = { provider: 'test', path: '/' }
const dataOf = (name: string) => (readFixture(`goldrush/${name}.json`) as { data: unknown }).data
const balances = () => checkAnswer(balancesData, dataOf('balances'), source)
const portfolio = () => checkAnswer(portfolioData, dataOf('portfolio'), source)
const treasury = () => checkAnswer(treasuryAnswer, readFixture('defillama/treasury.json'), source)

describe('mergeHoldings', () => {
  it('adds up one contract over the addresses of a chain', () => {
    const merged = merge([held('ethereum', '0x1', 'USDC', 10, 10), held('ethereum', '0x1', 'USDC', 5, 5.5)])
    expect(merged).toEqual([held('ethereum', '0x1', 'USDC', 15, 15.5)])
  })

  it('adds up one symbol over chains if the prices differ by at most 1 %', () => {
    const merged = merge([
      held('arbitrum', '0x2', 'USDC', 100, 100.9),
      held('ethereum', '0x1', 'USDC', 100, 100),
      held('bnb', '0x3', 'usdc', 10, 10),
    ])
    expect(merged.map(({ quantity, valueUsd }) => [quantity, valueUsd])).toEqual([[210, 210.9]])
  })

  it('never merges a contract that is not of the registry, whatever its symbol and its price', () => {
    const real = held('ethereum', '0x1', 'USDC', 100, 100)
    const counterfeits = [
      held('arbitrum', '0x666', 'USDC', 9e8, 9e8),
      held('ethereum', '0x667', 'USDC', 9e8, 9e8),
      held('base', '0x668', 'USDC', 9e8, null),
    ]
    const merged = merge([real, ...counterfeits])
    expect(merged).toHaveLength(4)
    expect(merged).toContainEqual(real)
  })

  it('merges native coins, and assets of a source without contracts, by symbol and price', () => {
    const eth = `0x${'e'.repeat(40)}`
    const named = (chain: string, symbol: string, quantity: number, valueUsd: number): Holding => ({
      ...held(chain, '', symbol, quantity, valueUsd),
      contract: null,
    })
    const merged = merge([
      held('ethereum', eth, 'ETH', 1, 2_000),
      held('base', eth, 'ETH', 2, 4_001),
      held('polygon', eth, 'POL', 10, 2),
      named('ethereum', 'CRV', 10, 5),
      named('arbitrum', 'CRV', 2, 1),
    ])
    expect(merged.map(({ symbol, quantity }) => [symbol, quantity])).toEqual([
      ['ETH', 3],
      ['CRV', 12],
      ['POL', 10],
    ])
  })

  it('does not merge different tokens with the same symbol', () => {
    const separate = [
      held('ethereum', '0x1', 'GOV', 10, 100),
      held('arbitrum', '0x2', 'GOV', 10, 80),
      held('ethereum', '0x3', 'GOV', 5, 50),
      held('base', '0x4', 'GOV', 1_000, null),
      held('bnb', '0x5', 'GOV', 2_000, null),
    ]
    expect(merge(separate)).toHaveLength(5)
  })

  it('does not depend on the order of holdings', () => {
    const selected = [
      held('ethereum', '0x1', 'A', 1, 7),
      held('base', '0x1', 'A', 1, 7.01),
      held('ethereum', '0x2', 'B', 3, 7),
      held('ethereum', '0x3', 'C', 3, null),
      held('ethereum', '0x4', 'A', 2, null),
    ]
    expect(merge([...selected].reverse())).toEqual(merge(selected))
  })

  it('returns a null value if one of the parts has no value', () => {
    const merged = merge([held('ethereum', '0x1', 'A', 1, 7), held('ethereum', '0x1', 'A', 1, null)])
    expect(merged).toMatchObject([{ symbol: 'A', quantity: 2, valueUsd: null }])
  })
})

describe('toTreasuryRow', () => {
  const good: DaoTreasuryRow = {
    dao: 1,
    observed_at: '2024-05-06T00:00:00.000Z',
    value_usd: 30,
    tokens: [
      { symbol: 'A', quantity: 2, value_usd: 20 },
      { symbol: 'B', quantity: 1, value_usd: 10 },
      { symbol: 'C', quantity: 5, value_usd: null },
    ],
    holdings: [],
    spam_count: null,
    spam: [],
    unread: [],
    source: 'goldrush',
  }

  const part = {
    ...{ chain: 'ethereum', address: null, contract: null, symbol: 'A', quantity: 2, value_usd: 30 },
    ...{ price_source: 'goldrush', kind: 'other' },
  } as const

  it('sums up exactly, sorts by value with unknown values last, and drops zero quantities', () => {
    const holdings = [
      held('ethereum', '0x1', 'NONE', 0, 0),
      held('ethereum', '0x2', 'X', 3, null),
      held('ethereum', '0x3', 'S', 1, 0.1),
      held('ethereum', '0x4', 'T', 1, 0.2),
      held('ethereum', '0x5', 'L', 1, 1e9 / 3),
    ]
    const row = daoTreasuryRow.parse(toRow(holdings))
    expect(row.tokens.map(({ symbol }) => symbol)).toEqual(['L', 'T', 'S', 'X'])
    expect(row.value_usd).toBe(1e9 / 3 + 0.2 + 0.1)
  })

  it('contains each holding with the source of its price, and the same sum', () => {
    const second = { ...held('ethereum', '0x1', 'A', 2, 20), address: '0xother' }
    const priced = { ...held('base', '0x9', 'B', 1, 5), priceSource: 'defillama' }
    const row = daoTreasuryRow.parse(toRow([held('ethereum', '0x1', 'A', 1, 10), second, priced]))
    expect(row.holdings.map((one) => [one.address, one.contract, one.value_usd, one.price_source])).toEqual([
      ['0xother', '0x1', 20, 'goldrush'],
      [wallet.address, '0x1', 10, 'goldrush'],
      [wallet.address, '0x9', 5, 'defillama'],
    ])
    expect(sumValues(row.holdings)).toBe(row.value_usd)
  })

  it('sets all parts to null if their sum is unknown', () => {
    const parts = [held('ethereum', '0x1', 'A', 1, 7), { ...held('ethereum', '0x1', 'A', 1, null), address: '0xother' }]
    const row = daoTreasuryRow.parse(toRow([...parts, held('ethereum', '0x2', 'B', 1, 1)]))
    expect(row.holdings.map((one) => [one.symbol, one.value_usd, one.price_source])).toEqual([
      ['B', 1, 'goldrush'],
      ['A', null, null],
      ['A', null, null],
    ])
    expect(row.value_usd).toBe(1)
  })

  it('returns undefined without holdings or without prices', () => {
    expect(toRow([])).toBeUndefined()
    expect(toRow([held('ethereum', '0x1', 'A', 5, null)])).toBeUndefined()
    expect(toRow([held('ethereum', '0x1', 'A', 0, 5)])).toBeUndefined()
  })

  it('daoTreasuryRow accepts a complete row', () => {
    expect(daoTreasuryRow.parse(good)).toEqual(good)
    const complete = { ...good, holdings: [part], spam_count: 3 }
    expect(daoTreasuryRow.parse(complete)).toEqual(complete)
  })

  it.each([
    ['no token', { tokens: [], value_usd: 0 }, 'tokens'],
    ['an unsorted list', { tokens: [...good.tokens].reverse() }, 'tokens'],
    ['a total that is not the sum', { value_usd: 31 }, 'value_usd'],
    ['an unknown quantity', { tokens: [{ symbol: 'A', quantity: null, value_usd: 30 }] }, 'tokens.0.quantity'],
    ['holdings with another sum', { holdings: [{ ...part, value_usd: 29 }] }, 'holdings'],
    ['an unknown kind', { holdings: [{ ...part, kind: 'odd' }] }, 'holdings.0.kind'],
    ['a negative value', { tokens: [{ symbol: 'A', quantity: 1, value_usd: -1 }], value_usd: -1 }, 'value_usd'],
  ])('daoTreasuryRow rejects %s', (_, more, path) => {
    expect(daoTreasuryRow.safeParse({ ...good, ...more }).error?.issues[0]?.path.join('.')).toBe(path)
  })
})

describe('createKinds', () => {
  const registry = loadRegistry()
  const daoOf = (slug: string) => getDao(registry, slug)
  const kindOf = createKinds(registry)(daoOf('uniswap'))
  const uni = registry.tokens.find(({ dao: slug }) => slug === 'uniswap')?.contractAddress ?? ''
  const usdc = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
  const asset = (chain: string, contract: string | null, symbol: string) => ({ chain, contract, symbol })

  it('decides by chain and contract, not by symbol or price', () => {
    expect(kindOf(asset('ethereum', uni, 'ANY'))).toBe('own')
    expect(kindOf(asset('base', uni, 'UNI'))).toBe('other')
    expect(kindOf(asset('ethereum', usdc, 'ANY'))).toBe('stable')
    expect(kindOf(asset('base', usdc, 'USDC'))).toBe('other')
    expect(kindOf(asset('gnosis', `0x${'e'.repeat(40)}`, 'XDAI'))).toBe('stable')
    expect(kindOf(asset('ethereum', `0x${'e'.repeat(40)}`, 'ETH'))).toBe('other')
    expect(createKinds(registry)(daoOf('aave'))(asset('ethereum', uni, 'UNI'))).toBe('other')
  })

  it('decides by symbol or by the source if the contract is unknown', () => {
    expect(kindOf(asset('ethereum', null, 'uni'))).toBe('own')
    expect(kindOf(asset('ethereum', null, 'usdc'))).toBe('stable')
    expect(kindOf(asset('ethereum', null, 'WETH'))).toBe('other')
    expect(kindOf({ ...asset('OwnTokens', null, 'XUNI'), isOwn: true })).toBe('own')
  })

  it('classifies a contract that is not in the registry as other, whatever its symbol and its price', () => {
    const holdings = [held('ethereum', uni, 'UNI', 10, 100), held('base', '0xb', 'UNI', 10, 100.5)]
    const { tokens, holdings: rows } = daoTreasuryRow.parse(toRow(holdings, { key: 1, kindOf }))
    expect(rows.map(({ chain, kind }) => [chain, kind])).toEqual([
      ['base', 'other'],
      ['ethereum', 'own'],
    ])
    expect(tokens).toHaveLength(2)
  })
})

describe('GoldRush balances', () => {
  it('become holdings with exact quantities and known values, without spam and collectibles', () => {
    expect(toPositions(balances(), wallet)).toEqual([
      {
        chain: 'ethereum',
        address: wallet.address,
        contract: `0x${'e'.repeat(40)}`,
        symbol: 'ETH',
        decimals: 18,
        quantity: 2.581423,
        valueUsd: 9087.21,
        priceSource: 'goldrush',
      },
      {
        chain: 'ethereum',
        address: wallet.address,
        contract: '0xaaaa000000000000000000000000000000000001',
        symbol: 'UNI-V2',
        decimals: 18,
        quantity: 173403155.20471841,
        valueUsd: null,
        priceSource: null,
      },
      {
        chain: 'ethereum',
        address: wallet.address,
        contract: '0xbbbb000000000000000000000000000000000002',
        symbol: 'DUST',
        decimals: 18,
        quantity: 1e-18,
        valueUsd: 0.01,
        priceSource: 'goldrush',
      },
      // Without decimals and price it is no fungible token, unless the registry lists it.
      {
        chain: 'ethereum',
        address: wallet.address,
        contract: '0xbbbb000000000000000000000000000000000003',
        symbol: 'Collectible',
        decimals: null,
        quantity: null,
        valueUsd: null,
        priceSource: null,
        isOdd: true,
      },
      {
        chain: 'ethereum',
        address: wallet.address,
        contract: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48',
        symbol: 'USDC',
        decimals: 6,
        quantity: 0,
        valueUsd: 0,
        priceSource: 'goldrush',
      },
    ])
  })

  it('have a null value with a fault if the value is impossible', () => {
    const [item] = balances().items
    const absurd = { ...item, is_spam: false, balance: '5000000000000000000000000', quote: 4.2e27, quote_rate: 8.4e20 }
    const [position] = toPositions({ items: [absurd] }, wallet)
    expect(position).toMatchObject({ quantity: 5_000_000, valueUsd: null, fault: 'quote: no value that can be' })
    expect(toPositions({ items: [{ ...absurd, quote: 1e10 }] }, wallet)).toMatchObject([{ valueUsd: null }])
  })

  it('lose only holdings with an impossible amount', () => {
    const good = held('ethereum', '0x1', 'A', 2, 20)
    const row = toRow([good, held('ethereum', '0x2', 'B', 1e40, 1), held('ethereum', '0x3', 'C', 1, 1e13)])
    expect(row).toMatchObject({ value_usd: 20, tokens: [{ symbol: 'A' }, { symbol: 'C', value_usd: null }] })
    expect(row?.[OMITTED]).toEqual([
      'holdings.*.quantity: no amount that can be',
      'holdings.*.value_usd: no value that can be',
    ])
  })

  const usdc = {
    ...{ contract_address: '0xA0B8', contract_ticker_symbol: 'USDC', contract_name: 'USD Coin', contract_decimals: 6 },
    ...{ type: 'stablecoin', is_spam: false, balance: '5000000000000', quote: 5_000_000, quote_rate: 1 },
  }
  const other = { ...usdc, contract_address: '0xC0DE', contract_ticker_symbol: 'UNI', quote: 3_000_000 }
  const rowOf = (items: readonly object[], kindOf = dao.kindOf) =>
    daoTreasuryRow.parse(toRow(toPositions(checkAnswer(balancesData, { items }, source), wallet), { key: 1, kindOf }))
  const unread = { chain: 'ethereum', address: wallet.address, contract: '0xa0b8', symbol: 'USDC' }

  it.each([
    ['a negative balance', { balance: '-1' }],
    ['a negative number', { balance: -1 }],
    ['no balance', { balance: null }],
    ['an absent balance', { balance: undefined }],
    ['a balance that is text', { balance: 'many' }],
    ['an object as balance', { balance: {} }],
    ['no decimals, but a price', { contract_decimals: null }],
    ['a negative value', { quote: -1 }],
    ['a value that is text', { quote: 'n/a' }],
  ])('are unread with %s: not zero, and the total is a part', (_, more) => {
    const row = rowOf([{ ...usdc, ...more }, other])
    expect(row).toMatchObject({ value_usd: 3_000_000, unread: [unread] })
    expect(row.holdings.filter(({ symbol, value_usd }) => symbol === 'USDC' && value_usd !== null)).toEqual([])
    expect(rowOf([usdc, other])).toMatchObject({ value_usd: 8_000_000, unread: [] })
  })

  it('are unread without a name if an item has no contract', () => {
    const unnamed = { ...unread, contract: null, symbol: '' }
    expect(rowOf([null as unknown as object, other]).unread).toEqual([unnamed])
    expect(rowOf([{ ...usdc, contract_address: 'x'.repeat(10_000) }, other]).unread).toEqual([unnamed])
  })

  it('are unread if a contract is listed twice, in any case of letters', () => {
    const row = rowOf([usdc, { ...usdc, contract_address: '0xa0b8' }, other])
    expect(row).toMatchObject({ value_usd: 8_000_000, unread: [unread] })
  })

  it('make the total a part for impossible numbers only if the registry lists the asset', () => {
    for (const more of [{ balance: `1${'0'.repeat(40)}` }, { contract_decimals: 200 }, { quote: 4.2e27 }]) {
      const items = [{ ...usdc, ...more }, other]
      expect(rowOf(items)).toMatchObject({ value_usd: 3_000_000, unread: [] })
      expect(rowOf(items, ({ contract }) => (contract === '0xa0b8' ? 'stable' : 'other')).unread).toEqual([unread])
    }
  })

  it('are counted if they are spam', () => {
    expect(countSpam(balances())).toBe(1)
    expect(countSpam({ items: [] })).toBe(0)
  })

  it('have the contract name or address as symbol if the symbol is missing', () => {
    const [item] = balances().items
    const nameless = { ...item, contract_address: '0xAB', contract_ticker_symbol: null }
    const symbols = (more: object) => toPositions({ items: [{ ...nameless, ...more }] }, wallet)[0]?.symbol
    expect(symbols({})).toBe('Ether')
    expect(symbols({ contract_name: '' })).toBe('0xAB')
  })
})

describe('GoldRush portfolios', () => {
  const current = () => toPositions(balances(), wallet)
  const range = { from: TODAY - 2 * DAY, to: TODAY, interval: '1d' } as const

  it("become holdings at the start of each day, without today's spam and with tokens sold since", () => {
    const days = toDailyPositions(portfolio(), current(), wallet, range)
    const seen = [...days].map(([day, positions]) => [
      new Date(day).toISOString().slice(0, 10),
      positions.map(({ symbol, quantity, valueUsd }) => [symbol, quantity, valueUsd]),
    ])
    expect(Object.fromEntries(seen)).toEqual({
      '2024-05-05': [
        ['ETH', 2, 7000],
        ['UNI-V2', 5, null],
        ['SOLD', 0, 0],
      ],
      '2024-05-04': [
        ['ETH', 1, 3400],
        ['SOLD', 250, 250],
      ],
    })
  })

  it('are unread on a day without a readable balance, and on a day that is missing between two others', () => {
    const [first, second] = [TODAY - 2 * DAY, TODAY - DAY].map((day) => new Date(day).toISOString())
    const item = { contract_address: '0xa0b8', contract_ticker_symbol: 'USDC', contract_decimals: 6 }
    const entry = (timestamp: unknown, open: unknown) => ({ timestamp, quote_rate: 1, open })
    const held = { balance: '5000000', quote: 5 }
    const known = [{ ...(current()[0] as ReturnType<typeof current>[number]), contract: '0xa0b8' }]
    const quantities = (holdings: object[]) => {
      const other = { ...item, contract_address: '0xc0de', holdings: [first, second].map((at) => entry(at, held)) }
      const data = checkAnswer(portfolioData, { items: [{ ...item, holdings }, other] }, source)
      const days = toDailyPositions(data, known, wallet, range)
      return [...days.values()].map((positions) => positions.map(({ quantity }) => quantity))
    }
    expect(quantities([entry(first, held), entry(second, held)])).toEqual([[5], [5]])
    for (const open of [null, 'none', { ...held, balance: '-1' }, { ...held, balance: null }])
      expect(quantities([entry(first, held), entry(second, open)])).toEqual([[5], [null]])
    const today = new Date(TODAY).toISOString()
    expect(quantities([entry(first, held), entry('soon', held), entry(today, held)])).toEqual([[5], [null]])
  })

  it('end at the end of the range', () => {
    expect([...toDailyPositions(portfolio(), current(), wallet, { ...range, to: TODAY - DAY }).keys()]).toEqual([
      TODAY - 2 * DAY,
    ])
  })
})

describe('DefiLlama treasuries', () => {
  const values = (holdings: readonly Holding[]) =>
    holdings.map((one) => [one.chain, one.symbol, one.quantity, one.valueUsd])

  it('contain the newest holdings of chains and own tokens, each once', () => {
    expect(values(toLatestHoldings(treasury(), TODAY + 3_600_000))).toEqual([
      ['ethereum', 'USDC', 600, 600],
      ['ethereum', 'WETH', 0.13, 410],
      ['ethereum', 'ODD', 5, null],
      ['arbitrum', 'USDC', 100, 100],
      ['OwnTokens', 'ALFA', 250, 5000],
    ])
    const row = toRow(toLatestHoldings(treasury(), TODAY))
    expect(row).toMatchObject({
      value_usd: 6110,
      tokens: [{ symbol: 'ALFA' }, { symbol: 'USDC', quantity: 700 }, {}, {}],
    })
  })

  it('contain only chains: staked, pooled and borrowed values are not added', () => {
    const answer = treasury()
    const { Ethereum: series } = answer.chainTvls
    const concurrent = ['staking', 'pool2', 'borrowed', 'vesting', 'Ethereum-staking', 'Nowhere']
    const chainTvls = { ...answer.chainTvls, ...Object.fromEntries(concurrent.map((key) => [key, series ?? {}])) }
    expect(toLatestHoldings({ chainTvls }, TODAY)).toEqual(toLatestHoldings(answer, TODAY))
    expect(listUnknown({ chainTvls })).toEqual(['chainTvls.Nowhere: no chain'])
  })

  it('contain own tokens by chain if they are not aggregated', () => {
    const { OwnTokens: _, ...chainTvls } = treasury().chainTvls
    const holdings = toLatestHoldings({ chainTvls }, TODAY)
    expect(values(holdings)).toContainEqual(['ethereum', 'ALFA', 250, 5000])
  })

  it('use the chain names of the registry and mark own tokens', () => {
    const series = { tokens: [{ date: TODAY / 1000, tokens: { A: 1 } }], tokensInUsd: [] }
    const names = ['Binance', 'BSC', 'OP Mainnet', 'Optimism', 'xDai', 'Polygon', 'Base-OwnTokens', 'Polygon zkEVM']
    const holdings = toLatestHoldings({ chainTvls: Object.fromEntries(names.map((name) => [name, series])) }, TODAY)
    const chains = ['bnb', 'bnb', 'optimism', 'optimism', 'gnosis', 'polygon', 'base', 'polygon-zkevm']
    expect(holdings.map(({ chain }) => chain)).toEqual(chains)
    expect(holdings.map(({ isOwn }) => isOwn === true)).toEqual(names.map((name) => name.includes('Own')))
  })

  it('skip a day that one series lacks between other days', () => {
    const point = (day: number, quantity: number) => ({ date: (TODAY - day * DAY) / 1000, tokens: { A: quantity } })
    const full = { tokens: [3, 2, 1].map((day) => point(day, 1)), tokensInUsd: [3, 2, 1].map((day) => point(day, 5)) }
    const gap = { tokens: [3, 1].map((day) => point(day, 1)), tokensInUsd: [3, 1].map((day) => point(day, 5)) }
    const late = { tokens: [point(1, 1)], tokensInUsd: [point(1, 5)] }
    const range = { from: TODAY - 3 * DAY, to: TODAY, interval: '1d' } as const
    const days = (chainTvls: Record<string, typeof full>) =>
      [...toDailyHoldings({ chainTvls }, range).keys()].map((day) => (TODAY - day) / DAY)
    expect(days({ Ethereum: full, Base: late })).toEqual([3, 2, 1])
    expect(days({ Ethereum: full, Base: gap })).toEqual([3, 1])
  })

  it('are unread for a quantity, a value or a series that cannot be read', () => {
    const day = (date: unknown, tokens: unknown) => ({ date, tokens })
    const at = TODAY / 1000
    const parse = (chainTvls: object) => checkAnswer(treasuryAnswer, { chainTvls }, source)
    const base = { tokens: [day(at, { UNI: 3 })], tokensInUsd: [day(at, { UNI: 3 })] }
    const rowOf = (series: unknown) => {
      const answer = parse({ Ethereum: series, Base: base })
      const [latest] = [toRow(toLatestHoldings(answer, TODAY))]
      const daily = toDailyHoldings(answer, { from: TODAY, to: TODAY + DAY, interval: '1d' }).get(TODAY) ?? []
      expect(toRow(daily)).toMatchObject({ value_usd: latest?.value_usd, unread: latest?.unread })
      return latest
    }
    const usdc = { chain: 'ethereum', address: null, contract: null, symbol: 'USDC' }
    for (const bad of [-1, null, 'many', {}]) {
      const tokens = [day(at, { USDC: bad })]
      expect(rowOf({ tokens, tokensInUsd: [day(at, { USDC: 5 })] })).toMatchObject({ value_usd: 3, unread: [usdc] })
    }
    const tokens = [day(at, { USDC: 5 })]
    for (const values of [[day(at, { USDC: -1 })], [day(at, { USDC: 'x' })], [day(at, null)], []])
      expect(rowOf({ tokens, tokensInUsd: values })).toMatchObject({ value_usd: 3, unread: [usdc] })
    const anything = { ...usdc, symbol: '' }
    for (const broken of [{ tokens: [day(at, null)] }, { tokens: [day('soon', { USDC: 5 })] }, 'none'])
      expect(rowOf(broken)).toMatchObject({ value_usd: 3, unread: [anything] })
    expect(rowOf({ tokens, tokensInUsd: [day(at, { USDC: 5 })] })).toMatchObject({ value_usd: 8, unread: [] })
  })

  it('are empty if their newest point is several days old', () => {
    expect(toLatestHoldings(treasury(), TODAY + 4 * DAY)).toEqual([])
  })

  it('contain the first point of each day', () => {
    const days = toDailyHoldings(treasury(), { from: TODAY - DAY, to: TODAY + DAY, interval: '1d' })
    expect([...days].map(([day, holdings]) => [day, values(holdings)])).toEqual([
      [
        TODAY - DAY,
        [
          ['ethereum', 'USDC', 600, 600],
          ['ethereum', 'WETH', 0.1, 300],
        ],
      ],
      [
        TODAY,
        [
          ['ethereum', 'USDC', 600, 600],
          ['ethereum', 'WETH', 0.13, 400],
          ['arbitrum', 'USDC', 100, 100],
          ['OwnTokens', 'ALFA', 250, 5000],
        ],
      ],
    ])
  })
})

it('toCoin uses the chain and coin names of DefiLlama', () => {
  expect(toCoin('bnb', '0x1')).toBe('bsc:0x1')
  expect(toCoin('ethereum', `0x${'e'.repeat(40)}`)).toBe(`ethereum:0x${'0'.repeat(40)}`)
})
