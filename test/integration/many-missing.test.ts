import { afterAll, beforeAll, expect, it } from 'vitest'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { addCoverage, readMissing } from '../../shared/ledger/tables.ts'
import type { Database } from '../../shared/store/store.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
})
afterAll(() => database.drop())

it('scan for missing buckets uses constant memory for years of many entities', async () => {
  const { db } = database
  const frugal: Database = {
    ...db,
    rows: (statement) => db.rows({ ...statement, settings: { ...statement.settings, max_memory_usage: 1e9 } }),
  }
  const first = Date.parse('2022-02-01') / 300_000
  const last = first + 480_000
  const keys = Array.from({ length: 300 }, (_, at) => at + 1)
  const newest = { state: 'stored', provider: 'a', seconds: 300, first: last, last } as const
  await addCoverage(
    db,
    tokenPrices,
    keys.map((entity) => ({ entity, ...newest })),
  )
  const missing = await readMissing(frugal, tokenPrices, keys, { expected: [{ first, last }], seconds: 300 })
  expect(missing).toEqual(new Map(keys.map((key) => [key, [{ first, last: last - 1 }]])))
})
