import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { toId, toKey } from '../../shared/ids.ts'
import { type BasketIndex, findComposition } from '../../shared/registry/index-records.ts'
import { loadRegistry, RegistryError } from '../../shared/registry/registry.ts'
import { toCompositionRanges } from '../../workers/providers/stored/prices.ts'

const SHIPPED = join(import.meta.dirname, '../../shared/registry')
const shipped = loadRegistry()

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'index-'))
  cpSync(SHIPPED, dir, { recursive: true })
})
afterEach(() => rmSync(dir, { recursive: true }))

const record = {
  slug: 'basket',
  name: 'Basket',
  launch: '2022-11-29',
  token: { chain: 'ethereum', contractAddress: `0x${'Ab'.repeat(20)}`, mode: 'eth' },
}
const composition = (validFrom: string, ...elements: (readonly [string, string])[]) => ({
  validFrom,
  elements: elements.map(([token, quantity]) => ({ token, quantity })),
})
const load = (compositions: readonly object[], more: object = {}): BasketIndex => {
  writeFileSync(join(dir, 'index.json'), JSON.stringify({ ...record, compositions, ...more }))
  return loadRegistry(dir).index
}
const mistakesOf = (...input: Parameters<typeof load>): readonly string[] => {
  try {
    load(...input)
  } catch (error) {
    if (error instanceof RegistryError) return error.mistakes
    throw error
  }
  return []
}

describe('included index', () => {
  it('is valid from its launch on, and its tokens have prices while they are held', () => {
    const { index } = shipped
    expect(index.launch).toBe(Date.parse('2022-11-29'))
    for (const [at, { elements }] of index.compositions.entries()) {
      expect(elements.length).toBeGreaterThanOrEqual(10)
      const heldUntil = index.compositions[at + 1]?.validFrom
      const gone = elements.filter(({ token: { live, livePrice, until } }) => {
        return heldUntil === undefined ? !live || !livePrice : until === undefined ? !live : until < heldUntil
      })
      expect(gone.map(({ token }) => token.symbol)).toEqual([])
    }
    expect(findComposition(index, index.launch - 1)).toBeUndefined()
  })

  it('replaces MKR by SKY at the exchange ratio on the day MKR ended', () => {
    const [before, after] = shipped.index.compositions
    const [maker] = before?.elements.filter(({ token }) => token.symbol === 'MKR') ?? []
    const [sky] = after?.elements.filter(({ token }) => token.symbol === 'SKY') ?? []
    expect(after?.validFrom).toBe(maker?.token.until)
    expect(Number(sky?.quantity)).toBeCloseTo(24_000 * Number(maker?.quantity), 9)
    const rest = (composition: typeof before) =>
      composition?.elements.flatMap(({ token, quantity }) =>
        token.dao === 'makerdao' ? [] : [`${token.symbol} ${quantity}`],
      )
    expect(rest(after)).toEqual(rest(before))
  })

  it('has the format of the rebalance command', () => {
    const text = readFileSync(join(SHIPPED, 'index.json'), 'utf8')
    expect(`${JSON.stringify(JSON.parse(text), null, 2)}\n`).toBe(text)
  })
})

