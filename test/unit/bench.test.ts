import { describe, expect, it } from 'vitest'
import { atMost, type BenchRow } from '../bench/define-benchmark.ts'
import { compare, toMedian } from '../bench/measure.ts'
import { isMet, toMarkdownTable, toNumberText, toPage, toReport, toSection } from '../bench/report.ts'

describe('toMedian', () => {
  it.each([
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[7], 7],
    [[10, 9, 100], 10],
  ])('returns for %j the median %d', (values, median) => expect(toMedian(values)).toBe(median))
})

describe('compare', () => {
  const side = (name: string, figures: number[], order: string[] = []) => ({
    name,
    measure: async () => {
      order.push(name)
      return figures.shift() ?? Number.NaN
    },
  })

  it('returns the median of the ratios per round, without the first round', async () => {
    const a = side('a', [99, 2, 20, 30])
    const b = side('b', [1, 1, 10, 10])
    const row = await compare({ what: 'x', unit: 'ms', a, b, rounds: 3 })
    expect(row).toMatchObject({ ratio: 2, spread: [2, 3], rounds: 3, a: { value: 20 }, b: { value: 10 } })
  })

  it('measures both sides in every round and alternates their order', async () => {
    const order: string[] = []
    await compare({
      what: 'x',
      unit: 'ms',
      a: side('a', [1, 1, 1, 1], order),
      b: side('b', [1, 1, 1, 1], order),
      rounds: 3,
    })
    expect(order.slice(2).join('')).toBe('abbaab')
  })

  it('throws for an even number of rounds', async () => {
    await expect(compare({ what: 'x', unit: 'ms', a: side('a', []), b: side('b', []), rounds: 4 })).rejects.toThrow(
      RangeError,
    )
  })
})

describe('benchmark page', () => {
  const row: BenchRow = {
    what: 'bytes | points',
    a: { name: 'ours', value: 7, unit: 'B' },
    b: { name: 'default', value: 10, unit: 'B' },
    ratio: 0.7,
    target: atMost(0.7),
  }

  it('isMet() checks the ratio of a row, or its value without a ratio', () => {
    expect(isMet(row)).toBe(true)
    expect(isMet({ ...row, ratio: 0.71 })).toBe(false)
    expect(isMet({ what: 'x', a: { name: '', value: 3, unit: 'rows' }, target: atMost(0, '') })).toBe(false)
    expect(isMet({ what: 'x', a: row.a })).toBeUndefined()
  })

  it('toMarkdownTable() aligns columns and escapes bars', () => {
    expect(toMarkdownTable(['a', 'b'], [['1|2', 'x']])).toBe('| a    | b   |\n| ---- | --- |\n| 1\\|2 | x   |')
  })

  it('toSection() states whether a target is met, and the reason if not', () => {
    const machine = 'a machine'
    const text = toSection(
      { name: 's', about: 'About.' },
      {
        rows: [
          { ...row, reason: 'noise' },
          { ...row, ratio: 0.9, reason: 'noise' },
        ],
      },
      machine,
    )
    expect(text).toContain('| 0.70x |')
    expect(text).toMatch(/\| met +\|/)
    expect(text).toContain('not met: noise')
    expect(text).not.toContain('| met: noise')
    expect(text).toContain('Measured on a machine.')
  })

  it('toReport() has the tables and notes that the page does not have', () => {
    const tables = [{ title: 'Memory', head: ['what'], body: [['API']] }]
    const found = { rows: [row], tables, notes: ['A note.'] }
    const [section, report] = [toSection, toReport].map((write) => write({ name: 's', about: 'About.' }, found, 'm'))
    expect(section).not.toMatch(/Memory|A note/)
    expect(report).toMatch(/^## s\n\nAbout\.\n\n\| what .*\n\nMemory:\n\n.*\n\n- A note\.\n\nMeasured on m\.$/s)
  })

  it('toPage() replaces measured sections and keeps the introduction and other listed sections', () => {
    const first = toPage(
      '# Title\n\nWords.',
      new Map([
        ['b', '## b\n\nold'],
        ['a', '## a'],
      ]),
      ['a', 'b'],
    )
    const second = toPage(first, new Map([['b', '## b\n\nnew']]), ['a', 'b'])
    expect(second).toBe('# Title\n\nWords.\n\n<!-- benchmark: a -->\n\n## a\n\n<!-- benchmark: b -->\n\n## b\n\nnew\n')
    expect(toPage(second, new Map(), ['b'])).not.toContain('## a')
  })

  it.each([
    [1234567, '1,234,567'],
    [12.345, '12.3'],
    [0.012345, '0.0123'],
    [0, '0'],
  ])('toNumberText() writes %d as %s', (value, text) => expect(toNumberText(value)).toBe(text))
})
