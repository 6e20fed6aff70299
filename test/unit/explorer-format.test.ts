import { describe, expect, it } from 'vitest'
import {
  describeChoice,
  readTimes,
  toAgo,
  toDay,
  toDistinct,
  toFullNumber,
  toMark,
  toText,
  toUntil,
} from '../../web/format.ts'
import { compareAssets, sumByAsset } from '../../web/pages/treasury-assets.ts'
import {
  type Drawing,
  describeDrawing,
  describePoint,
  endWith,
  eventsIn,
  describe as inWords,
} from '../../web/parts/drawing.ts'

const START = Date.parse('2024-03-10') / 1000
const toLine = (values: readonly (number | null)[]): Drawing => ({
  ...{ kind: 'line', as: 'usd', times: values.map((_, at) => START + at * 3600) },
  lines: [{ name: 'price', values }],
})

describe('events of a chart', () => {
  const hour = (at: number) => START + at * 3600
  const drawing = {
    ...toLine([1, 2, null]),
    events: [-1, 0, 1.5, 2, 2.9, 3].map((at) => ({ time: hour(at), text: `event ${at}` })),
  }

  it('eventsIn() returns the events from the first point until one step after the last', () => {
    expect(eventsIn(drawing).map(({ text }) => text)).toEqual(['event 0', 'event 1.5', 'event 2', 'event 2.9'])
    expect(eventsIn({ ...drawing, times: [] })).toEqual([])
  })

  it('eventsIn() returns ranges that overlap, and no change of the whole range', () => {
    const toRange = (from: number, to: number, mark: 'gap' | 'change') => ({
      ...{ time: hour(from), until: hour(to), mark, text: `${mark} ${from}-${to}` },
    })
    const ranges = [
      ...[toRange(-2, 0, 'gap'), toRange(-2, 0.5, 'gap'), toRange(-1, 9, 'gap'), toRange(3, 4, 'gap')],
      ...[toRange(0, 2, 'change'), toRange(-1, 9, 'change'), toRange(1, 2, 'change')],
    ]
    const marked = { ...toLine([1, null, 3]), events: ranges }
    expect(eventsIn(marked).map(({ text }) => text)).toEqual(['gap -2-0.5', 'gap -1-9', 'change 1-2'])
    expect(describePoint(marked, 0)).toBe('10 Mar 2024, 00:00 UTC: price $1.00. gap -2-0.5. gap -1-9')
    expect(describePoint(marked, 1)).toBe('10 Mar 2024, 01:00 UTC: price not known. gap -1-9. change 1-2')
    expect(describePoint(marked, 2)).toBe('10 Mar 2024, 02:00 UTC: price $3.00. gap -1-9')
  })

  it('describePoint() adds the events until the next point', () => {
    expect([0, 1, 2].map((at) => describePoint(drawing, at))).toEqual([
      '10 Mar 2024, 00:00 UTC: price $1.00. event 0',
      '10 Mar 2024, 01:00 UTC: price $2.00. event 1.5',
      '10 Mar 2024, 02:00 UTC: price not known. event 2. event 2.9',
    ])
  })
})