describe('composition', () => {
  const first = composition('2022-11-29', ['UNI', '1.5'], ['AAVE', '2'])

  it('has an id derived only from its content', () => {
    const [one] = load([first]).compositions
    const [uni, aave] = ['UNI', 'AAVE'].map((symbol) => shipped.tokens.find((token) => token.symbol === symbol))
    const members = [`${uni?.id} 1.5`, `${aave?.id} 2`].sort()
    expect(one?.id).toBe(toId('composition', '2022-11-29T00:00:00.000Z', ...members))
    const same = composition('2022-11-29T00:00:00Z', ['AAVE', '2.00'], [`ethereum/${uni?.contractAddress}`, '1.50'])
    expect(load([same]).compositions[0]?.id).toBe(one?.id)
    for (const second of [
      composition('2022-11-28', ['UNI', '1.5'], ['AAVE', '2']),
      composition('2022-11-29', ['UNI', '1.51'], ['AAVE', '2']),
      composition('2022-11-29', ['UNI', '1.5']),
    ]) {
      expect(load([second]).compositions[0]?.id).not.toBe(one?.id)
    }
  })

  it('is valid from its time until the next one', () => {
    const index = load([
      first,
      composition('2024-01-01T00:02:00Z', ['UNI', '1']),
      composition('2025-01-01', ['UNI', '2']),
    ])
    const ids = index.compositions.map(({ id }) => id)
    const inForce = (time: string) => ids.indexOf(findComposition(index, Date.parse(time))?.id ?? '')
    expect(inForce('2022-11-28T23:59:59Z')).toBe(-1)
    expect(inForce('2022-11-29')).toBe(0)
    expect(inForce('2024-01-01T00:01:59.999Z')).toBe(0)
    expect(inForce('2024-01-01T00:02:00Z')).toBe(1)
    expect(inForce('2026-01-01')).toBe(2)
    const range = { from: Date.parse('2022-11-01'), to: Date.parse('2024-01-01T00:11:00Z') }
    expect(toCompositionRanges(index, range).map(({ from, to }) => [new Date(from), new Date(to)])).toEqual([
      [new Date('2022-11-29'), new Date('2024-01-01T00:05:00Z')],
      [new Date('2024-01-01T00:05:00Z'), new Date('2024-01-01T00:15:00Z')],
    ])
  })

  it('may contain a token that ended later', () => {
    expect(load([composition('2022-11-29', ['ANT', '1'])]).compositions[0]?.elements[0]?.token.live).toBe(false)
  })
})

describe('loadRegistry with an index', () => {
  const good = composition('2022-11-29', ['UNI', '1'])

  it('derives id and key, and lower-cases the address', () => {
    const index = load([good])
    expect(index).toMatchObject({ id: toId('index', 'basket'), key: toKey(toId('index', 'basket')) })
    expect(index.token.contractAddress).toBe(`0x${'ab'.repeat(20)}`)
  })

  it.each([
    ['compositions[0].elements[0].token: NOPE is not in tokens.json', [composition('2022-11-29', ['NOPE', '1'])]],
    ['compositions[0].elements[1].token: UNI is listed twice', [composition('2022-11-29', ['UNI', '1'], ['UNI', '2'])]],
    ['compositions[0].elements[0].quantity: must be more than 0', [composition('2022-11-29', ['UNI', '0'])]],
    [
      'compositions[0].elements[0].quantity: must be a decimal number, written as a text',
      [composition('2022-11-29', ['UNI', '1e3'])],
    ],
    ['compositions[0].validFrom: 2022-11-30 is after the launch', [composition('2022-11-30', ['UNI', '1'])]],
    ['compositions[1].validFrom: 2022-11-29 is not after the one before', [good, good]],
    ['compositions[0].validFrom: must be an ISO date or date-time in UTC', [composition('29.11.2022', ['UNI', '1'])]],
    ['compositions: must have at least one', []],
  ])('rejects: %s', (mistake, compositions) => {
    expect(mistakesOf(compositions)).toEqual([`index.json: ${mistake}`])
  })

  it('reports all errors of the token and the compositions in one exception', () => {
    const token = { chain: 'moon', contractAddress: 'x', mode: 'eth' }
    const compositions = [composition('2022-12-01', ['NOPE', '1']), composition('2022-12-01', ['ALSO', '1'])]
    expect(mistakesOf(compositions, { token })).toHaveLength(5)
    const wrongAddress = { ...record.token, contractAddress: '0x12' }
    expect(mistakesOf([good], { token: wrongAddress })).toEqual([
      'index.json: token: contractAddress: 0x12 is not 0x and 40 hex digits',
    ])
    rmSync(join(dir, 'index.json'))
    expect(() => loadRegistry(dir)).toThrow('index.json: missing')
  })
})
