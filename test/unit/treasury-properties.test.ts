import { describe, expect, it } from 'vitest'
import { daoTreasuryRow, MOST_SYMBOL, NATIVE_COIN, sumValues } from '../../shared/datasets/treasury.ts'
import { checkAnswer } from '../../workers/providers/answer.ts'
import { balancesData, toPositions } from '../../workers/providers/goldrush/balances.ts'
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
