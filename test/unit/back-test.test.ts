import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type BackTest, isDue, runBackTest } from '../../api/backtest/back-test.ts'
import type { Market, Rule } from '../../api/backtest/rule.ts'
import { toStatistics } from '../../api/backtest/statistics.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { countCases, SEED } from '../support/cases.ts'
import { plainBackTest } from '../support/plain-back-test.ts'
import { createRandom } from '../support/random.ts'

const EXAMPLE = join(import.meta.dirname, '../../../shared/data/baskets/example.json')
const toTime = (day: string) => Date.parse(`${day}T00:00:00Z`)

const RULE: Rule = { weights: 'fixed', rebalance: 'monthly', costBps: 0, base: 100 }

interface Token {
  readonly share?: number
  readonly until?: string
  readonly kind?: 'pegged' | 'wrapped'
  readonly prices: readonly (number | null)[]
  readonly caps?: readonly (number | null)[]
}

/** A market from the prices of tokens by day; null is unknown. */
function toMarket(first: string, tokens: Readonly<Record<string, Token>>): Market {
  const entries = Object.entries(tokens)
  const length = entries[0]?.[1].prices.length ?? 0
  const toValues = (pick: (token: Token) => readonly (number | null)[]) =>
    Float64Array.from(entries.flatMap(([, token]) => pick(token)).map((value) => value ?? Number.NaN))
  return {
    days: Array.from({ length }, (_, day) => toTime(first) + day * DAY_MS),
    candidates: entries.map(([id, { share, until, kind }]) => ({
      id,
      symbol: id,
      share,
      until: until === undefined ? undefined : toTime(until),
      kind,
    })),
    prices: toValues(({ prices }) => prices),
    marketCaps: toValues(({ prices, caps }) => caps ?? prices),
  }
}

const navOf = ({ days }: BackTest) => days.map(({ nav }) => nav)
const dayOf = (at: number | undefined) => (at === undefined ? undefined : new Date(at).toISOString().slice(0, 10))

