import { describe, expect, it } from 'vitest'
import { createPriceSlots, type PriceSlots, type Prices, SLOT_MS } from '../support/price-slots.ts'

/** Not a full hour, so that audits come later. */
const START = Date.parse('2024-05-06T07:05:00Z')
const HOUR = 12

/** Providers with a little movement of their own, so that no price is unchanged. */
const wander = (index: number, base = 6) => base * (1 + 0.001 * Math.sin(index * 1.7))

type Feed = (index: number, price: number) => Prices

/** Runs `quiet` normal slots and then `feed`; indexes of the feed begin at 0. */
function run(feed: Feed, { slots, quiet = 30, base = 6 }: { slots: number; quiet?: number; base?: number }) {
  const token: PriceSlots = createPriceSlots()
  const at = (index: number) => START + (index + quiet) * SLOT_MS
  for (let index = -quiet; index < 0; index += 1) {
    const price = wander(index, base)
    token.decide(at(index), { first: price, second: price * 1.002, third: price * 0.999 })
  }
  const results = Array.from({ length: slots }, (_, index) => token.decide(at(index), feed(index, wander(index, base))))
  return { token, results, at }
}

const storedOf = (results: ReturnType<typeof run>['results']) =>
  results.map(({ decided: { stored } }) => stored && { by: stored.quote.provider, agreement: stored.agreement })

describe('price rule with a wrong first provider and two right ones', () => {
  it.each([2, 10, 0.1, 75, 0.5, 1e6, 1e-12, 1.12, 0.88])(
    'stores the price of the second provider in the slot of a factor of %d, and excludes the first',
    (factor) => {
      const { results, token } = run(
        (index, price) => ({
          first: index === 0 ? price * factor : price,
          second: price * 1.002,
          third: price * 0.999,
        }),
        { slots: 6 },
      )
      expect(storedOf(results)[0]).toEqual({ by: 'second', agreement: 'median' })
      expect(results[0]?.decided.memory.exclusions).toMatchObject([{ provider: 'first', since: START + 30 * SLOT_MS }])
      // The provider is used again after three slots.
      expect(results.map(({ decided }) => decided.memory.exclusions.length)).toEqual([1, 1, 1, 0, 0, 0])
      expect(storedOf(results)[4]?.by).toBe('first')
      expect([...token.stored.values()].every(({ price }) => price > 5.9 && price < 6.1)).toBe(true)
    },
  )

  it.each([2, 10, 0.1, 75, 1e6, 1e-12])('stores only right prices while a factor of %d lasts three hours', (factor) => {
    const { results, token } = run(
      (index, price) => ({ first: index < 36 ? price * factor : price, second: price * 1.002, third: price * 0.999 }),
      { slots: 42 },
    )
    for (const { decided } of results) expect(decided.stored).toBeDefined()
    expect(
      new Set(
        storedOf(results)
          .slice(0, 36)
          .map((one) => JSON.stringify(one)),
      ),
    ).toEqual(new Set([JSON.stringify({ by: 'second', agreement: 'median' })]))
    expect([...token.stored.values()].every(({ price }) => price > 5.9 && price < 6.1)).toBe(true)
  })

  it('keeps a provider excluded while it deviates by more than half of the bound', () => {
    const { results } = run(
      (index, price) => ({ first: price * (index === 0 ? 2 : 1.03), second: price, third: price }),
      { slots: 8 },
    )
    expect(results.every(({ decided }) => decided.stored?.quote.provider === 'second')).toBe(true)
    expect(results.at(-1)?.decided.memory.exclusions).toMatchObject([{ provider: 'first', recovered: 0 }])
    expect(storedOf(results).at(-1)).toEqual({ by: 'second', agreement: 'single' })
  })

  it('uses the second provider if the first has 0 or no price', () => {
    for (const first of [0, null, -1]) {
      const { results } = run((_, price) => ({ first, second: price, third: price }), { slots: 2 })
      expect(storedOf(results)[0]).toEqual({ by: 'second', agreement: 'single' })
      expect(results[0]?.asked).toEqual(['first', 'second'])
    }
  })

  it('excludes both of two exchanged tokens whose prices differ', () => {
    const [uni, aave] = [6, 80].map((base) =>
      run((_, price) => ({ first: (price / base) * (86 - base), second: price, third: price }), { slots: 3, base }),
    )
    for (const one of [uni, aave]) {
      expect(storedOf(one?.results ?? [])).toEqual(Array(3).fill({ by: 'second', agreement: 'median' }))
      expect(one?.token.memory.exclusions).toMatchObject([{ provider: 'first' }])
    }
  })

  it('cannot detect exchanged tokens whose prices are within 5 %', () => {
    const { results } = run((_, price) => ({ first: price * 1.04, second: price, third: price }), { slots: 20 })
    expect(storedOf(results).every((one) => one?.by === 'first')).toBe(true)
  })
})

