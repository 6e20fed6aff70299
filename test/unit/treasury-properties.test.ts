import { describe, expect, it } from 'vitest'
import { daoTreasuryRow, MOST_SYMBOL, NATIVE_COIN, sumValues } from '../../shared/datasets/treasury.ts'
import { checkAnswer } from '../../workers/providers/answer.ts'
import { toDailyHoldings, toLatestHoldings, treasuryAnswer } from '../../workers/providers/defillama/treasury-days.ts'
import { balancesData, toPositions } from '../../workers/providers/goldrush/balances.ts'
import { portfolioData, toDailyPositions } from '../../workers/providers/goldrush/portfolio.ts'
import { toTreasuryRow } from '../../workers/providers/treasury-holdings.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createRandom } from '../support/random.ts'

const CASES = countCases(200)

const wallet = { chain: 'ethereum', chainId: 1, address: '0xabc' }
const REAL = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
const kindOf = ({ contract }: { contract: string | null }) => (contract === REAL ? 'stable' : 'other')
const ANCHOR = '0x00000000000000000000000000000000000a0c40'

const SYMBOLS = [
  'USDC',
  'usdc',
  '',
  null,
  '__proto__',
  'constructor',
  '\u202EUSDC',
  '😀'.repeat(500),
  'x'.repeat(1e5),
  7,
]
const CONTRACTS = [REAL, REAL.toUpperCase(), NATIVE_COIN, '0xbad1', '0xbad2', '__proto__', 'y'.repeat(1e5), '', null, 3]
const QUANTITIES = ['5000000', '0', '-1', -1, null, undefined, {}, [], 'many', '1e60', `9${'0'.repeat(78)}`, Number.NaN]
const DECIMALS = [6, '6', 18, 0, 77, 78, 255, -1, null, undefined, 'six', 1.5]
const VALUES = [5, '5', 0, -1, null, undefined, 'n/a', 1e13, 4.2e27, {}, Number.NaN]

describe('GoldRush balances of any content', () => {
  it(`add up to the total, and are never zero if they cannot be read (seed ${SEED})`, () => {
    const { below, pick } = createRandom(SEED)
    const toItem = () => ({
      ...{ contract_address: pick(CONTRACTS), contract_ticker_symbol: pick(SYMBOLS), contract_name: pick(SYMBOLS) },
      ...{ contract_decimals: pick(DECIMALS), balance: pick(QUANTITIES), type: 'cryptocurrency', is_spam: false },
      ...{ quote: pick(VALUES), quote_rate: pick([1, 0, null, -1, 1e12, 'x']) },
    })
    // An asset that can be read, so that the treasury has a value.
    const anchor = {
      contract_address: ANCHOR,
      contract_ticker_symbol: 'A',
      contract_decimals: 0,
      balance: '1',
      quote: 1,
    }
    for (let at = 0; at < CASES; at++) {
      const items = [anchor, ...Array.from({ length: 1 + below(6) }, toItem)]
      const data = checkAnswer(balancesData, { items }, { provider: 'test', path: '/' })
      const held = { holdings: toPositions(data, wallet), spamCount: 0 }
      const where = `case ${at}: ${JSON.stringify(items).slice(0, 2_000)}`
      const row = daoTreasuryRow.parse(toTreasuryRow({ key: 1, kindOf }, Date.UTC(2024, 4, 6), 'goldrush', held))
      expect(sumValues(row.holdings), where).toBeCloseTo(row.value_usd, 6)
      expect(sumValues(row.tokens), where).toBe(row.value_usd)
      for (const { quantity } of row.holdings) expect(quantity, where).toBeGreaterThan(0)
      for (const { contract, kind } of row.holdings) expect(kind, where).toBe(contract === REAL ? 'stable' : 'other')
      // Each contract is one token: none joins the row of another one.
      expect(row.tokens.length, where).toBe(new Set(row.holdings.map(({ contract }) => contract)).size)
      const texts = [...row.tokens, ...row.holdings, ...row.unread].map(({ symbol }) => symbol)
      expect(Math.max(...texts.map(({ length }) => length)), where).toBeLessThanOrEqual(MOST_SYMBOL)
      const real = items.filter(({ contract_address: of }) => String(of).toLowerCase() === REAL)
      const isKnown = [...row.holdings, ...row.unread].some(({ contract }) => contract === REAL)
      if (real.some(({ balance }) => balance !== '0')) expect(isKnown, where).toBe(true)
    }
  })
})

