import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { compareInForce, putInForce, storeRegistry } from '../../clickhouse/registry.ts'
import { ENTIRE_REGISTRY } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { type Database, readInForce, readRegistry } from '../../shared/store/store.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRegistryFolder, type RegistryFolder } from '../support/registry-folder.ts'
import { readVersions, withoutVersion } from '../support/registry-versions.ts'
import { silent } from '../support/silent.ts'

let database: TestDatabase
let db: Database
let folder: RegistryFolder

const store = () => putInForce(db, silent, folder.dir)

beforeEach(async () => {
  folder = createRegistryFolder()
  database = await createTestDatabase(createTestConfig())
  db = database.db
  await store()
})
afterEach(async () => {
  folder.remove()
  await database.drop()
})

describe('the stored registry', () => {
  it('equals that of the files, in order', async () => {
    const stored = await readRegistry(db)
    expect(withoutVersion(stored)).toEqual(withoutVersion(loadRegistry(folder.dir)))
    expect(Math.abs(stored.changedAt - Date.now())).toBeLessThan(600_000)
  })

  it('has the records of the files as written, without defaults that an older program refuses', async () => {
    const stored = await db.rows({
      name: 'records',
      sql: 'SELECT list, record FROM registry_records FINAL ORDER BY list, position',
      schema: z.object({ list: z.string(), record: z.string() }),
    })
    const written = ['categories', 'chains', 'daos', 'index', 'tokens'].flatMap((list) => {
      const content: unknown = JSON.parse(readFileSync(join(folder.dir, `${list}.json`), 'utf8'))
      return [content].flat().map((record) => ({ list, record: JSON.stringify(record) }))
    })
    expect(stored).toEqual(written)
    expect(written.filter(({ record }) => !record.includes('formerNames')).length).toBeGreaterThan(100)
  })

  it('has one version after any number of equal runs', async () => {
    await Promise.all([store(), store(), store()])
    await store()
    const [first, ...more] = await readVersions(db)
    expect(more).toEqual([])
    folder.edit('categories', (rows) => [...rows, { slug: 'made-up', name: 'Made up' }])
    await Promise.all([store(), store()])
    expect((await readVersions(db)).map(({ version }) => version)).toEqual([
      first?.version,
      (await readRegistry(db)).version,
    ])
    // An earlier registry becomes active again.
    folder.edit('categories', (rows) => rows.slice(0, -1))
    await store()
    expect((await readRegistry(db)).version).toBe(first?.version)
  })

  it('is the last one that was stored, also after a machine whose clock was ahead', async () => {
    const ahead =
      'INSERT INTO registry_versions SELECT * REPLACE (now64(3) + INTERVAL 1 HOUR AS stored_at) FROM registry_versions FINAL'
    await db.command({ name: 'ahead', sql: ahead })
    const [first] = await readVersions(db)
    folder.edit('categories', (rows) => [...rows, { slug: 'made-up', name: 'Made up' }])
    await store()
    expect((await readRegistry(db)).version).not.toBe(first?.version)
    folder.edit('categories', (rows) => rows.slice(0, -1))
    await store()
    expect((await readRegistry(db)).version).toBe(first?.version)
  })

  it('does not change if the files are invalid', async () => {
    const before = await readRegistry(db)
    folder.edit('tokens', (rows) => [{ ...rows[0], dao: 'nobody' }, ...rows.slice(1)])
    await expect(store()).rejects.toThrow(/dao: nobody is not in daos.json/)
    expect(await readRegistry(db)).toEqual(before)
  })
})

describe('registry read without its DAOs', () => {
  it('equals the complete registry apart from its DAOs', async () => {
    const [full, part] = [await readInForce(db), await readInForce(db, { part: 'tokens' })]
    const { daos: _, daoById: __, daoBySlug: ___, ...rest } = full
    expect({ ...part }).toEqual(rest)
    expect(() => part.daos).toThrow(/were not read/)
  })

  it('is sufficient exactly for jobs that do not declare that they need DAOs', async () => {
    const [full, part] = [await readInForce(db), await readInForce(db, { part: 'tokens' })]
    for (const { dataset, entities } of jobs) {
      for (const of of [dataset.entities, entities]) {
        if (dataset.needsDaos && of(full)[0] !== ENTIRE_REGISTRY)
          expect(() => of(part), dataset.name).toThrow(/were not read/)
        else expect(of(part), dataset.name).toEqual(of(full))
      }
    }
  })

  it('is rejected if any record is missing, also one that it leaves out', async () => {
    const store = { name: 'one gone', settings: { mutations_sync: '1' } }
    await db.command({ ...store, sql: "DELETE FROM registry_records WHERE list = 'daos' AND position = 0" })
    await expect(readInForce(db, { part: 'tokens' })).rejects.toThrow(/of the registry has \d+ of \d+ records/)
  })
})

describe('comparison of files with the active registry', () => {
  it('lists the changed records', async () => {
    expect(await compareInForce(db, folder.dir)).toEqual([])
    const [gone, changed] = ['made-up-1', 'made-up-2'].map((slug) => ({ slug, name: slug }))
    folder.edit('categories', (rows) => [...rows, ...[gone, changed].map((one) => ({ ...one }))])
    await store()
    folder.edit('categories', (rows) => [
      ...rows.slice(0, -2),
      { ...changed, name: 'Another name' },
      { slug: 'made-up-3', name: 'Made up' },
    ])
    folder.edit('tokens', (rows) => rows.map((row) => (row.symbol === 'UNI' ? { ...row, cmcId: '1' } : row)))
    folder.edit('chains', (rows) => rows.toReversed())
    expect(await compareInForce(db, folder.dir)).toEqual([
      'categories: made-up-1 gone',
      'categories: made-up-2 changed',
      'categories: made-up-3 added',
      'chains: in another order',
      'tokens: UNI (ethereum/0x1f9840a85d5af5bf1d1762f925bdaddc4201f984) changed',
    ])
    await store()
    expect(await compareInForce(db, folder.dir)).toEqual([])
  })

  it('reports records that are stored with the defaults of an earlier program', async () => {
    folder.edit('categories', (rows) => [...rows, { slug: 'made-up', name: 'Made up' }])
    folder.edit('tokens', (rows) => rows.map((row) => ({ ...row, formerNames: row.formerNames ?? [] })))
    await store()
    folder.edit('tokens', (rows) =>
      rows.map(({ formerNames, ...row }) =>
        Object.values(formerNames ?? {}).length > 0 ? { ...row, formerNames } : row,
      ),
    )
    expect(await compareInForce(db, folder.dir)).toEqual([expect.stringMatching(/^equal records/)])
    await store()
    expect(await compareInForce(db, folder.dir)).toEqual([])
  })

  it('includes changes of the joined tables after an interrupted migrate', async () => {
    const change = (cmcId: string, mission: string) => {
      folder.edit('tokens', (rows) => rows.map((row) => (row.symbol === 'UNI' ? { ...row, cmcId } : row)))
      folder.edit('daos', (rows) => rows.map((row) => (row.slug === 'uniswap' ? { ...row, mission } : row)))
    }
    change('2', 'Another mission')
    await store()
    change('1', 'One that never came into force')
    await storeRegistry(db, loadRegistry(folder.dir), silent)
    change('2', 'Another mission')
    expect(await compareInForce(db, folder.dir)).toEqual([
      'tokens: UNI (0x1f9840a85d5af5bf1d1762f925bdaddc4201f984) differs in the table',
      'daos: uniswap differs in the table',
    ])
    await store()
    expect(await compareInForce(db, folder.dir)).toEqual([])
  })
})
