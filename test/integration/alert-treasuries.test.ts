import { afterAll, beforeAll, expect, it } from 'vitest'
import type { DaoTreasuryRow, UnreadHolding } from '../../shared/datasets/treasury.ts'
import { evaluateTreasuries } from '../../workers/alerts/conditions/treasuries.ts'
import { parseRules } from '../../workers/alerts/rules-file.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { loadFewDaos } from '../support/few-daos.ts'

const DAY = 86_400_000
const NOW = Date.UTC(2024, 4, 6, 7)
const USDC = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48'
const registry = loadFewDaos()
let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
})
afterAll(() => database?.drop())

type Held = readonly [symbol: string, contract: string, quantity: number, valueUsd: number | null]
const unreadUsdc = { chain: 'ethereum', address: '0xabc', contract: USDC, symbol: 'USDC' }

function toRow(slug: string, daysAgo: number, held: readonly Held[], more: Partial<DaoTreasuryRow> = {}) {
  const holdings = held.map(([symbol, contract, quantity, value_usd]) => ({
    ...{ chain: 'ethereum', address: '0xabc', contract, symbol, quantity, value_usd },
    ...{ price_source: value_usd === null ? null : 'goldrush', kind: 'other' as const },
  }))
  return {
    dao: registry.daoBySlug.get(slug)?.key ?? expect.fail(slug),
    observed_at: new Date(NOW - (NOW % DAY) - daysAgo * DAY).toISOString(),
    value_usd: holdings.reduce((sum, one) => sum + (one.value_usd ?? 0), 0),
    tokens: holdings.map(({ symbol, quantity, value_usd }) => ({ symbol, quantity, value_usd })),
    ...{ holdings, spam_count: 0, spam: [], unread: [] as UnreadHolding[], source: 'goldrush', ...more },
  }
}

/** Titles and texts of the alerts of the rule over all stored treasuries. */
async function readAlerts() {
  const { rules } = parseRules(
    'rules:\n  - {name: moves, what: {kind: treasury, movedUsd: 1000000}}\n',
    'rules.yaml',
    () => '',
  )
  const context = { db: database.db, registry, apiUrl: '', now: NOW }
  const result = (await evaluateTreasuries(rules as never, context)).get('moves')
  if (result?.type !== 'events') throw new Error('expected events')
  return result.events.map((event) => event.describe())
}

it('reports movements by contract, and none of a counterfeit, of spam or of an unreadable day', async () => {
  const usdc = (millions: number): Held => ['USDC', USDC, millions * 1e6, millions * 1e6]
  const uni: Held = ['UNI', '0x1f98', 3e5, 3e6]
  const fake: Held = ['USDC', '0xbad0', 9e8, null]
  const spam = [{ chain: 'ethereum', contract: '0xbad0' }]
  await database.db.insert({
    table: 'dao_treasuries',
    rows: [
      toRow('uniswap', 3, [usdc(5), uni]),
      toRow('uniswap', 2, [usdc(5), fake, uni]),
      toRow('uniswap', 1, [usdc(5), uni], { spam_count: 1, spam }),
      toRow('aave', 3, [usdc(5), uni]),
      toRow('aave', 2, [uni], { unread: [unreadUsdc] }),
      toRow('aave', 1, [usdc(5), uni]),
      toRow('ens', 3, [usdc(5), uni]),
      toRow('ens', 2, [uni], { unread: [unreadUsdc] }),
      toRow('ens', 1, [usdc(2), fake, uni]),
    ],
  })
  expect(await readAlerts()).toEqual([
    {
      title: `${registry.daoBySlug.get('ens')?.name}: treasury spent $3,000,000 of USDC`,
      text: expect.stringContaining(`3,000,000 USDC (${USDC} on ethereum) between 2024-05-03`),
    },
  ])
})