describe('price rule without another provider', () => {
  it.each([2, 10, 0.1, 75, 1e6, 1e-12])('stores nothing of a factor of %d, and names both prices', (factor) => {
    const { results } = run((_, price) => ({ first: price * factor }), { slots: 36 })
    for (const { decided } of results) expect(decided.stored).toBeUndefined()
    const [first] = results
    expect(first?.decided.reason).toMatch(/^price not confirmed: first \S+, last \S+$/)
    expect(first?.decided.suspects).toMatchObject([{ provider: 'first', isWithheld: true }])
  })

  it('releases a factor of 2 only after a day', () => {
    const { results, token } = run((_, price) => ({ first: price * 2 }), { slots: 24 * HOUR + 3 })
    const since = results.findIndex(({ decided }) => decided.stored !== undefined)
    expect(since).toBe(24 * HOUR)
    expect(storedOf(results)[since]).toEqual({ by: 'first', agreement: 'released' })
    expect(token.stored.size).toBeGreaterThan(24 * HOUR)
  })

  it('believes a move of 40 % after half an hour, with all of its observations', () => {
    const { results, token, at } = run((_, price) => ({ first: price * 1.4 }), { slots: 8 })
    expect(storedOf(results)).toEqual([
      ...Array(6).fill(undefined),
      { by: 'first', agreement: 'persisted' },
      { by: 'first', agreement: 'single' },
    ])
    expect([0, 1, 2, 3, 4, 5, 6].map((index) => token.stored.has(at(index) - 60_000))).toEqual(Array(7).fill(true))
  })

  it('does not believe a price that jumps between two values', () => {
    const { results } = run((index, price) => ({ first: price * (index % 2 === 0 ? 1.6 : 0.62) }), { slots: 40 })
    for (const { decided } of results) expect(decided.stored).toBeUndefined()
  })

  it('stores a first price, which no last price contradicts', () => {
    const { results } = run((_, price) => ({ first: price }), { slots: 2, quiet: 0 })
    expect(storedOf(results).map((one) => one?.agreement)).toEqual(['single', 'single'])
  })
})

describe('price rule with a second provider', () => {
  it('compares a first price with the second provider, and stores it', () => {
    const { results } = run((_, price) => ({ first: price, second: price * 1.01, third: price }), {
      slots: 2,
      quiet: 0,
    })
    expect(results.map(({ asked }) => asked.length)).toEqual([2, 1])
    expect(results[0]?.decided.stored).toMatchObject({ agreement: 'confirmed', checkedWith: ['second'] })
    expect(results[0]?.decided.stored?.deviation).toBeCloseTo(Math.log(1.01), 9)
  })

  it('stores a real move of 15 % although the second provider has 0', () => {
    const { results } = run((_, price) => ({ first: price * 1.15, second: 0, third: price * 1.15 }), { slots: 2 })
    expect(storedOf(results)[0]).toEqual({ by: 'first', agreement: 'median' })
    expect(results[0]?.asked).toEqual(['first', 'second', 'third'])
  })

  it('stores nothing if two providers have the same wrong price and the third does not', () => {
    const { results } = run((_, price) => ({ first: price * 10, second: price * 10, third: price }), { slots: 12 })
    for (const { decided } of results) expect(decided.stored).toBeUndefined()
    expect(results[0]?.decided.reason).toMatch(/^price not confirmed: first 6\d.*, second 6\d.*, third 6.*, last /)
  })

  it('stores a price of three wrong providers that agree, because that cannot be detected', () => {
    const { results } = run((_, price) => ({ first: price * 10, second: price * 10, third: price * 10 }), { slots: 1 })
    expect(storedOf(results)[0]).toEqual({ by: 'first', agreement: 'confirmed' })
  })

  it('stores nothing if both providers are wrong alike and there is no third', () => {
    const { results } = run((_, price) => ({ first: price * 10, second: price * 10 }), { slots: 12 })
    for (const { decided } of results) expect(decided.stored).toBeUndefined()
  })

  it('stores nothing if no two agree and none is near the last price', () => {
    const { results } = run((_, price) => ({ first: price * 2, second: price * 0.5, third: price * 9 }), { slots: 1 })
    expect(results[0]?.decided).toMatchObject({ stored: undefined, suspects: [{}, {}, {}] })
  })

  it('stores a real move of 25 % in its slot if the second provider is late and a third is not', () => {
    const { results } = run(
      (index, price) => ({ first: price * 1.25, second: index === 0 ? price : price * 1.25, third: price * 1.25 }),
      { slots: 3 },
    )
    expect(storedOf(results)[0]).toEqual({ by: 'first', agreement: 'median' })
  })

  it('releases a real move of 25 % in the next slot, at its own time, if the second provider is late', () => {
    const { results, token, at } = run(
      (index, price) => ({ first: price * 1.25, second: index === 0 ? price : price * 1.25 }),
      { slots: 3 },
    )
    expect(storedOf(results)[0]).toEqual({ by: 'second', agreement: 'single' })
    expect(results[1]?.decided.released).toMatchObject([
      {
        trusted: { agreement: 'confirmed', quote: { provider: 'first', at: at(0) - 60_000 }, checkedWith: ['second'] },
      },
    ])
    expect(token.stored.get(at(0) - 60_000)?.price).toBeGreaterThan(7)
    expect(token.suspects).toEqual([])
  })

  it('stores every price of a crash of 30 % over an hour', () => {
    const fall = (index: number) => Math.max(0.7, 1 - 0.025 * (index + 1))
    const { results, token } = run(
      (index, price) => ({
        first: price * fall(index),
        second: price * fall(Math.max(index - (index % 2), 0)),
        third: price * fall(index),
      }),
      { slots: 24 },
    )
    for (const { decided } of results) expect(decided.stored?.quote.provider).toBe('first')
    expect(token.memory.exclusions).toEqual([])
  })
})

