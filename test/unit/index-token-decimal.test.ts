import { describe, expect, it } from 'vitest'
import { dividedBy, plus, times, toDecimal, toText } from '../../workers/providers/index-token/decimal.ts'

describe('decimals', () => {
  it.each([
    ['0', '0'],
    ['1.50', '1.5'],
    ['100', '100'],
    ['0.000000000000000001', '0.000000000000000001'],
    ['9007199254740993', '9007199254740993'],
    ['312345678901234567890.123456789012345678', '312345678901234567890.123456789012345678'],
    ['1.5e-7', '0.00000015'],
    ['1.25e+21', '1250000000000000000000'],
    ['-3.20', '-3.2'],
  ])('toDecimal() parses %s as %s', (text, plain) => {
    expect(toText(toDecimal(text))).toBe(plain)
  })

  it('toDecimal() and toText() preserve every number', () => {
    for (const number of [Number.MAX_VALUE, Number.MIN_VALUE, 0.1 + 0.2, 2 ** 53 + 2, 1e21, 5e-324, 123.456]) {
      expect(Number(toText(toDecimal(String(number))))).toBe(number)
    }
  })

  it('toDecimal() rejects texts that are not numbers', () => {
    for (const text of ['', '1,5', '0x10', 'NaN', 'Infinity', '1.']) expect(() => toDecimal(text)).toThrow(RangeError)
  })

  it('plus() and times() are exact beyond 2^53', () => {
    const big = toDecimal('9007199254740993.000000000000000001')
    expect(toText(plus(big, toDecimal('0.1')))).toBe('9007199254740993.100000000000000001')
    expect(toText(times(big, toDecimal('3')))).toBe('27021597764222979.000000000000000003')
    expect(toText(plus(toDecimal('1.5'), toDecimal('-1.5')))).toBe('0')
  })

  it('dividedBy() truncates after the given decimal places', () => {
    expect(toText(dividedBy(toDecimal('2'), toDecimal('3'), 18))).toBe('0.666666666666666666')
    expect(toText(dividedBy(toDecimal('1'), toDecimal('0.00008'), 2))).toBe('12500')
    expect(toText(dividedBy(toDecimal('123.456'), toDecimal('1000'), 18))).toBe('0.123456')
  })
})
