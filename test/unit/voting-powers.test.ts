import { describe, expect, it } from 'vitest'
import { toPower } from '../../api/governance/person.ts'

describe('toPower', () => {
  // The numbers are those of ClickHouse's `toFloat64` of a `Decimal(76, 18)`.
  it.each([
    ['0', 0],
    ['1', 1e-18],
    ['700000000000000000', 0.7],
    ['2319292042733988741068', 2319.292042733989],
    ['185771462193289805822', 185.77146219328984],
    ['463396774287670742087879450268623855', 463396774287670700],
  ])('converts %s units as ClickHouse does', (units, power) => {
    expect(toPower(BigInt(units))).toBe(power)
  })
})