describe('number formats', () => {
  it.each([
    ['usd', 1.23, 0.002, ['$1.230', '$1.232', '$1.234']],
    ['usd', 15, 2.5, ['$15.00', '$17.50', '$20.00']],
    ['usd', 0.25, 0.25, ['$0.25', '$0.50', '$0.75']],
    ['usd', 0.000012, 0.000002, ['$0.000012', '$0.000014', '$0.000016']],
    ['usd', 1_230_000_000, 500_000, ['$1.2300B', '$1.2305B', '$1.2310B']],
    ['usd', 0, 2_000_000, ['$0', '$2M', '$4M']],
    ['usd', 9_500, 500, ['$9,500', '$10.0K', '$10.5K']],
    ['count', 99_800, 100, ['99.8K', '99.9K', '100.0K']],
    ['amount', 100, 0.05, ['100.00', '100.05', '100.10']],
    ['share', 0.5, 0.0005, ['50.00 %', '50.05 %', '50.10 %']],
  ] as const)('toMark() writes distinct axis labels in %s from %d in steps of %d', (kind, first, step, expected) => {
    expect([0, 1, 2].map((at) => toMark(first + at * step, kind, step))).toEqual(expected)
  })

  it('toText() writes 100.00 % only for exactly 1', () => {
    expect([1, 0.999999, 0.99994, 0.29, 0].map((share) => toText(share, 'share'))).toEqual([
      '100.00 %',
      '99.99 %',
      '99.99 %',
      '29.00 %',
      '0.00 %',
    ])
  })

  it.each([
    ['share', 0.00004, '<0.01 %'],
    ['share', 0.00005, '0.01 %'],
    ['percent', 0.004, '<0.01 %'],
    ['percent', 0, '0.00 %'],
    ['change', 0.001, '<+0.01 %'],
    ['change', -0.001, '>-0.01 %'],
    ['change', -0.01, '-0.01 %'],
    ['change', 0, '0.00 %'],
  ] as const)('toText() does not round a small %s to zero: %d', (kind, value, expected) => {
    expect(toText(value, kind)).toBe(expected)
  })

  it('toText() writes signs and units of changes', () => {
    expect([1.5, -0.25, 0, 0.001].map((value) => toText(value, 'points'))).toEqual([
      '+1.50 pp',
      '-0.25 pp',
      '0.00 pp',
      '<+0.01 pp',
    ])
    expect([1500, -2e6, 0].map((value) => toText(value, 'usdChange'))).toEqual(['+$1,500.00', '-$2.00M', '$0'])
    expect(toFullNumber(1.5, 'points')).toBe('1.5 percentage points')
  })

  it('toText() aligns large numbers and omits cents of ten thousand dollars', () => {
    expect([9_999.5, 10_000.4, 2e6, 7e9].map((value) => toText(value, 'usd'))).toEqual([
      '$9,999.50',
      '$10,000',
      '$2.00M',
      '$7.00B',
    ])
    expect([1e9, 25_000].map((value) => toText(value, 'amount'))).toEqual(['1.00B', '25.00K'])
  })

  it('toUntil() and toAgo() write distances in their largest unit', () => {
    const now = Date.UTC(2024, 2, 10)
    const at = (seconds: number) => new Date(now + seconds * 1000)
    expect([7_200, 86_400 * 3, 59].map((seconds) => toUntil(at(seconds), now))).toEqual(['in 2h', 'in 3d', 'in 59s'])
    // A provider's clock may be ahead.
    expect([-120, 5].map((seconds) => toAgo(at(seconds), now))).toEqual(['2m ago', '0s ago'])
    expect(toDay(at(0))).toBe('10 Mar 2024')
  })

  it('toDistinct() does not round a small value to zero', () => {
    expect(toDistinct(0.0003, 'percent', 0.001)).toBe('<0.01 %')
    expect(toDistinct(0.0013, 'percent', 0.0001)).toBe('0.0013 %')
  })

  it('toDistinct() writes no decimals of a whole count', () => {
    expect(toDistinct(1984, 'count', 0.1)).toBe('1,984')
    expect(toDistinct(734_095, 'count', 100)).toBe('734,095')
    expect(toDistinct(12_340_950, 'count', 100)).toBe('12.3410M')
    expect(toDistinct(1.25, 'count', 0.01)).toBe('1.25')
  })

  it('toWhole() writes all digits in the unit', () => {
    expect(toFullNumber(0.9999987, 'share')).toBe('99.99987 %')
    expect(toFullNumber(0.29, 'share')).toBe('29 %')
    expect(toFullNumber(1.23456, 'change')).toBe('1.23456 %')
    expect(toFullNumber(1234.56789, 'usd')).toBe('$1,234.56789')
  })

  it('inWords() and describePoint() use enough digits to distinguish the points of the line', () => {
    const narrow = toLine([1.2301, 1.2345, null, 1.2399])
    expect(inWords('Sample', narrow)).toContain(
      'price: first $1.23010, last $1.23990, lowest $1.23010, highest $1.23990',
    )
    expect(describePoint(narrow, 1)).toContain('price $1.23450')
    // Small values next to large ones and constant lines use the default format.
    const wide = toLine([0.5, 2e9])
    expect([describePoint(wide, 0), describePoint(wide, 1)]).toEqual([
      expect.stringContaining('price $0.500'),
      expect.stringContaining('price $2.00B'),
    ])
    expect(describePoint(toLine([1.5, 1.5]), 0)).toContain('price $1.50')
  })
})

describe('readTimes', () => {
  it.each([
    ['HTTP 503 (since 2024-03-10T12:02:00.000Z)', 'HTTP 503 (since 10 Mar 2024, 12:02 UTC)'],
    ['1inch.eth (since 2026-02-21), cream.eth', '1inch.eth (since 21 Feb 2026), cream.eth'],
    ['2024-03-10T12:02:00Z to 2024-13-40', '10 Mar 2024, 12:02 UTC to 2024-13-40'],
    ['block 12024-03-100', 'block 12024-03-100'],
  ])('writes the times of a text in the form of the page: %s', (text, expected) => {
    expect(readTimes(text)).toBe(expected)
  })
})