const NOW = Date.UTC(2024, 4, 6)
const DAY = 86_400_000
const CHAINS = ['Ethereum', 'Arbitrum', 'OwnTokens', 'Ethereum-OwnTokens', 'staking', 'Ethereum-staking', 'Nowhere']
const NAMES = ['USDC', 'usdc', 'UNI', 'constructor', '😀'.repeat(500)]
const DATES = [NOW / 1000, NOW / 1000 - 86_400, String(NOW / 1000), NOW / 1000 + 3_600, null, 'today', -1, {}]

/** Whether a sent quantity is an amount above 0. */
const isHeld = (quantity: unknown) => typeof quantity === 'number' && quantity > 0 && quantity < 1e30

describe('DefiLlama treasuries of any content', () => {
  const { below, pick, chance } = createRandom(SEED)
  const toTokens = () =>
    Object.fromEntries(NAMES.filter(() => chance(0.5)).map((name) => [name, pick([1.5, 2, 0, 1e6, ...QUANTITIES])]))
  const toPoints = () =>
    Array.from({ length: 1 + below(4) }, () => ({
      date: pick(DATES),
      ...(chance(0.9) ? { tokens: pick([toTokens(), toTokens(), null, 'x', []]) } : {}),
    }))
  const toValues = (points: ReturnType<typeof toPoints>) =>
    points.map(({ date, tokens }) => ({
      date,
      tokens: Object.fromEntries(Object.keys(tokens ?? {}).map((name) => [name, pick([5, 100, ...VALUES])])),
    }))
  const toChain = () => {
    const tokens = toPoints()
    return pick([
      { tokens, tokensInUsd: toValues(tokens) },
      { tokens, tokensInUsd: toValues(tokens) },
      { tokens },
      null,
      7,
    ])
  }
  const anchor = {
    tokens: [0, 1].map((ago) => ({ date: (NOW - ago * DAY) / 1000, tokens: { ANCHOR: 1 } })),
    tokensInUsd: [0, 1].map((ago) => ({ date: (NOW - ago * DAY) / 1000, tokens: { ANCHOR: 1 } })),
  }

  it(`add up to the total, and are never zero if they cannot be read (seed ${SEED})`, () => {
    for (let at = 0; at < CASES; at++) {
      const chainTvls = {
        Base: anchor,
        ...Object.fromEntries(CHAINS.filter(() => chance(0.5)).map((one) => [one, toChain()])),
      }
      const where = `case ${at}: ${JSON.stringify(chainTvls).slice(0, 3_000)}`
      const answer = checkAnswer(treasuryAnswer, { chainTvls }, { provider: 'test', path: '/' })
      const history = toDailyHoldings(answer, { from: NOW - 3 * DAY, to: NOW + DAY, interval: '1d' })
      const days = [...history].map(([day, holdings]) => ({ day, holdings }))
      for (const { day, holdings } of [{ day: NOW, holdings: toLatestHoldings(answer, NOW) }, ...days]) {
        const found = toTreasuryRow({ key: 1, kindOf: () => 'other' }, day, 'defillama', { holdings, spamCount: null })
        // Nothing has a value: the day is unknown.
        if (found === undefined) continue
        const row = daoTreasuryRow.parse(found)
        expect(sumValues(row.tokens), where).toBe(row.value_usd)
        expect(sumValues(row.holdings), where).toBeCloseTo(row.value_usd, 6)
        for (const { quantity } of row.holdings) expect(quantity, where).toBeGreaterThan(0)
        for (const { symbol, quantity, contract, isOdd } of holdings)
          if (quantity === null && isOdd !== true && contract === null)
            expect(
              row.unread.map((one) => one.symbol),
              where,
            ).toContain(symbol.slice(0, MOST_SYMBOL))
      }
      // Each asset of a chain today is a holding or unread.
      for (const [key, chain] of Object.entries(answer.chainTvls)) {
        const [today, again] = (chain.tokens ?? []).filter(({ date }) => Number(date) === NOW / 1000)
        const newest = (chain.tokens ?? []).every(({ date }) => !(Number(date) > NOW / 1000))
        if (today === undefined || again !== undefined || !newest || !['Ethereum', 'Arbitrum'].includes(key)) continue
        const latest = toLatestHoldings(answer, NOW).filter((one) => one.chain === key.toLowerCase())
        for (const [symbol, quantity] of Object.entries(today.tokens ?? {})) {
          if (quantity === 0) continue
          const own = latest.find((one) => one.symbol === symbol)
          if (own === undefined)
            expect(
              latest.map((one) => one.symbol),
              where,
            ).toContain('')
          else expect(own.quantity, where).toBe(isHeld(quantity) ? quantity : null)
        }
      }
    }
  })
})

