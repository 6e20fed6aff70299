import { describe, expect, it } from 'vitest'
import { GUIDES, OF_REGISTRY, toGuide } from '../../api/pages/guides.ts'
import { toComposition } from '../../shared/registry/index-records.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'

const registry = loadRegistry()
const toText = (of: Registry = registry) => toGuide('index-methodology', 'https://example.org', of)

const tokenOf = (symbol: string) => {
  const token = registry.tokens.find((one) => one.symbol === symbol)
  if (token === undefined) throw new Error(`no ${symbol}`)
  return token
}
const [UNI, AAVE, COMP] = [tokenOf('UNI'), tokenOf('AAVE'), tokenOf('COMP')]

/** A registry whose index has these compositions: tokens with quantities, by day. */
const withCompositions = (days: Readonly<Record<string, readonly (readonly [typeof UNI, string])[]>>): Registry => ({
  ...registry,
  index: {
    ...registry.index,
    compositions: Object.entries(days).map(([day, elements]) =>
      toComposition(
        Date.parse(day),
        elements.map(([token, quantity]) => ({ token, quantity })),
      ),
    ),
  },
})

const CHANGED = withCompositions({
  '2023-01-01': [
    [UNI, '1.5'],
    [AAVE, '2'],
  ],
  '2024-02-01T12:30:00Z': [
    [UNI, '1.25'],
    [COMP, '0.000000000000000001'],
  ],
})

describe('the methodology of the Index', () => {
  it('has the members and exact quantities of the newest composition', () => {
    const text = toText()
    const newest = registry.index.compositions.at(-1)
    expect(newest?.elements.length).toBeGreaterThan(2)
    for (const { token, quantity } of newest?.elements ?? [])
      expect(text).toContain(`| [${token.symbol}](/tokens/${token.id}) | ${token.name} | ${quantity} |`)
    expect(text).toContain(registry.index.token.contractAddress)
    expect(text).toContain('A slot has 5 minutes.')
    expect(text).not.toMatch(/\{\w+\}/)
  })

  it('lists the changes, newest first: what entered, left and has another quantity', () => {
    const text = toText(CHANGED)
    const rows = text.split('\n').filter((line) => /^\| 20\d\d-/.test(line))
    expect(rows).toEqual([
      '| 2024-02-01 12:30 UTC | 2 | COMP | AAVE | 1 |',
      '| 2023-01-01 00:00 UTC | 2 | UNI, AAVE | none | 0 |',
    ])
    expect(text).toContain('2023-01-01 00:00 UTC to now, 2 compositions')
    expect(text).toContain(`| [COMP](/tokens/${COMP.id}) | ${COMP.name} | 0.000000000000000001 |`)
    expect(text).not.toContain(`[AAVE](/tokens/`)
  })

  it('escapes names that mean something in a table or in HTML', () => {
    const token = { ...UNI, name: 'A | <b>name</b>' }
    expect(toText(withCompositions({ '2023-01-01': [[token, '1']] }))).toContain(
      '| A \\| &lt;b&gt;name&lt;/b&gt; | 1 |',
    )
  })

  it('is a guide that is made again with another registry', () => {
    expect(GUIDES.map(({ name }) => name)).toContain('index-methodology')
    expect([...OF_REGISTRY]).toEqual(['/guides/index-methodology', '/guides/index-methodology.md'])
  })
})
