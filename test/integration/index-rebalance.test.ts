import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { addComposition, planRebalance } from '../../shared/registry/rebalance.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { rebalance, toRebalanceText } from '../../workers/commands/rebalance.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'

const SHIPPED = join(import.meta.dirname, '../../shared/registry')
const AT = '2027-01-01T00:00:00Z'

let database: TestDatabase
let dir: string
beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
  const { tokens } = loadRegistry()
  const keys = tokens.filter(({ symbol }) => symbol !== 'ENS').map(({ key }) => key)
  await storeMarket(database.db, { keys, until: Date.parse('2024-05-06T07:05:00Z'), points: 2, stepMs: 300_000 })
})
afterAll(() => database.drop())
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'rebalance-'))
  cpSync(SHIPPED, dir, { recursive: true })
})
afterEach(() => rmSync(dir, { recursive: true }))

const read = () => readFileSync(join(dir, 'index.json'), 'utf8')
const run = (proposed: unknown, more: { at?: string; dryRun?: boolean } = {}) =>
  rebalance({ proposed, at: more.at ?? AT, dryRun: more.dryRun ?? false }, database.db, dir)
const uni = { token: 'UNI', quantity: '3.50' }
const aave = { token: 'ethereum/0x7Fc66500c84A76Ad7e9C93437bFc5Ac33E2DDaE9', quantity: '0.2' }

describe('rebalance of the index', () => {
  it('adds a composition and keeps the earlier ones', async () => {
    const before = loadRegistry(dir).index.compositions
    const report = await run([uni, aave])
    const after = loadRegistry(dir).index.compositions
    expect(after.slice(0, -1)).toEqual(before)
    const newest = after.at(-1)
    expect(newest?.elements.map(({ token, quantity }) => [token.symbol, quantity])).toEqual([
      ['UNI', '3.5'],
      ['AAVE', '0.2'],
    ])
    expect(newest?.validFrom).toBe(Date.parse(AT))
    expect(report).toMatchObject({ composition: newest?.id, isChange: true })
    expect(readdirSync(dir).sort()).toEqual(readdirSync(SHIPPED).sort())
  })

  it('changes nothing when it is repeated, in any order and at any time', async () => {
    const { composition } = await run([uni, aave])
    const before = read()
    expect(await run([uni, aave])).toMatchObject({ isChange: false, composition })
    expect(await run([aave, { ...uni, quantity: '3.5' }], { at: '2025-01-01' })).toMatchObject({ isChange: false })
    expect(read()).toBe(before)
  })

  it('prints weights and values, and writes nothing, on a dry run', async () => {
    const before = read()
    const report = await run([uni, aave], { dryRun: true })
    expect(read()).toBe(before)
    const members = new Map(report.members.map((member) => [member.symbol, member]))
    const priceOf = (symbol: string) => members.get(symbol)?.priceUsd ?? Number.NaN
    const valueAfter = report.valueUsdAfter ?? Number.NaN
    expect(valueAfter).toBeCloseTo(3.5 * priceOf('UNI') + 0.2 * priceOf('AAVE'), 9)
    expect(members.get('UNI')?.weightAfter).toBeCloseTo((3.5 * priceOf('UNI')) / valueAfter, 12)
    const { elements } = loadRegistry(dir).index.compositions.at(-1) ?? { elements: [] }
    const value = elements.reduce((sum, { token, quantity }) => sum + Number(quantity) * priceOf(token.symbol), 0)
    expect(report.valueUsdBefore).toBeCloseTo(value, 9)
    expect(members.get('YFI')).toMatchObject({ quantityAfter: '0', weightAfter: 0 })
    for (const weight of ['weightBefore', 'weightAfter'] as const) {
      expect(report.members.reduce((sum, member) => sum + (member[weight] ?? Number.NaN), 0)).toBeCloseTo(1, 12)
    }
  })

  it('reports null for a removed member without a price', async () => {
    addComposition(dir, { validFrom: '2026-01-01T00:00:00Z', elements: [uni, { token: 'ENS', quantity: '2' }] })
    const report = await run([uni, aave], { dryRun: true })
    expect(report).toMatchObject({ valueUsdBefore: null, valueUsdAfter: expect.any(Number) })
    const members = new Map(report.members.map((member) => [member.symbol, member]))
    expect(members.get('ENS')).toMatchObject({ priceUsd: null, weightBefore: null, weightAfter: 0 })
    expect(members.get('UNI')).toMatchObject({
      ...{ priceUsd: expect.any(Number), weightBefore: null, weightAfter: expect.any(Number) },
    })
    expect(members.get('AAVE')).toMatchObject({ weightBefore: 0, weightAfter: expect.any(Number) })
    const lines = toRebalanceText(report, true, Date.parse(AT)).split('\n')
    expect(lines.find((line) => line.includes('ENS'))).toMatch(/2 -> 0 +not known -> +0\.00 %$/)
    expect(lines.at(-2)).toBe(`value at the newest stored prices: not known -> ${report.valueUsdAfter?.toFixed(4)} USD`)
  })

  it.each([
    ['a token that is not known', [{ token: 'NOPE', quantity: '1' }], AT, /NOPE is not in tokens.json/],
    ['a token twice', [aave, { token: 'AAVE', quantity: '1' }], AT, /elements\[1\].*AAVE is listed twice/],
    ['a dead token', [uni, { token: 'ANT', quantity: '1' }], AT, /ANT: is not live/],
    ['a token without a stored price', [uni, { token: 'ENS', quantity: '1' }], AT, /ENS: no price is stored/],
    ['a quantity of nothing', [{ token: 'UNI', quantity: '0.0' }], AT, /quantity: must be more than 0/],
    ['a quantity below nothing', [{ token: 'UNI', quantity: '-1' }], AT, /quantity: must be a decimal number/],
    ['a quantity as a number', [{ token: 'UNI', quantity: 1 }], AT, /quantity/],
    ['nothing at all', [], AT, /at least one element/],
    ['no list', { UNI: 1 }, AT, /^the proposal: .*expected array/],
    ['a time that is none', [uni], 'tomorrow', /--at tomorrow: must be an ISO date/],
    ['the time of the newest composition', [uni], '2025-05-19', /--at 2025-05-19 is not after the newest/],
    ['a time before it', [uni], '2025-05-18T23:59:59Z', /is not after the newest/],
  ])('is rejected with %s', async (_, proposed, at, reason) => {
    const before = read()
    await expect(run(proposed, { at })).rejects.toMatchObject({
      code: 'payload',
      message: expect.stringMatching(reason),
    })
    expect(read()).toBe(before)
  })

  it('rejects concurrent changes, so that none is lost', async () => {
    const before = read()
    writeFileSync(join(dir, 'index.json.new'), '')
    await expect(run([uni])).rejects.toThrow(/index\.json\.new exists: another process is changing the file/)
    expect(read()).toBe(before)
    rmSync(join(dir, 'index.json.new'))
    // Another rebalance was planned from the same file, and is written first.
    const planned = planRebalance([uni], AT, loadRegistry(dir))
    await run([aave])
    const after = read()
    expect(() => addComposition(dir, planned.record)).toThrow(
      /a composition from 2027-01-01T00:00:00.000Z on was added/,
    )
    expect([read(), readdirSync(dir).sort()]).toEqual([after, readdirSync(SHIPPED).sort()])
  })

  it('names all mistakes in one message', async () => {
    const bad = [
      { token: 'NOPE', quantity: '1' },
      { token: 'ANT', quantity: '1' },
    ]
    await expect(run(bad, { at: 'never' })).rejects.toThrow(/never.*NOPE.*ANT/s)
  })
})
