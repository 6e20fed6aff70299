import { describe, expect, it } from 'vitest'
import { computeRunway, type RunwayDefinition, type RunwayFacts } from '../../api/flows/runway.ts'

const day = (text: string) => Date.parse(`${text}T00:00:00Z`)
const GROSS: RunwayDefinition = { assets: 'withoutOwnToken', burn: 'gross', window: 365 }

/** Figures of kpk's review of the first half of 2025: 115.00 million USD without ENS, 11.73 million spent in 12 months. */
const ENS: RunwayFacts = {
  hasAddresses: true,
  ownSymbols: ['ENS'],
  window: { from: day('2024-07-01'), to: day('2025-07-01'), isComplete: true },
  holdings: {
    at: day('2025-06-30'),
    valueUsd: 1_015_000_000,
    ownTokenUsd: 900_000_000,
    stablecoinUsd: 44_000_000,
    otherUsd: 71_000_000,
    isPartial: false,
  },
  spending: { usd: 11_730_000, transfers: 1_000, withoutPrice: 12 },
  income: { usd: 15_000_000, transfers: 250, withoutPrice: 3 },
}

/** The assets of Decentraland on 2026-04-27, and made-up spending. */
const DECENTRALAND: RunwayFacts = {
  ...ENS,
  ownSymbols: ['MANA'],
  window: { from: day('2026-01-28'), to: day('2026-04-28'), isComplete: true },
  holdings: {
    at: day('2026-04-27'),
    valueUsd: 6_966_869.57,
    ownTokenUsd: 4_732_434.64,
    stablecoinUsd: 96_464.95,
    otherUsd: 2_137_969.98,
    isPartial: false,
  },
  spending: { usd: 90_000, transfers: 20, withoutPrice: 0 },
  income: { usd: 45_000, transfers: 7, withoutPrice: 0 },
}

describe('computeRunway', () => {
  it("reproduces the 9.8 years of kpk's review, with the definition in words", () => {
    const { years, reason, text, assetsUsd, burn } = computeRunway(ENS, GROSS)
    expect(assetsUsd).toBe(115_000_000)
    expect(years).toBeCloseTo(115 / 11.73, 12)
    expect(reason).toBeNull()
    expect(burn).toEqual({
      ...{ inUsd: 15_000_000, outUsd: 11_730_000, netUsd: 3_270_000, perYearUsd: 11_730_000 },
      ...{ transfers: 1_000, transfersWithoutPrice: 12 },
    })
    expect(text).toBe(
      '9.8 years: all assets without ENS ($115.00M on 2025-06-30) divided by gross spending of the 365 days from 2024-07-01 to 2025-06-30 ($11.73M), without swaps, investments and internal transfers.',
    )
  })

  it('has no end with net burn if income exceeds spending', () => {
    const { years, reason, text, burn } = computeRunway(ENS, { ...GROSS, burn: 'net' })
    expect([years, reason]).toEqual([null, 'no_burn'])
    expect(burn).toMatchObject({ perYearUsd: -3_270_000, transfers: 1_250, transfersWithoutPrice: 15 })
    expect(text).toBe(
      'No runway: spending minus income of the 365 days from 2024-07-01 to 2025-06-30 is -$3.27M, so all assets without ENS do not decrease.',
    )
  })

  it.each([
    ['stable', 96_464.95, 96_464.95 / 365_000],
    ['withoutOwnToken', 2_234_434.93, 2_234_434.93 / 365_000],
    ['all', 6_966_869.57, 6_966_869.57 / 365_000],
  ] as const)('counts the assets of the definition %s', (assets, value, expected) => {
    // 90,000 USD in 90 days are 365,000 USD a year.
    const { assetsUsd, years, burn } = computeRunway(DECENTRALAND, { assets, burn: 'gross', window: 90 })
    expect(assetsUsd).toBeCloseTo(value, 6)
    expect(burn.perYearUsd).toBe(365_000)
    expect(years).toBeCloseTo(expected, 9)
  })

  it('subtracts income from spending with net burn', () => {
    const { years, burn, text } = computeRunway(DECENTRALAND, { assets: 'stable', burn: 'net', window: 90 })
    expect(burn).toMatchObject({ netUsd: -45_000, perYearUsd: 182_500, transfers: 27 })
    expect(years).toBeCloseTo(96_464.95 / 182_500, 12)
    expect(text).toBe(
      '0.5 years: stablecoins ($96.46K on 2026-04-27) divided by spending minus income of the 90 days from 2026-01-28 to 2026-04-27 ($45.00K, scaled to 365 days), without swaps, investments and internal transfers.',
    )
  })

  it.each([
    ['no_addresses', { hasAddresses: false, holdings: undefined, window: { ...ENS.window, isComplete: false } }],
    ['incomplete_window', { window: { ...ENS.window, isComplete: false } }],
    ['no_assets', { holdings: undefined }],
    ['no_assets', { holdings: { ...(ENS.holdings as object), stablecoinUsd: null, otherUsd: null } }],
    ['partial_assets', { holdings: { ...(ENS.holdings as object), isPartial: true } }],
    ['unpriced', { spending: { usd: 1, transfers: 1_000, withoutPrice: 51 } }],
    ['unpriced', { spending: { usd: null, transfers: 3, withoutPrice: 3 } }],
    ['no_burn', { spending: { usd: null, transfers: 0, withoutPrice: 0 } }],
  ])('has no years because of %s', (reason, changed) => {
    const runway = computeRunway({ ...ENS, ...changed } as RunwayFacts, GROSS)
    expect([runway.years, runway.reason]).toEqual([null, reason])
    expect(runway.text).toMatch(/^No runway: /)
  })

  it('accepts 5 % of payments without a price', () => {
    const spending = { usd: 11_730_000, transfers: 1_000, withoutPrice: 50 }
    expect(computeRunway({ ...ENS, spending }, GROSS).years).toBeCloseTo(115 / 11.73, 12)
  })

  it('has spending of 0, and not null, without any payment', () => {
    const none = { usd: null, transfers: 0, withoutPrice: 0 }
    expect(computeRunway({ ...ENS, spending: none, income: none }, GROSS).burn).toMatchObject({
      ...{ inUsd: 0, outUsd: 0, netUsd: 0, perYearUsd: 0 },
    })
  })
})
