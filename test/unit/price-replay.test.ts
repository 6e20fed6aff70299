import { describe, expect, it } from 'vitest'
import { SEED } from '../support/cases.ts'
import { CANDLES, describeReplay, hasCandles, readCloses, replay } from '../support/price-replay.ts'

if (!hasCandles) console.log(`price rule on real candles: skipped, there is no ${CANDLES}`)

/** A week with the largest fall of the file, 5 August 2024. */
const [FROM, TO] = [Date.parse('2024-08-02'), Date.parse('2024-08-09')]

describe.skipIf(!hasCandles)('price rule on a week of real 5-minute candles', () => {
  it('withholds none of the real prices', () => {
    const closes = readCloses(FROM, TO)
    const result = replay(closes, { seed: SEED })
    console.log(describeReplay('a week', result, closes.size))
    expect(result.withheld).toBeLessThanOrEqual(1)
    expect(result.longest).toBeLessThanOrEqual(3)
  })

  it('stores no wrong price of seeded faults', () => {
    const closes = readCloses(FROM, TO)
    const result = replay(closes, { seed: SEED, faults: 1 / 200 })
    console.log(describeReplay('a week with faults', result, closes.size))
    expect(result.faults).toBeGreaterThan(20)
    expect(result.caught / result.faults).toBeGreaterThanOrEqual(0.99)
    expect(result.wrong).toBe(0)
    expect(result.longest).toBeLessThanOrEqual(3)
  })
})
