import { describe, expect, it } from 'vitest'
import { findMovement, toAmounts } from '../../workers/alerts/conditions/treasuries.ts'

type Day = Parameters<typeof toAmounts>[0]
type Asset = Day['unread'][number]

const usdc: Asset = { chain: 'ethereum', contract: '0xa0b8', symbol: 'USDC' }
const uni: Asset = { chain: 'ethereum', contract: '0x1f98', symbol: 'UNI' }
const fake: Asset = { chain: 'ethereum', contract: '0xbad0', symbol: 'USDC' }
const of = (asset: Asset, quantity: number, valueUsd: number | null = quantity) => ({ ...asset, quantity, valueUsd })
const day = (held: Day['held'], more: Partial<Day> = {}): Day => ({
  ...{ at: 0, held, unread: [], spam: [], isTotals: false },
  ...more,
})

/** The movements of each day after the first. */
function moves(days: readonly Day[], direction: 'in' | 'out' | 'any' = 'any') {
  let before = toAmounts(days[0] ?? day([]))
  return days.slice(1).map((one) => {
    const after = toAmounts(one, before)
    const found = findMovement(before, after, direction)
    before = after
    return found === null ? null : [found.symbol, found.quantity, found.usd]
  })
}

describe('findMovement', () => {
  it('counts quantities at the price of the later day, not changes of prices', () => {
    expect(moves([day([of(uni, 100, 1_000)]), day([of(uni, 100, 9_000)])])).toEqual([null])
    expect(moves([day([of(uni, 100, 1_000)]), day([of(uni, 40, 800)])])).toEqual([['UNI', -60, -1_200]])
  })

  it('finds the largest movement of a direction', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ chain: 'base', contract: `0x${name}`, symbol: name }))
    if (a === undefined || b === undefined || c === undefined) throw new Error('unreachable')
    const [before, after] = [day([of(a, 10), of(b, 10)]), day([of(a, 15), of(b, 1), of(c, 3)])]
    expect(moves([before, after])).toEqual([['b', -9, -9]])
    expect(moves([before, after], 'in')).toEqual([['a', 5, 5]])
    expect(moves([after, before], 'out')).toEqual([['a', -5, -5]])
  })

  it('uses the old price of an asset that is gone, and omits assets without a price', () => {
    expect(moves([day([of(uni, 10, 20)]), day([])], 'out')).toEqual([['UNI', -10, -20]])
    expect(moves([day([of(uni, 10, null)]), day([of(uni, 1, null)])])).toEqual([null])
  })

  it('does not value a token of another contract at the price of the real one', () => {
    const real = of(usdc, 5_000_000)
    const counterfeit = of(fake, 9e8, null)
    const spam = [{ chain: fake.chain, contract: '0xbad0' }]
    expect(moves([day([real]), day([real, counterfeit]), day([real], { spam })])).toEqual([null, null])
    expect(moves([day([real]), day([counterfeit])])).toEqual([['USDC', -5_000_000, -5_000_000]])
    expect(moves([day([real]), day([real, of({ ...usdc, chain: 'base' }, 9e8, null)])])).toEqual([null])
  })

  it('does not report a token with a price as spent when the source marks it as spam', () => {
    const spam = [{ chain: fake.chain, contract: '0xbad0' }]
    const listed = day([of(usdc, 1), of(fake, 9e8)])
    const marked = day([of(usdc, 1)], { spam })
    expect(moves([listed, marked, listed])).toEqual([null, null])
    expect(moves([marked, listed])).toEqual([null])
  })

  it('reports neither spent nor received around a day without a readable quantity', () => {
    const full = day([of(uni, 1, 3_000_000), of(usdc, 5_000_000)])
    const partial = day([of(uni, 1, 3_000_000)], { unread: [usdc] })
    expect(moves([full, partial, full])).toEqual([null, null])
    expect(moves([partial, full])).toEqual([null])
    expect(moves([full, partial, partial, full])).toEqual([null, null, null])
  })

  it('reports a movement over the unread day when the asset is read again', () => {
    const spent = day([of(uni, 1, 3_000_000), of(usdc, 1_000_000)])
    const partial = day([of(uni, 1, 3_000_000)], { unread: [usdc] })
    expect(moves([day([of(uni, 1, 3_000_000), of(usdc, 5_000_000)]), partial, spent])).toEqual([
      null,
      ['USDC', -4_000_000, -4_000_000],
    ])
  })

  it('compares no asset of a chain with an unreadable part that has no name', () => {
    const unnamed = { chain: 'ethereum', contract: null, symbol: '' }
    const full = day([of(usdc, 5), of(uni, 7)])
    expect(moves([full, day([of(usdc, 5)], { unread: [unnamed] }), full])).toEqual([null, null])
    expect(moves([day([of(usdc, 5)], { unread: [unnamed] }), full])).toEqual([null])
    const other = { ...uni, chain: 'base' }
    const [before, after] = [day([of(usdc, 5), of(other, 2)]), day([of(other, 9)], { unread: [unnamed] })]
    expect(moves([before, after])).toEqual([['UNI', 7, 7]])
  })

  it('does not compare totals per symbol if two tokens have the symbol, nor totals with holdings', () => {
    const total = { chain: '', contract: null, symbol: 'USDC' }
    const totals = (...held: Day['held']) => day(held, { isTotals: true })
    expect(moves([totals(of(total, 5)), totals(of(total, 3))])).toEqual([['USDC', -2, -2]])
    expect(moves([totals(of(total, 5)), totals(of(total, 5), of(total, 9e8, null))])).toEqual([null])
    expect(moves([totals(of(total, 5)), day([of(usdc, 3)])])).toEqual([null])
  })
})
