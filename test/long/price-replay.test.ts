import { describe, expect, it } from 'vitest'
import { SEED } from '../support/cases.ts'
import { CANDLES, describeReplay, hasCandles, readCloses, replay } from '../support/price-replay.ts'

if (!hasCandles) console.log(`price rule on real candles: skipped, there is no ${CANDLES}`)

describe.skipIf(!hasCandles)('price rule on eight months of real 5-minute candles', () => {
  const closes = hasCandles ? readCloses(0, Number.POSITIVE_INFINITY) : new Map<string, readonly number[]>()
  const run = (name: string, options: Omit<Parameters<typeof replay>[1], 'seed'>) => {
    const result = replay(closes, { seed: SEED, ...options })
    console.log(describeReplay(name, result, closes.size))
    return result
  }

  it('withholds at most 2 of 100,000 prices, none longer than 15 minutes', () => {
    const { withheld, slots, longest } = run('three providers', {})
    expect(withheld / slots).toBeLessThanOrEqual(2 / 100_000)
    expect(longest).toBeLessThanOrEqual(3)
  })

  it('withholds at most 1 of 10,000 prices of a single provider', () => {
    const { withheld, slots } = run('one provider', { hasOthers: false })
    expect(withheld / slots).toBeLessThanOrEqual(1 / 10_000)
  })

  it('stores no wrong price of seeded faults', () => {
    const { faults, caught, wrong, longest } = run('faults', { faults: 1 / 1000 })
    expect(caught / faults).toBeGreaterThanOrEqual(0.99)
    expect(wrong).toBe(0)
    expect(longest).toBeLessThanOrEqual(3)
  })
})