describe('a back-test', () => {
  it('decides with the market caps of the day before', () => {
    const market = toMarket('2024-03-30', {
      a: { prices: [1, 1, 1, 1], caps: [2, 2, 1, 9] },
      b: { prices: [1, 1, 1, 1], caps: [1, 1, 9, 1] },
    })
    const { rebalances } = runBackTest({ ...RULE, weights: 'marketCap', top: 1 }, market)
    // On 1 April, the second day of the test, b is the larger one for the first time.
    expect(rebalances.map(({ members }) => members.map(({ token }) => token))).toEqual([[0], [0]])
  })

  it('waits for a day with the prices of all held tokens', () => {
    const market = toMarket('2024-03-30', {
      a: { share: 1, prices: [1, 1, null, null, 1] },
      b: { share: 1, prices: [1, 1, 1, 1, 1] },
    })
    const { rebalances, missingPriceDays, days } = runBackTest(RULE, market)
    expect(rebalances.map(({ scheduledAt, executedAt }) => [dayOf(scheduledAt), dayOf(executedAt)])).toEqual([
      ['2024-03-31', '2024-03-31'],
      ['2024-04-01', '2024-04-03'],
    ])
    expect(days.map(({ nav }) => nav)).toEqual([100, null, null, 100])
    expect(days.map((day) => day.return)).toEqual([null, null, null, null])
    expect(missingPriceDays.map(({ day, tokens }) => [dayOf(day), tokens])).toEqual([
      ['2024-04-01', [0]],
      ['2024-04-02', [0]],
    ])
  })

  it('pays out a token that ends at its last price, without a cost', () => {
    const market = toMarket('2024-03-29', {
      a: { share: 1, until: '2024-04-01', prices: [1, 1, 2, null, null] },
      b: { share: 1, prices: [1, 1, 1, 1, 4] },
    })
    const { exits, rebalances, ...test } = runBackTest({ ...RULE, costBps: 100 }, market)
    expect(exits).toEqual([{ token: 0, at: toTime('2024-04-01'), reason: 'ended', price: 2 }])
    // 50 of a become 100 in cash, which buy b on the same day: two thirds of 150 are traded once.
    expect(navOf(test as BackTest)[1]).toBe(150)
    expect(rebalances[1]).toMatchObject({ entered: [], exited: [] })
    expect(rebalances[1]?.cost).toBeCloseTo(1, 12)
    expect(rebalances[1]?.turnover).toBeCloseTo(2 / 3, 12)
    expect(rebalances[1]?.excluded).toEqual([{ token: 0, reason: 'ended' }])
    expect(navOf(test as BackTest)[3]).toBeCloseTo(596, 9)
  })

  it('pays out a token without a price for over seven days', () => {
    const quiet = [1, 1, 3, ...Array.from({ length: 8 }, () => null), 5]
    const market = toMarket('2024-03-03', {
      a: { share: 1, prices: quiet },
      b: { share: 1, prices: quiet.map(() => 1) },
    })
    const { exits, ...test } = runBackTest(RULE, market)
    expect(navOf(test as BackTest)).toEqual([100, 200, ...Array.from({ length: 7 }, () => null), 200, 200])
    expect(exits).toEqual([{ token: 0, at: toTime('2024-03-13'), reason: 'unpriced', price: 3 }])
  })

  it('charges the cost for what is sold and for what is bought', () => {
    const market = toMarket('2024-03-30', {
      a: { share: 1, prices: [1, 1, 3] },
      b: { share: 1, prices: [1, 1, 1] },
    })
    const { rebalances } = runBackTest({ ...RULE, costBps: 100 }, market)
    // 150 and 50 become 100 each: 50 sold and 50 bought.
    expect(rebalances[1]).toMatchObject({ turnover: 0.25, cost: 1, nav: 199 })
  })

  it.each([
    [0.5, { a: 0.5, b: 0.3, c: 0.2 }],
    [0.4, { a: 0.4, b: 0.36, c: 0.24 }],
    [0.35, { a: 0.35, b: 0.35, c: 0.3 }],
    [0.1, { a: 1 / 3, b: 1 / 3, c: 1 / 3 }],
  ])('shares what is above a cap of %d among the others', (cap, expected) => {
    const [a, b, c] = [5, 3, 2].map((value) => ({ prices: [value, value] }))
    const market = toMarket('2024-03-30', { a, b, c } as Record<string, Token>)
    const { rebalances } = runBackTest({ ...RULE, weights: 'marketCap', cap }, market)
    const weights = Object.fromEntries(rebalances[0]?.members.map(({ token, weight }) => ['abc'[token], weight]) ?? [])
    for (const [id, weight] of Object.entries(expected)) expect(weights[id]).toBeCloseTo(weight, 12)
  })

  it('names why each candidate is not held', () => {
    const market = toMarket('2024-03-30', {
      a: { prices: [null, 1] },
      b: { prices: [1, 1], until: '2024-03-31' },
      c: { prices: [1, 1], caps: [null, 1] },
      d: { prices: [1, null] },
      e: { prices: [1, 1], kind: 'pegged' },
      f: { prices: [1, 1], kind: 'wrapped' },
      g: { prices: [1, 1] },
      h: { prices: [2, 2] },
    })
    const { rebalances } = runBackTest({ ...RULE, weights: 'equal', top: 1 }, market)
    expect(rebalances[0]?.members.map(({ token }) => token)).toEqual([7])
    const reasons = ['notYetListed', 'ended', 'noMarketCap', 'noPrice', 'pegged', 'wrapped', 'belowTop']
    expect(rebalances[0]?.excluded.map(({ reason }) => reason)).toEqual(reasons)
  })

  it.each([0, -1])('has no market cap for a member if it is %d', (cap) => {
    const market = toMarket('2024-03-30', { a: { prices: [1, 1], caps: [cap, cap] }, b: { prices: [1, 1] } })
    const { rebalances } = runBackTest({ ...RULE, weights: 'marketCap' }, market)
    expect(rebalances[0]).toMatchObject({
      members: [{ token: 1, weight: 1 }],
      excluded: [{ token: 0, reason: 'noMarketCap' }],
    })
  })

  it.each([
    ['monthly', ['2024-01-01', '2024-02-01', '2024-03-01', '2024-04-01']],
    ['quarterly', ['2024-01-01', '2024-04-01']],
    ['never', []],
  ] as const)('is due %s', (rebalance, expected) => {
    const days = Array.from({ length: 121 }, (_, day) => toTime('2023-12-31') + day * DAY_MS)
    expect(days.filter((day) => isDue(rebalance, day)).map(dayOf)).toEqual(expected)
  })
})

