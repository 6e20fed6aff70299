import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { storeRegistry } from '../../clickhouse/registry.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { silent } from '../support/silent.ts'

const registry = loadRegistry()
const uniswap = registry.daos.find(({ slug }) => slug === 'uniswap') as Dao
const withUniswap = (changes: Partial<Dao>) => ({
  ...registry,
  daos: registry.daos.map((dao) => (dao === uniswap ? { ...dao, ...changes } : dao)),
})
const times = z.object({ created: z.number(), updated: z.number(), changes: z.number(), live: z.boolean() })

describe('DAO records', () => {
  let database: TestDatabase
  beforeEach(async () => {
    database = await createTestDatabase(createTestConfig())
  })
  afterEach(() => database.drop())

  const store = (of = registry) => storeRegistry(database.db, of, silent)
  const uniswapTimes = async () => {
    const sql = `SELECT toUnixTimestamp64Milli(created_at) AS created, toUnixTimestamp64Milli(updated_at) AS updated, changes, live
      FROM daos FINAL WHERE key = {key: UInt64}`
    const [row] = await database.db.rows({ name: 'times', sql, params: { key: uniswap.key }, schema: times })
    return row ?? expect.unreachable('no record of the DAO')
  }
  const rowsWritten = async () => {
    const sql = 'SELECT count() AS n FROM daos'
    return (await database.db.rows({ name: 'count', sql, schema: z.object({ n: z.number() }) }))[0]?.n
  }

  it('contain everything from the files, with ids', async () => {
    await store()
    const sql = `SELECT name, category_ids, chain_ids, token_key, snapshot_name, treasury_addresses FROM daos FINAL
      WHERE key = {key: UInt64}`
    const [row] = await database.db.rows({ name: 'dao', sql, params: { key: uniswap.key }, schema: z.unknown() })
    expect(row).toEqual({
      name: 'Uniswap',
      category_ids: uniswap.categories.map((slug) => registry.categoryBySlug.get(slug)?.id),
      chain_ids: uniswap.chains.map((slug) => registry.chainBySlug.get(slug)?.id),
      token_key: registry.tokenById.get(uniswap.token ?? '')?.key,
      snapshot_name: 'uniswapgovernance.eth',
      treasury_addresses: [...new Set(uniswap.treasuries.map(({ address }) => address))],
    })
  })

  it('are not written again if unchanged, or twice by two concurrent runs', async () => {
    await Promise.all([store(), store()])
    const first = await uniswapTimes()
    expect(first).toMatchObject({ updated: first.created, changes: 0 })
    const written = await rowsWritten()
    await store()
    expect(await rowsWritten()).toBe(written)
    expect(await uniswapTimes()).toEqual(first)
  })

  it('have the number of changes and the time of the first insert', async () => {
    await store()
    const first = await uniswapTimes()
    await store(withUniswap({ mission: 'a mission' }))
    const second = await uniswapTimes()
    expect(second).toMatchObject({ created: first.created, changes: 1 })
    expect(second.updated).toBeGreaterThanOrEqual(first.updated)
    await Promise.all([store(), store()])
    expect(await uniswapTimes()).toMatchObject({ created: first.created, changes: 2 })
  })

  it('stay as not live after they leave the files', async () => {
    await store()
    await store({ ...registry, daos: registry.daos.filter((dao) => dao !== uniswap) })
    expect(await uniswapTimes()).toMatchObject({ live: false, changes: 1 })
    const written = await rowsWritten()
    await store({ ...registry, daos: registry.daos.filter((dao) => dao !== uniswap) })
    expect(await rowsWritten()).toBe(written)
  })

  it('keep the earlier of two writes of one change, in any order of inserts', async () => {
    await store()
    const [record] = await database.db.rows({
      name: 'record',
      sql: 'SELECT * EXCEPT version FROM daos FINAL WHERE key = {key: UInt64}',
      params: { key: uniswap.key },
      schema: z.looseObject({}),
    })
    for (const updated_at of ['2030-01-01T00:00:02Z', '2030-01-01T00:00:01Z', '2030-01-01T00:00:03Z']) {
      await database.db.insert({ table: 'daos', rows: [{ ...record, updated_at, changes: 1 }] })
    }
    expect(await uniswapTimes()).toMatchObject({ updated: Date.parse('2030-01-01T00:00:01Z'), changes: 1 })
  })
})
