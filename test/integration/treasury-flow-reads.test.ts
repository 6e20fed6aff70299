import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findPageBounds, NO_TRANSFERS, onPageDays } from '../../api/flows/newest-flows.ts'
import { type FlowQuery, selectFlows, toCountSql } from '../../api/flows/selection.ts'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import type { Database } from '../../shared/store/store.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'

const TRANSFERS = Number(process.env.FLOWS ?? 20_000)
const DAYS = 200
const [FIRST, DAO] = [Date.parse('2026-01-01T00:00:00Z'), 7]
/** The slot of the last run, and the start of the run before. */
const [SLOT, EARLIER] = [FIRST + DAYS * DAY_MS, FIRST + (DAYS - 30) * DAY_MS]
const ABSENT = `0x${'f'.repeat(40)}`

const registry = loadRegistry()
let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase(createTestConfig())
  await storeFlows(TRANSFERS, { first: FIRST, last: EARLIER, kind: 'spending', run: EARLIER })
  await storeFlows(5, { first: FIRST + DAY_MS, last: FIRST + 3 * DAY_MS, kind: 'mint', run: EARLIER })
  await derive({ entities: [DAO], read: [], slot: EARLIER })
  await database.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE treasury_flows FINAL' })
})
afterAll(() => database?.drop())

/** Stores transfers at even distances from `first` to `last`, as the run that began at `run`. */
const storeFlows = (
  count: number,
  { first, last, kind, run }: { first: number; last: number; kind: string; run: number },
) =>
  database.db.command({
    name: 'flows',
    sql: `INSERT INTO treasury_flows (dao, recorded_at, chain, transaction_hash, contract_address, sender, recipient, base_units, occurrence,
  block_number, symbol, decimals, wallet, counterparty, counterparty_label, direction, leg, kind, rule, category, swap_group, provider, collected_at)
SELECT ${DAO}, fromUnixTimestamp64Milli({first: Int64} + toInt64(number * {step: Float64}), 'UTC') AS at, 'ethereum', concat('0x', hex(SHA256(toString(at)))),
  '', concat('0x', lower(hex(substring(SHA256('wallet'), 1, 20)))) AS own, concat('0x', lower(hex(substring(SHA256(toString(number)), 1, 20)))) AS other,
  number + 1, 0, number, 'ETH', 18, own, other, '', 'out', '', {kind: String}, 'outflow', '', '', 'etherscan', fromUnixTimestamp64Milli({run: Int64}, 'UTC')
FROM numbers({count: UInt32})`,
    params: { first, step: (last - first) / count, kind, run, count },
  })

/** The database with a limit on the rows that a statement reads. */
const withLimit = (rows: number): Database => ({
  ...database.db,
  rows: (statement) =>
    database.db.rows({ ...statement, settings: { ...statement.settings, max_rows_to_read: String(rows) } }),
  command: (statement) =>
    database.db.command({ ...statement, settings: { ...statement.settings, max_rows_to_read: String(rows) } }),
})

async function derive(what: Parameters<typeof toDeriveParams>[0], db = database.db): Promise<void> {
  for (const { name, sql } of treasuryFlows.derive ?? []) await db.command({ name, sql, params: toDeriveParams(what) })
}

/** The number of selected transfers, and the bounds of their first page. */
async function readFirst(query: FlowQuery, db = database.db) {
  const selection = selectFlows(query, registry)
  const wanted = { dao: DAO, limit: 101 }
  const found = await onPageDays(db, selection, wanted)
  const [counted] = await db.rows({
    name: 'count',
    sql: toCountSql(selection),
    params: { ...selection.params, dao: DAO },
    schema: z.object({ total: z.int() }),
  })
  const bounds = found === undefined ? NO_TRANSFERS : await findPageBounds(db, found, { after: '', ...wanted })
  return { total: counted?.total, bounds }
}

describe('reading of the transfers of a DAO', () => {
  it.each<FlowQuery>([
    { counterparty: ABSENT },
    { counterparty: ABSENT, spam: 'true' },
    { counterparty: ABSENT, start: FIRST, kind: 'spending' },
    { wallet: ABSENT },
    { asset: ABSENT },
    { kind: 'burn' },
    { direction: 'swap' },
  ])('reads few of them if the filter %j selects none', async (query) => {
    expect(await readFirst(query, withLimit(TRANSFERS / 4))).toEqual({ total: 0, bounds: NO_TRANSFERS })
  })

  it('reads the days of a kind that few of them have', async () => {
    const { total, bounds } = await readFirst({ kind: 'mint' }, withLimit(TRANSFERS / 4))
    expect([total, bounds?.since]).toEqual([5, FIRST + DAY_MS])
  })

  it('reads a part of them for the sums of a run without transfers, and for those that a killed run stored', async () => {
    const limited = withLimit(TRANSFERS / 4)
    await derive({ entities: [], read: [DAO], slot: SLOT }, limited)
    await storeFlows(3, { first: FIRST, last: FIRST + 3 * DAY_MS, kind: 'burn', run: SLOT - DAY_MS })
    await derive({ entities: [], read: [DAO], slot: SLOT }, limited)
    expect((await readFirst({ kind: 'burn' })).total).toBe(3)
  })
})
