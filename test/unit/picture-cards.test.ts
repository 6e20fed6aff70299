import { describe, expect, it } from 'vitest'
import { drawDao, drawIndex, drawToken } from '../../api/pages/picture-cards.ts'

const SHOWN = { id: 'a00a15074c647764fac27d6c', name: 'A <name>', isDemo: false }
const textsOf = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text)

describe('the picture of a link', () => {
  it('has the price of a token and its chart', () => {
    const quote = { price: 0.0123456, percentChange24h: -2.345 }
    const svg = drawToken({ ...SHOWN, symbol: 'AN', quote, chart: '<path/>' })
    expect(textsOf(svg)).toEqual(['AN', 'A &lt;name&gt;', 'AN, price', '$0.01235', '-2.35 % in 24 hours', 'dao-data'])
    expect(svg).toContain('<path/>')
  })

  it('has the value of a treasury and says that a demo is simulated', () => {
    const svg = drawDao({ ...SHOWN, treasury: { valueUsd: 554_899_016, percentChange30d: null }, isDemo: true })
    expect(textsOf(svg)).toContain('$554.90M')
    expect(textsOf(svg).at(-1)).toBe('DEMO – all numbers are simulated')
  })

  it('has the value of the Index and its change since a day', () => {
    const [newest, first] = [110, 100].map((valueUsd) => ({ valueUsd, createdAt: '2026-05-06T00:00:00.000Z' }))
    expect(textsOf(drawIndex({ newest, first, isDemo: false }))).toEqual(
      expect.arrayContaining(['$110.00', '+10.00 % since 2026-05-06']),
    )
  })

  it('has no number if it is unknown', () => {
    const unknown = [
      drawToken({ ...SHOWN, symbol: 'AN', quote: { price: null, percentChange24h: 1 }, chart: '' }),
      drawDao({ ...SHOWN, treasury: undefined }),
      drawIndex({ newest: undefined, first: undefined, isDemo: false }),
    ]
    expect(unknown.flatMap(textsOf).filter((text) => /\d|\$|%/.test(text ?? ''))).toEqual([])
  })
})
