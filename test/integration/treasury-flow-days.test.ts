import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Derivation, toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { type TreasuryFlowRow, toFlowDays, treasuryFlows } from '../../shared/datasets/treasury-flows.ts'
import { rebuildDerived } from '../../workers/rebuild/rebuild-derived.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { silent } from '../support/silent.ts'
import { toFlow, toFlowAddress } from '../support/stored-flows.ts'

const DAY = 86_400_000
const [FIRST, SECOND] = [Date.parse('2026-06-01T00:00:00Z'), Date.parse('2026-06-02T00:00:00Z')]
const NOTHING = { entities: [], read: [], slot: SECOND + DAY }

/** A transfer of a DAO at noon of a day. */
const transfer = (dao: number, n: number, day: number, own: Partial<TreasuryFlowRow> = {}) =>
  toFlow(n, {
    ...{ dao, wallet: toFlowAddress('wallet'), counterparty: toFlowAddress('other'), kind: 'income' as const },
    ...{ at: new Date(day + DAY / 2).toISOString(), base_units: String(n), ...own },
  })

const found = z.object({ row: z.string() })

describe('sums of transfers by day', () => {
  const config = createTestConfig()
  let database: TestDatabase
  let dao = 0
  beforeAll(async () => {
    database = await createTestDatabase(config)
  })
  beforeEach(() => {
    dao += 1
  })
  afterAll(() => database?.drop())

  /** Stores transfers as the run that began at a time, without their sums. */
  const store = (rows: readonly TreasuryFlowRow[], run: number) =>
    database.db.insert({ table: 'treasury_flows', rows, every: { collected_at: new Date(run).toISOString() } })

  async function derive(what: Partial<Derivation>) {
    for (const { name, sql } of treasuryFlows.derive ?? [])
      await database.db.command({ name, sql, params: toDeriveParams({ ...NOTHING, ...what }) })
  }

  const read = async () => {
    const sql = `SELECT concat(toString(day), ' ', kind, ' ', toString(base_units), ' ', toString(transfers)) AS row
FROM (${toFlowDays('dao = {dao: UInt64}')}) ORDER BY row`
    return (await database.db.rows({ name: 'sums', sql, params: { dao }, schema: found })).map(({ row }) => row)
  }
  const countRows = async () => {
    const sql = 'SELECT toString(count()) AS row FROM treasury_flow_days WHERE dao = {dao: UInt64}'
    return (await database.db.rows({ name: 'sums', sql, params: { dao }, schema: found }))[0]?.row
  }

  it('counts a transfer once that is stored again, with the kind of its newest version', async () => {
    await store([transfer(dao, 5, FIRST), transfer(dao, 7, FIRST), transfer(dao, 9, SECOND)], 1000)
    await derive({ entities: [dao], from: FIRST, to: SECOND + DAY / 2 })
    expect(await read()).toEqual(['2026-06-01 income 12 2', '2026-06-02 income 9 1'])

    await store([transfer(dao, 5, FIRST), transfer(dao, 7, FIRST, { kind: 'mint' })], 2000)
    await derive({ entities: [dao], from: FIRST + DAY / 2, to: FIRST + DAY / 2 })
    expect(await read()).toEqual(['2026-06-01 income 5 1', '2026-06-01 mint 7 1', '2026-06-02 income 9 1'])
  })

  it('has no sums of a day whose transfers are all spam', async () => {
    await store([transfer(dao, 5, FIRST)], 1000)
    await derive({ entities: [dao] })
    await store([transfer(dao, 5, FIRST, { kind: 'spam' })], 2000)
    await derive({ entities: [dao] })
    expect(await read()).toEqual([])
  })

  it('finds the transfers of a run that was killed before their sums', async () => {
    await store([transfer(dao, 5, FIRST), transfer(dao, 7, SECOND)], SECOND)
    await derive({ read: [dao] })
    expect(await read()).toEqual(['2026-06-01 income 5 1', '2026-06-02 income 7 1'])

    // A later version of one transfer: the number of transfers stays.
    await store([transfer(dao, 5, FIRST, { kind: 'burn' })], SECOND + 1000)
    await derive({ read: [dao] })
    expect(await read()).toEqual(['2026-06-01 burn 5 1', '2026-06-02 income 7 1'])
  })

  it('stores nothing if no transfer of the DAOs that were read has changed', async () => {
    await store([transfer(dao, 5, FIRST), transfer(dao, 7, SECOND)], SECOND)
    await derive({ read: [dao] })
    const before = await countRows()
    await derive({ read: [dao] })
    expect([before, await countRows()]).toEqual(['2', '2'])
  })

  it('counts no removed transfer after the table is computed again', async () => {
    const { db } = database
    await store([transfer(dao, 5, FIRST), transfer(dao, 7, FIRST), transfer(dao, 9, SECOND)], 1000)
    await derive({ entities: [dao], from: FIRST, to: SECOND + DAY / 2 })
    const ofRemoved = 'base_units IN (5, 9) AND dao = {dao: UInt64}'
    await db.command({ name: 'remove', sql: `DELETE FROM treasury_flows WHERE ${ofRemoved}`, params: { dao } })
    const tables = await rebuildDerived(treasuryFlows, { db, database: config.clickhouse.database, log: silent })
    expect(tables).toEqual(['treasury_flow_days'])
    expect(await read()).toEqual(['2026-06-01 income 7 1'])
  })

  it('keeps the computation that read more transfers if an older one is stored later', async () => {
    const { db } = database
    await store([transfer(dao, 5, FIRST)], 1000)
    await derive({ entities: [dao] })
    await store([transfer(dao, 6, FIRST), transfer(dao, 5, FIRST, { kind: 'mint' })], 2000)
    const copy = 'SELECT dao, day, sums, version FROM treasury_flow_days WHERE dao = {dao: UInt64}'
    await db.command({ name: 'copy', sql: `CREATE TABLE older ENGINE = Memory AS ${copy}`, params: { dao } })
    await derive({ entities: [dao] })
    await db.command({ name: 'copy', sql: 'INSERT INTO treasury_flow_days SELECT * FROM older' })
    expect(await read()).toEqual(['2026-06-01 income 6 1', '2026-06-01 mint 5 1'])
  })
})
