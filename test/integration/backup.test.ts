import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashContent, listTables } from '../../clickhouse/backup/content.ts'
import type { Manifest } from '../../clickhouse/backup/files.ts'
import { backUp } from '../../clickhouse/backup.ts'
import { restore } from '../../clickhouse/restore.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { toProgram } from '../../tools/children.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import type { Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'
import { createSite, readAnswers, SITE_NOW } from '../support/site.ts'
import { toStoreSettings } from '../support/store-settings.ts'

let site: Pipeline
let folders: string
beforeAll(async () => {
  folders = mkdtempSync(join(tmpdir(), 'dao-data-backup-'))
  site = await createSite()
}, 300_000)
afterAll(async () => {
  await site?.close()
  rmSync(folders, { recursive: true, force: true })
})

const run = ({ server, db }: Pick<TestDatabase, 'server' | 'db'>, folder: string, intoExisting = false) =>
  restore(server, db, folder, { intoExisting, log: silent, onTable: () => {} })

const hashes = async (db: Database) => {
  const found: Record<string, string> = {}
  for (const table of await listTables(db)) found[table.name] = await hashContent(db, table)
  return found
}

const hashesOf = ({ tables }: Manifest) => Object.fromEntries(tables.map(({ name, sha256 }) => [name, sha256]))

describe('a backup', () => {
  it('holds every table, and a database made of it answers the same bytes', async () => {
    const folder = join(folders, 'whole')
    const told = await backUp(site.database.db, folder, () => {})
    expect(told.tables.length).toBeGreaterThan(25)
    expect(told.tables.filter(({ rows }) => rows === 0).map(({ name }) => name)).toEqual([])
    const config = createTestConfig()
    const copy = await createTestDatabase(config, { empty: true })
    await run(copy, folder)
    expect(await hashes(copy.db)).toEqual(await hashes(site.database.db))
    expect(await readAnswers(site, config)).toEqual(await readAnswers(site, site.config))
    await copy.drop()
  })

  it('is taken while rows arrive, and each table comes back as it was copied', async () => {
    const source = await createTestDatabase(createTestConfig())
    const market = { points: 50, stepMs: 300_000 }
    await storeMarket(source.db, { keys: [1, 2, 3], until: SITE_NOW, ...market })
    let isOver = false
    let arrived = 0
    const arriving = (async () => {
      for (; !isOver; arrived += 1) await storeMarket(source.db, { keys: [100 + arrived], until: SITE_NOW, ...market })
    })()
    const folder = join(folders, 'moving')
    const told = await backUp(source.db, folder, async ({ name }) => {
      const before = arrived
      // The first may have begun before this table was read; the second has not.
      while (name === 'token_prices' && arrived < before + 2) await new Promise(setImmediate)
    })
    isOver = true
    await arriving
    const rows = (name: string) => told.tables.find((table) => table.name === name)?.rows ?? 0
    expect(rows('token_prices')).toBeGreaterThanOrEqual(150)
    // A roll-up is copied after what it is made of, and lacks none of it.
    expect(rows('token_quotes') * market.points).toBeGreaterThan(rows('token_prices'))
    const copy = await createTestDatabase(createTestConfig(), { empty: true })
    const restored = await run(copy, folder)
    expect(restored.every(({ equal }) => equal)).toBe(true)
    expect(await hashes(copy.db)).toEqual(hashesOf(told))
    await Promise.all([copy.drop(), source.drop()])
  })

  it('goes only into an empty folder, and comes back only into an empty database', async () => {
    const folder = join(folders, 'again')
    const source = await createTestDatabase(createTestConfig())
    await storeMarket(source.db, { keys: [1], until: SITE_NOW, points: 3, stepMs: 300_000 })
    await backUp(source.db, folder, () => {})
    await expect(backUp(source.db, folder, () => {})).rejects.toMatchObject({ code: 'config' })
    await expect(run(source, folder)).rejects.toThrow(/is not empty \(token_prices, /)
    const restored = await run(source, folder, true)
    expect(restored.every(({ equal }) => equal)).toBe(true)
    await storeMarket(source.db, { keys: [2], until: SITE_NOW, points: 3, stepMs: 300_000 })
    const beside = await run(source, folder, true)
    expect(beside.find(({ name }) => name === 'token_prices')).toMatchObject({ rows: 3, equal: false })
    await source.drop()
  })

  it('that is damaged or not finished stores nothing', async () => {
    const folder = join(folders, 'damaged')
    const source = await createTestDatabase(createTestConfig())
    await storeMarket(source.db, { keys: [1], until: SITE_NOW, points: 3, stepMs: 300_000 })
    await backUp(source.db, folder, () => {})
    await source.drop()
    const target = await createTestDatabase(createTestConfig(), { empty: true })
    appendFileSync(join(folder, 'token_prices/000001.tsv.gz'), 'more')
    rmSync(join(folder, 'token_quotes/000001.tsv.gz'))
    await expect(run(target, folder)).rejects.toThrow(/token_prices\/000001.*token_quotes\/000001/)
    writeFileSync(join(folder, 'manifest.json'), '{')
    await expect(run(target, folder)).rejects.toMatchObject({ code: 'config' })
    await expect(listTables(target.db)).rejects.toThrow(/UNKNOWN_DATABASE/)
    await target.drop()
  })
})

describe('the commands', () => {
  const command = (file: string, ...args: string[]) => {
    const env = { ...process.env, ...toStoreSettings(site.config) }
    const path = join(import.meta.dirname, '../../clickhouse', file)
    const { status, stdout, stderr } = spawnSync(process.execPath, [...toProgram(path), ...args], {
      env,
      encoding: 'utf8',
    })
    return { status, stdout, stderr }
  }

  it('say what they would do, and what is wrong without a stack', () => {
    const folder = join(folders, 'commands')
    const dry = command('backup.ts', folder, '--dry-run', '--json')
    expect(JSON.parse(dry.stdout)).toContainEqual({ name: 'token_prices', rows: expect.any(Number) })
    expect(existsSync(folder)).toBe(false)
    expect(command('backup.ts', folder)).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/rows of \d+ tables/),
    })
    expect(command('restore.ts', folder, '--dry-run')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('token_prices: '),
    })
    const refused = command('restore.ts', folder)
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('is not empty') })
    expect(refused.stderr).not.toContain('    at ')
    expect(command('restore.ts', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--dry-run') })
  })
})
