import { describe, expect, it } from 'vitest'
import { toShortDuration, toTable } from '../../workers/terminal/text-table.ts'

describe('toTable', () => {
  it('aligns columns without trailing spaces', () => {
    expect(toTable(['a', 'long title'], [['wide cell', 'x']])).toBe('a          long title\nwide cell  x')
  })
})

describe('toShortDuration', () => {
  it.each([
    [0, '0s'],
    [0.4, '0s'],
    [59, '59s'],
    [60, '1m'],
    [3_720, '1h 2m'],
    [90_061, '1d 1h'],
  ])('converts %d seconds to %s', (seconds, text) => expect(toShortDuration(seconds)).toBe(text))
})