describe('GoldRush portfolios of any content', () => {
  const { below, pick, chance } = createRandom(SEED + 1)
  const TIMES = [0, 1, 2].map((ago) => new Date(NOW - ago * DAY).toISOString())
  const toEdge = () =>
    pick([{ balance: pick(QUANTITIES), quote: pick(VALUES) }, { balance: '5000000', quote: 5 }, null, 3])
  const toHolding = () => ({
    ...{ timestamp: pick([...TIMES, ...TIMES, null, 'x', 3]), quote_rate: pick([1, null, -1, 'x']) },
    ...{ open: toEdge(), close: toEdge() },
  })
  const toItem = () => ({
    ...{ contract_address: pick(CONTRACTS), contract_ticker_symbol: pick(SYMBOLS), contract_name: pick(SYMBOLS) },
    ...{ contract_decimals: pick(DECIMALS), holdings: Array.from({ length: below(5) }, toHolding) },
  })
  const edge = { balance: '1', quote: 1 }
  const anchor = {
    ...{ contract_address: ANCHOR, contract_ticker_symbol: 'A', contract_decimals: 0 },
    holdings: TIMES.map((timestamp) => ({ timestamp, quote_rate: 1, open: edge, close: edge })),
  }

  it(`add up to the total, and are never zero if they cannot be read (seed ${SEED})`, () => {
    for (let at = 0; at < CASES; at++) {
      const items = [anchor, ...Array.from({ length: 1 + below(5) }, toItem)]
      const held = {
        contract_address: REAL,
        contract_ticker_symbol: 'USDC',
        contract_decimals: 6,
        type: 'cryptocurrency',
      }
      const isHeldNow = chance(0.7)
      const balances = [
        { ...held, contract_address: ANCHOR, contract_decimals: 0, balance: '1', quote: 1 },
        ...(isHeldNow ? [{ ...held, balance: '5000000', quote: 5 }] : []),
      ]
      const source = { provider: 'test', path: '/' }
      const current = toPositions(checkAnswer(balancesData, { items: balances }, source), wallet)
      const portfolio = checkAnswer(portfolioData, { items }, source)
      const where = `case ${at}: ${JSON.stringify(items).slice(0, 3_000)}`
      const daily = toDailyPositions(portfolio, current, wallet, { from: NOW - 2 * DAY, to: NOW + DAY, interval: '1d' })
      expect([...daily.keys()].sort(), where).toEqual(TIMES.map((time) => Date.parse(time)).sort())
      for (const [day, holdings] of daily) {
        const row = daoTreasuryRow.parse(
          toTreasuryRow({ key: 1, kindOf }, day, 'goldrush', { holdings, spamCount: null }),
        )
        expect(sumValues(row.tokens), where).toBe(row.value_usd)
        expect(sumValues(row.holdings), where).toBeCloseTo(row.value_usd, 6)
        for (const { quantity } of row.holdings) expect(quantity, where).toBeGreaterThan(0)
        // The first entry of a day counts, of the first item of a contract.
        const [real] = items.filter(({ contract_address: of }) => String(of).toLowerCase() === REAL)
        const entry = real?.holdings.find(({ timestamp }) => timestamp === new Date(day).toISOString())
        const isRead = [...row.holdings, ...row.unread].some(({ contract }) => contract === REAL)
        const isZero = entry?.open instanceof Object && entry.open.balance === '0'
        if (isHeldNow && entry !== undefined && !isZero)
          expect(isRead, `${where} on ${new Date(day).toISOString()}`).toBe(true)
      }
    }
  })
})
