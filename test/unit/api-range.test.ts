import { describe, expect, it } from 'vitest'
import { isSameAs, toByteRange } from '../../api/http/negotiation.ts'

describe('toByteRange', () => {
  it.each([
    ['bytes=0-0', { start: 0, end: 0 }],
    ['bytes=10-19', { start: 10, end: 19 }],
    ['BYTES = 10 - 19', { start: 10, end: 19 }],
    ['bytes= -8', { start: 92, end: 99 }],
    ['bytes=90-', { start: 90, end: 99 }],
    ['bytes=90-1000', { start: 90, end: 99 }],
    ['bytes=-8', { start: 92, end: 99 }],
    ['bytes=-1000', { start: 0, end: 99 }],
    ['bytes=100-', 'unsatisfiable'],
    ['bytes=100-200', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=-00', 'unsatisfiable'],
    ['bytes=5-4', undefined],
    ['bytes=-', undefined],
    ['bytes=0-1,5-6', undefined],
    ['bytes=a-b', undefined],
    ['items=0-1', undefined],
    ['', undefined],
    [undefined, undefined],
  ] as const)('parses %s of 100 bytes as %j', (header, range) => {
    expect(toByteRange(header, 100)).toEqual(range)
  })

  it('parses a header with 250,000 spaces in linear time', () => {
    const since = performance.now()
    expect(toByteRange(`bytes=${' '.repeat(250_000)}`, 100)).toBeUndefined()
    // A quadratic search takes half a minute.
    expect(performance.now() - since).toBeLessThan(3_000)
  })

  it('is unsatisfiable for an empty body', () => {
    expect(toByteRange('bytes=-5', 0)).toBe('unsatisfiable')
    expect(toByteRange('bytes=0-', 0)).toBe('unsatisfiable')
  })

  it.each([
    [undefined, true],
    ['"abc"', true],
    ['"abd"', false],
    ['W/"abc"', false],
    ['Sun, 22 Nov 2026 14:00:00 GMT', false],
  ])('isSameAs() with If-Range %s returns %s', (header, isSame) => {
    expect(isSameAs(header, '"abc"')).toBe(isSame)
  })
})