describe('statistics of a basket', () => {
  const toDays = (navs: readonly (number | null)[]) =>
    navs.map((nav, at) => {
      const before = navs[at - 1] ?? null
      return {
        at: at * DAY_MS,
        nav,
        return: nav === null || before === null ? null : nav / before - 1,
        turnover: 0,
        members: 1,
      }
    })

  it('use the sample deviation and 365 days', () => {
    const { volatility, sharpe, returns } = toStatistics(toDays([100, 110, 99]), [])
    expect(returns).toBe(2)
    expect(volatility).toBeCloseTo(Math.sqrt(0.02) * Math.sqrt(365), 12)
    expect(sharpe).toBeCloseTo(0, 12)
  })

  it('are unknown if values do not vary', () => {
    const { volatility, sharpe, correlation } = toStatistics(toDays([1, 1, 1]), [1, 2, 3])
    expect([volatility, sharpe, correlation]).toEqual([0, null, null])
  })

  it('count the first day as a peak', () => {
    expect(toStatistics(toDays([100, 80, 90, 120, 60]), []).maxDrawdown).toEqual({
      value: -0.5,
      peakAt: 3 * DAY_MS,
      troughAt: 4 * DAY_MS,
      recoveredAt: null,
    })
    expect(toStatistics(toDays([100, 80, 90, 100]), []).maxDrawdown).toMatchObject({
      peakAt: 0,
      recoveredAt: 3 * DAY_MS,
    })
  })

  it('leave out a return across an unknown day', () => {
    const { returns, returnsWithIndex, totalReturn } = toStatistics(toDays([100, null, 120, 132]), [1, 1, null, 1])
    expect([returns, returnsWithIndex]).toEqual([1, 0])
    expect(totalReturn).toBeCloseTo(0.32, 12)
  })
})

describe('random baskets', () => {
  const random = createRandom(SEED)
  const below = (limit: number) => Math.floor(random.next() * limit)
  const oneOf = <T>(values: readonly T[]) => values[below(values.length)] as T

  function createMarket(): Market {
    const [count, length] = [1 + below(8), 5 + below(400)]
    const first = oneOf(['2023-12-20', '2024-02-25', '2022-09-30'])
    const toTokenPrices = () => {
      const [from, to] = [oneOf([0, 0, below(length)]), oneOf([length, length, below(length)])]
      let price = 10 ** (random.next() * 6 - 3)
      return Array.from({ length }, (_, day) => {
        price *= Math.exp((random.next() - 0.5) * 0.3)
        return day < from || day >= to || random.next() < 0.02 ? null : price
      })
    }
    const tokens = Array.from({ length: count }, (_, place) => {
      const prices = toTokenPrices()
      const end = random.next() < 0.2 ? dayOf(toTime(first) + below(length) * DAY_MS) : undefined
      const caps = prices.map((price) => (price === null || random.next() < 0.02 ? null : price * 1e6 * random.next()))
      const kind = random.next() < 0.05 ? ('pegged' as const) : undefined
      const token: Token = {
        prices,
        caps,
        share: 0.01 + random.next(),
        ...(end && { until: end }),
        ...(kind && { kind }),
      }
      return [`t${place}`, token] as const
    })
    return toMarket(first, Object.fromEntries(tokens))
  }
  function createRule(): Rule {
    const weights = oneOf(['fixed', 'equal', 'marketCap'] as const)
    return {
      weights,
      rebalance: oneOf(['never', 'monthly', 'quarterly'] as const),
      costBps: oneOf([0, 10, 1000]),
      base: oneOf([100, 1]),
      ...(weights !== 'fixed' && random.next() < 0.6 && { top: 1 + below(5) }),
      ...(weights === 'marketCap' && random.next() < 0.6 && { cap: 0.05 + random.next() * 0.95 }),
    }
  }
  const isNear = (a: number, b: number) => Math.abs(a - b) <= 1e-9 * Math.max(1e-3, Math.abs(a), Math.abs(b))

  it('equal a plain computation, and do not change when later values do', () => {
    for (let at = 0; at < countCases(100); at += 1) {
      const [rule, market] = [createRule(), createMarket()]
      const found = runBackTest(rule, market)
      const plain = plainBackTest(rule, market)
      const where = `case ${at} of seed ${SEED}`
      expect(
        navOf(found).map((nav) => nav === null),
        where,
      ).toEqual(plain.nav.map((nav) => nav === null))
      found.days.forEach(({ nav, turnover }, day) => {
        if (nav !== null && !isNear(nav, plain.nav[day] as number)) expect(nav, where).toBe(plain.nav[day])
        if (!isNear(turnover, plain.turnover[day] as number)) expect(turnover, where).toBe(plain.turnover[day])
      })
      const toReasons = (excluded: BackTest['rebalances'][number]['excluded']) =>
        Object.fromEntries(excluded.map(({ token, reason }) => [`t${token}`, reason]))
      expect(
        found.rebalances.map(({ excluded }) => toReasons(excluded)),
        where,
      ).toEqual(plain.reasons)

      const cut = 2 + below(market.days.length - 2)
      const isLater = (_: number, place: number) => place % market.days.length >= cut
      const change = (values: Float64Array) =>
        values.map((value, place) =>
          isLater(value, place) ? (random.next() < 0.1 ? Number.NaN : random.next() * 100) : value,
        )
      const changed = { ...market, prices: change(market.prices), marketCaps: change(market.marketCaps) }
      expect(runBackTest(rule, changed).days.slice(0, cut - 1), where).toEqual(found.days.slice(0, cut - 1))
    }
  })
})

