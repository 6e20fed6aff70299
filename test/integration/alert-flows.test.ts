import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TreasuryFlowRow } from '../../shared/datasets/treasury-flows.ts'
import { evaluateFlows } from '../../workers/alerts/conditions/flows.ts'
import { parseRules } from '../../workers/alerts/rules-file.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { loadFewDaos } from '../support/few-daos.ts'
import { toFlow, toFlowAddress } from '../support/stored-flows.ts'

const NOW = Date.UTC(2026, 5, 6, 7)
const registry = loadFewDaos()
const dao = registry.daoBySlug.get('uniswap') ?? expect.fail('no Uniswap')
const [wallet, alice, bob] = ['wallet', 'alice', 'bob'].map(toFlowAddress) as [string, string, string]
let database: TestDatabase

/** A transfer of whole ETH, at 2,000 USD. */
const toEth = (n: number, eth: number, own: Pick<TreasuryFlowRow, 'kind'> & Partial<TreasuryFlowRow>) =>
  toFlow(n, {
    ...{ dao: dao.key, wallet, counterparty: bob, at: '2026-06-05T10:00:00.000Z' },
    ...{ base_units: `${eth}${'0'.repeat(18)}`, ...own },
  })

beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
  const price = { contract_address: '', chain: 'ethereum', price_usd: 2000, collected_at: '2026-06-05T01:00:00.000Z' }
  await database.db.insert({
    table: 'holding_prices',
    rows: ['2026-06-01', '2026-06-05'].map((day) => ({ ...price, day })),
  })
  await database.db.insert({
    table: 'treasury_flows',
    rows: [
      toEth(1, 100, { kind: 'spending', counterparty: alice, counterparty_label: 'Alice' }),
      toEth(2, 60, { kind: 'spending' }),
      toEth(3, 10, { kind: 'spending' }),
      toEth(4, 70, { kind: 'income' }),
      toEth(5, 90, { kind: 'internal', direction: 'internal' }),
      toEth(6, 95, { kind: 'spam' }),
      // No price of its contract is known.
      toEth(7, 99, { kind: 'spending', contract_address: bob }),
      toEth(8, 80, { kind: 'spending', recorded_at: '2026-06-01T10:00:00.000Z' }),
    ],
  })
})
afterAll(() => database?.drop())

async function readAlerts(what: string) {
  const { rules } = parseRules(`rules:\n  - {name: pays, what: {kind: flow, ${what}}}\n`, 'rules.yaml', () => '')
  const result = (await evaluateFlows(rules as never, { db: database.db, registry, apiUrl: '', now: NOW })).get('pays')
  if (result?.type !== 'events') throw new Error('expected events')
  return result.events
}
const values = async (what: string) =>
  (await readAlerts(what)).map(({ value }) => value).sort((a, b) => Number(a) - Number(b))

describe('rules of kind flow', () => {
  it.each([
    ['overUsd: 100000', [120_000, 140_000, 200_000]],
    ['overUsd: 100000, direction: out', [120_000, 200_000]],
    ['overUsd: 100000, direction: in', [140_000]],
    ['overUsd: 100000, counterparty: unknown', [120_000, 140_000]],
    ['overUsd: 100000, flowKind: internal', [180_000]],
    ['overUsd: 20000', [20_000, 120_000, 140_000, 200_000]],
    ['overUsd: 1000000', []],
  ])('fire for %s', async (what, expected) => {
    expect(await values(what)).toEqual(expected)
  })

  it('describe the payment and fire once for it', async () => {
    const [first] = await readAlerts('overUsd: 200000')
    expect(first?.subject).toMatch(new RegExp(`^${dao.id} [0-9a-f]{24}$`))
    expect(first?.observedAt).toBe(Date.parse('2026-06-05T10:00:00Z'))
    expect(first?.describe()).toEqual({
      title: `${dao.name}: treasury paid $200,000 of ETH`,
      text: `100 ETH to Alice (${alice}), spending.`,
    })
  })

  it('refuse spam as a kind', () => {
    const text = 'rules:\n  - {name: pays, what: {kind: flow, overUsd: 1, flowKind: spam}}\n'
    expect(() => parseRules(text, 'rules.yaml', () => '')).toThrow('flowKind')
  })
})
