import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { routes } from '../../api/routes.ts'
import { putInForce } from '../../clickhouse/registry.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { DAY_MS } from '../../shared/intervals.ts'
import { readCompleteness } from '../../shared/ledger/completeness.ts'
import { recordExpected } from '../../shared/ledger/expected.ts'
import { countMissing } from '../../shared/ledger/explain.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createDatabase, type Database, readRegistry } from '../../shared/store/store.ts'
import { createHandFeed, startApi, type TestApi } from '../support/api.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRegistryFolder, type RegistryFolder } from '../support/registry-folder.ts'
import { silent } from '../support/silent.ts'

/** Their keys as text exceed the 1 MiB limit that ClickHouse sets by default for a request's URL. */
const TOKENS = 65_000
const NOW = Date.parse('2026-03-04T12:03:00Z')

let database: TestDatabase
let reader: Database
let api: TestApi
let registry: Registry
let folder: RegistryFolder

/** The shipped registry with this many additional tokens, each of a separate DAO. */
function createLargeFolder(): RegistryFolder {
  const folder = createRegistryFolder()
  const numbers = Array.from({ length: TOKENS }, (_, number) => number)
  const live = { live: true, verified: false, isOtc: false }
  const daos = numbers.map((number) => ({ slug: `large-${number}`, name: `Large ${number}`, ...live }))
  const tokens = numbers.map((number) => ({
    ...{ symbol: `L${number}`, name: `Large ${number}`, chain: 'ethereum', decimals: 18, live: true },
    ...{ dao: `large-${number}`, coingeckoId: `large-${number}` },
    contractAddress: `0x1a${number.toString(16).padStart(38, '0')}`,
  }))
  folder.edit('daos', (shipped) => [...shipped, ...daos])
  folder.edit('tokens', (shipped) => [...shipped, ...tokens])
  return folder
}

beforeAll(async () => {
  const config = createTestConfig()
  folder = createLargeFolder()
  database = await createTestDatabase(config)
  await putInForce(database.db, silent, folder.dir)
  reader = createDatabase(config.clickhouse, 'read')
  registry = await readRegistry(reader)
  api = await startApi({ config, db: reader, registry, changeFeed: createHandFeed(), now: () => NOW })
})
afterAll(async () => {
  await api?.close()
  await reader?.close()
  await database?.drop()
  folder?.remove()
})

describe('registry of tens of thousands of tokens', () => {
  it('is stored completely', async () => {
    const sql = 'SELECT count() AS tokens, uniqExact(dao_key) AS daos FROM tokens FINAL'
    const schema = z.object({ tokens: z.number(), daos: z.number() })
    const [stored] = await database.db.rows({ name: 'tokens', sql, schema })
    expect(stored).toEqual({
      tokens: registry.tokens.length,
      daos: new Set(registry.tokens.map(({ dao }) => dao)).size,
    })
    expect(stored?.tokens).toBeGreaterThan(TOKENS)
    const { version, changedAt } = registry
    expect(registry).toEqual({ ...loadRegistry(folder.dir), version, changedAt })
  })

  it('passes all of its keys to statements of every kind, for the writer and the reader', async () => {
    const keys = registry.tokens.map(({ key }) => key)
    const expected = { n: keys.length, sum: keys.reduce((sum, key) => (sum + BigInt(key)) % 2n ** 64n, 0n).toString() }
    const schema = z.object({ n: z.number(), sum: z.string() })
    const sql = `SELECT length({keys: Array(UInt64)}) + {zero: UInt8} AS n, toString(arraySum({keys: Array(UInt64)})) AS sum`
    const params = { keys, zero: 0 }
    for (const db of [database.db, reader]) {
      expect(await db.rows({ name: 'keys', sql, params, schema })).toEqual([expected])
      const stream = await db.stream({ name: 'keys', sql, params })
      expect(JSON.parse(await text(stream))).toEqual(expected)
      const fails = `SELECT throwIf(length({keys: Array(UInt64)}) = ${keys.length}, 'all of them')`
      await expect(db.command({ name: 'keys', sql: fails, params })).rejects.toThrow('all of them')
    }
  })

  it('is served by every route without a required parameter', async () => {
    const plain = routes.filter(({ path, isEndless }) => !path.includes('{') && !isEndless)
    const statuses = new Map<string, number>()
    for (const { path } of plain) {
      const response = await fetch(`${api.url}${path}`)
      const body = await response.text()
      statuses.set(path, response.status)
      if (response.status === 400) expect(JSON.parse(body), path).toMatchObject({ code: 'missing_parameter' })
    }
    // Routes with a required parameter return 400, and nothing was collected for the Index Token.
    expect(statuses.get('/data/index/token-data')).toBe(404)
    statuses.delete('/data/index/token-data')
    expect([...statuses].filter(([, status]) => status !== 200 && status !== 400)).toEqual([])
    expect(statuses.get('/data/status')).toBe(200)
    expect(statuses.get('/data/changes')).toBe(200)
  })

  it('reports the missing buckets of each token', async () => {
    const dataset = datasets.find(({ name }) => name === tokenPrices.name)
    if (dataset === undefined) throw new Error('there is no dataset of prices')
    const entities = tokenPrices.entities(registry)
    await recordExpected(database.db, dataset, [
      { entity: ALL_ENTITIES, from: NOW - DAY_MS, interval: dataset.cadence },
    ])
    const later = Date.now() + DAY_MS
    const [completeness] = (await readCompleteness(database.db, registry, [dataset], later)).values()
    expect(completeness).toMatchObject({ stored: 0, complete: 0 })
    expect(completeness?.overdue).toHaveLength(entities.filter((entity) => isThereAt(entity, later)).length)
    const counts = await countMissing(database.db, dataset, completeness?.lacking ?? [], later)
    expect(counts).toEqual({ pending: completeness?.expected, failed: 0, unserved: 0 })
    expect(counts.pending).toBeGreaterThan(entities.length)
  })
})