describe('endWith', () => {
  const drawing = toLine([1, null])
  const later = (seconds: number) => new Date(((drawing.times.at(-1) ?? 0) + seconds) * 1000).toISOString()

  it('adds a newer observation as the last point', () => {
    const { times, lines } = endWith(drawing, { at: later(90), values: [2] })
    expect(times).toEqual([...drawing.times, (drawing.times.at(-1) ?? 0) + 90])
    expect(lines.map(({ values }) => values)).toEqual([[1, null, 2]])
  })

  it.each([
    ['no observation', undefined],
    ['an unknown time', { at: null, values: [2] }],
    ['the time of the last point', { at: later(0), values: [2] }],
    ['no known value', { at: later(90), values: [null] }],
  ])('returns the drawing unchanged for %s', (_, newest) => {
    expect(endWith(drawing, newest)).toBe(drawing)
  })

  it('returns a drawing without points unchanged', () => {
    const empty = toLine([])
    expect(endWith(empty, { at: later(90), values: [2] })).toBe(empty)
  })
})

describe('describeDrawing', () => {
  const toLines = (kind: Drawing['kind'], ...lines: readonly (readonly (number | null)[])[]): Drawing => ({
    ...toLine(lines[0] ?? []),
    kind,
    lines: lines.map((values, at) => ({ name: 'abcd'[at] ?? '', values })),
  })
  it.each([
    ['line', [[1, 2]], '', '2 points, no gaps.'],
    ['line', [[1]], '', '1 point of data so far.'],
    ['line', [[1, null]], '', '1 of 2 points missing.'],
    [
      'line',
      [
        [1, 2],
        [3, 4],
      ],
      '',
      '2 points, no gaps.',
    ],
    [
      'line',
      [
        [1, null],
        [3, 4],
        [null, null],
      ],
      '',
      'Missing of 2 points: 1 of a, 2 of c.',
    ],
    [
      'candles',
      [
        [1, 2],
        [1, 2],
        [1, 2],
        [1, null],
      ],
      '',
      '1 of 2 points missing.',
    ],
    ['bars', [[1, 2]], '3 of 5 days are absent.', '3 of 5 days are absent.'],
    ['bars', [[1, null]], '3 of 5 days are absent.', '3 of 5 days are absent. 1 of 2 points missing.'],
  ] as const)('states the number of gaps of each line: %s %j %s', (kind, lines, absent, expected) => {
    expect(describeDrawing(toLines(kind, ...lines), absent)).toBe(expected)
  })

  it('inWords() states gaps for screen readers', () => {
    expect(inWords('Sample', toLines('line', [1, null], [3, 4]))).toContain(
      '1 without a value of a, 0 without a value of b',
    )
  })
})

describe('describeChoice', () => {
  const choices = ['For', 'Against', 'Abstain']
  it.each([
    [2, 'Against'],
    [4, 'choice 4'],
    [[1, 3], 'For, Abstain'],
    [{ 1: 3, 2: 1 }, 'For 75.00 %, Against 25.00 %'],
    ['0xabc', 'secret until the vote ends'],
    [null, undefined],
  ])('names the choice %j', (choice, expected) => {
    expect(describeChoice(choice, choices)).toBe(expected)
  })
})

describe('compareAssets', () => {
  const toHolding = (symbol: string, quantity: number, valueUsd: number | null) => ({
    ...{ symbol, token: null, contractAddress: symbol, chain: 'c'.repeat(24), kind: 'other' as const },
    ...{ quantity, valueUsd },
  })
  const now = sumByAsset([toHolding('ETH', 2, 20), toHolding('ETH', 1, 10), toHolding('LP', 5, null)])

  it('adds up the addresses of an asset and shows its change, also of bought and sold assets', () => {
    const before = sumByAsset([toHolding('ETH', 4, 48), toHolding('OLD', 7, 70)])
    expect(compareAssets(now, before)).toMatchObject([
      { symbol: 'ETH', quantity: 3, valueUsd: 30, quantityChange: -1, valueChange: -18 },
      { symbol: 'LP', quantity: 5, valueUsd: null, quantityChange: 5, valueChange: null },
      { symbol: 'OLD', quantity: 0, valueUsd: 0, quantityChange: -7, valueChange: -70 },
    ])
  })

  it('identifies an asset by its contract, not by its symbol', () => {
    const [real, fake] = [toHolding('USDC', 5, 5), { ...toHolding('USDC', 9e8, null), contractAddress: '0xbad' }]
    const renamed = { ...real, symbol: 'USD Coin' }
    expect(compareAssets(sumByAsset([renamed, fake]), sumByAsset([real]))).toMatchObject([
      { symbol: 'USD Coin', quantity: 5, quantityChange: 0, valueChange: 0 },
      { symbol: 'USDC', quantity: 9e8, valueUsd: null, quantityChange: 9e8, valueChange: null },
    ])
  })

  it('has no changes if the earlier day is not comparable', () => {
    for (const asset of compareAssets(now, undefined))
      expect(asset).toMatchObject({ quantityChange: null, valueChange: null })
  })
})