describe('price rule with an unchanged price', () => {
  it('stores at most an hour of a frozen price while the others move by 4 %', () => {
    const { results } = run(
      (index, price) => ({
        first: 6,
        second: price * 1.002 * (1 + Math.min(index, 24) * (0.04 / 24)),
        third: price * (1 + Math.min(index, 24) * (0.04 / 24)),
      }),
      { slots: 36 },
    )
    const by = storedOf(results).map((one) => one?.by)
    expect(by.indexOf('second')).toBeLessThanOrEqual(HOUR)
    expect(new Set(by.slice(by.indexOf('second')))).toEqual(new Set(['second']))
  })

  it('returns to a frozen provider after its price has moved again', () => {
    const { results } = run(
      (index, price) => ({ first: index < 24 ? 6 : price * 1.02, second: price * 1.02, third: price * 1.02 }),
      { slots: 32 },
    )
    const by = storedOf(results).map((one) => one?.by)
    expect(by.slice(13, 26)).toEqual(Array(13).fill('second'))
    expect(by.slice(-3)).toEqual(Array(3).fill('first'))
  })

  it.each([6, 1])('stores an unchanged price of %d while the others are unchanged, too', (base) => {
    const { results } = run(() => ({ first: base, second: base, third: base }), { slots: 12 * HOUR, base })
    expect(storedOf(results).every((one) => one?.by === 'first')).toBe(true)
    expect(results.at(-1)?.decided.memory.exclusions).toEqual([])
    expect(results.reduce((sum, { asked }) => sum + asked.length - 1, 0)).toBeLessThanOrEqual(25)
  })
})

describe('price rule in an audit', () => {
  const isHour = (index: number) => (START + (index + 30) * SLOT_MS) % (12 * SLOT_MS) === 0
  const auditIndex = Array.from({ length: 12 }, (_, index) => index).find(isHour) ?? 0

  it('asks one other provider at the full hour', () => {
    const { results } = run((_, price) => ({ first: price, second: price, third: price }), { slots: 24 })
    for (const [index, { asked }] of results.entries()) expect(asked.length).toBe(isHour(index) ? 2 : 1)
  })

  it('takes out the stored price after two others differ from it in two slots', () => {
    const { results, at } = run((_, price) => ({ first: price * 1.08, second: price, third: price }), { slots: 13 })
    expect(storedOf(results)[auditIndex]).toEqual({ by: 'first', agreement: 'single' })
    expect(storedOf(results)[auditIndex + 1]).toEqual({ by: 'second', agreement: 'median' })
    expect(results[auditIndex + 1]?.decided.takenOut).toEqual({ provider: 'first', since: at(auditIndex) })
    expect(results.filter(({ decided }) => decided.takenOut !== undefined)).toHaveLength(1)
  })

  it('ignores a difference that the next slot does not have', () => {
    const { results, token } = run(
      (index, price) => ({ first: price, second: index === auditIndex ? price * 1.08 : price, third: price }),
      { slots: 13 },
    )
    expect(storedOf(results).every((one) => one?.by === 'first')).toBe(true)
    expect(token.memory).toMatchObject({ exclusions: [], differenceAt: null })
  })
})