interface Case {
  readonly rule: Partial<Rule> & { readonly of?: Record<string, number>; readonly at?: readonly string[] }
  readonly nav: readonly number[]
  readonly rebalances: readonly { weights: Record<string, number>; turnover: number; cost: number; nav: number }[]
  readonly maxDrawdown: {
    readonly value: number
    readonly peakAt: string
    readonly troughAt: string
    readonly recoveredAt: string
  }
}

if (!existsSync(EXAMPLE)) console.log(`${EXAMPLE} is absent: the computed baskets are skipped`)

describe.skipIf(!existsSync(EXAMPLE))('computed baskets', () => {
  const example = existsSync(EXAMPLE) ? JSON.parse(readFileSync(EXAMPLE, 'utf8')) : { input: {}, cases: {} }
  const { days = [], prices = {}, marketCaps = {}, index = [] } = example.input

  it.each(Object.entries<Case>(example.cases))('%s has the figures of the reference', (_, reference) => {
    const { rule, ...expected } = reference
    const tokens = Object.keys(prices).map((id) => {
      const share = rule.of?.[id]
      return [id, { prices: prices[id], caps: marketCaps[id], ...(share !== undefined && { share }) }] as const
    })
    const market = toMarket(days[0].slice(0, 10), Object.fromEntries(tokens))
    const at = rule.at?.map((day) => Date.parse(day))
    const scheduled = at === undefined ? undefined : (day: number) => at.includes(day)
    const found = runBackTest({ ...RULE, ...rule }, market, scheduled)
    const near = (actual: number | null | undefined, wanted: number) =>
      expect(Math.abs((actual ?? Number.NaN) - wanted), `${actual} is not ${wanted}`).toBeLessThanOrEqual(
        1e-9 * Math.max(1, Math.abs(wanted)),
      )
    for (const [day, nav] of expected.nav.entries()) near(found.days[day]?.nav, nav)
    expect(found.days.length).toBe(expected.nav.length)
    expect(found.rebalances.length).toBe(expected.rebalances.length)
    expected.rebalances.forEach((wanted, place) => {
      const trades = found.rebalances[place]
      near(trades?.turnover, wanted.turnover)
      near(trades?.cost, wanted.cost)
      near(trades?.nav, wanted.nav)
      for (const { token, weight } of trades?.members ?? [])
        near(weight, wanted.weights[market.candidates[token]?.id ?? ''] ?? Number.NaN)
    })
    const { maxDrawdown, ...statistics } = toStatistics(found.days, index.slice(1))
    near(maxDrawdown?.value, expected.maxDrawdown.value)
    for (const name of ['peakAt', 'troughAt', 'recoveredAt'] as const)
      expect(new Date(maxDrawdown?.[name] ?? 0).toISOString()).toBe(expected.maxDrawdown[name])
    for (const [name, value] of Object.entries(statistics))
      near(value, (expected as unknown as Record<string, number>)[name] ?? Number.NaN)
  })
})
