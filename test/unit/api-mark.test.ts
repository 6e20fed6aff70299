import { describe, expect, it } from 'vitest'
import { toInitials, toMark } from '../../api/svg/mark.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'

const ID = '893ec80ae8dcc44e6c2a0b49'

describe('toMark', () => {
  it('draws letters on a colour that depends only on the id', () => {
    const svg = toMark(ID, 'Uniswap', 'UN')
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^>]*aria-label="Uniswap">/)
    expect(svg).toContain('>UN</text>')
    expect(svg).not.toMatch(/<script|href|@font-face/)
    const colourOf = (text: string) => /<circle [^>]*fill="(#[0-9a-f]{6})"/.exec(text)?.[1]
    expect(colourOf(toMark(ID, 'Other', 'OT'))).toBe(colourOf(svg))
    const { daos } = loadRegistry()
    expect(new Set(daos.map(({ id }) => colourOf(toMark(id, 'X', 'X')))).size).toBe(12)
  })

  it.each([
    ['Index Coop', 'IC'],
    ['Aave', 'AA'],
    ['0x', '0X'],
    ['ether.fi', 'EF'],
    ['Friends With Benefits', 'FW'],
  ])('toInitials() maps %s to %s', (name, letters) => expect(toInitials(name)).toBe(letters))

  it('shows at most four letters and escapes the name', () => {
    expect(toMark(ID, 'A "B" <c> & d', '<MORPHO')).toContain('aria-label="A &quot;B&quot; &lt;c&gt; &amp; d"')
    expect(toMark(ID, 'x', '<MORPHO')).toContain('>&lt;MOR</text>')
  })

  it('toInitials() returns letters for every DAO of the registry', () => {
    for (const { name } of loadRegistry().daos) expect(toInitials(name)).toMatch(/^[\p{Lu}\p{N}]{1,2}$/u)
  })
})
