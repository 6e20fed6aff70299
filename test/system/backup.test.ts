import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { hashContent, keepingOld, listTables } from '../../clickhouse/backup/content.ts'
import type { Manifest } from '../../clickhouse/backup/files.ts'
import { backUp } from '../../clickhouse/backup.ts'
import { migrate, requireMigrated } from '../../clickhouse/migrations.ts'
import { putInForce } from '../../clickhouse/registry.ts'
import { restore } from '../../clickhouse/restore.ts'
import { discordMembers } from '../../shared/datasets/discord.ts'
import { marketCap } from '../../shared/datasets/market-cap.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { END_OF_TIME } from '../../shared/intervals.ts'
import { recordExpected } from '../../shared/ledger/expected.ts'
import { addFromRows } from '../../shared/ledger/recount.ts'
import { noteStored, writeNotes } from '../../shared/ledger/tables.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import { toProgram } from '../../tools/children.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import { copyMigrations } from '../support/migration-files.ts'
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

type Options = Partial<Parameters<typeof restore>[3]>

const run = ({ server, db }: Pick<TestDatabase, 'server' | 'db'>, folder: string, options: Options = {}) =>
  restore(server, db, folder, { intoExisting: false, log: silent, onTable: () => {}, ...options })

/** An empty database that is dropped after the test. */
async function createEmpty() {
  const config = createTestConfig()
  const target = await createTestDatabase(config, { empty: true })
  onTestFinished(() => target.drop())
  return { ...target, config }
}

/** A backup of a database with a few prices and their coverage, with the shipped schema or that of a folder. */
async function backUpPrices(name: string, migrations?: string) {
  const source = await createEmpty()
  await migrate(source.server, source.db, source.db.name, silent, migrations)
  await storeMarket(source.db, { keys: [1, 2], until: SITE_NOW, points: 3, stepMs: 300_000 })
  await addFromRows(source.db, tokenPrices, SITE_NOW)
  const folder = join(folders, name)
  const manifest = await backUp(source.db, folder, () => {})
  return { source, folder, manifest }
}

const exists = async ({ server, db }: Pick<TestDatabase, 'server' | 'db'>) => {
  const sql = 'SELECT name FROM system.databases WHERE name = {name: String}'
  const rows = await server.rows({ name: 'exists', sql, params: { name: db.name }, schema: z.unknown() })
  return rows.length > 0
}

const LATER = { '900_later.sql': 'ALTER TABLE market_caps DROP COLUMN IF EXISTS member_count;' }

const hashes = async (db: Database) => {
  const found: Record<string, string> = {}
  for (const table of await listTables(db)) found[table.name] = await hashContent(db, table)
  return found
}

const hashesOf = ({ tables }: Pick<Manifest, 'tables'>) =>
  Object.fromEntries(tables.map(({ name, sha256 }) => [name, sha256]))

describe('backup', () => {
  it('copies every table, and a restored database returns the same bytes', async () => {
    const folder = join(folders, 'whole')
    const { db } = site.database
    await recordExpected(db, discordMembers, [{ entity: ALL_ENTITIES, from: SITE_NOW, interval: '1d' }])
    const times = { from: SITE_NOW, to: END_OF_TIME, since: SITE_NOW, nextTry: SITE_NOW }
    const reason = { provider: 'discord', reason: 'status 503', tries: 1 }
    await writeNotes(db, discordMembers, [{ entity: 1, queueClass: 'live', state: 'failed', ...times, ...reason }])
    await noteStored(db, marketCap, [{ from: SITE_NOW, to: SITE_NOW + 1 }])
    await putInForce(db, silent)
    const at = new Date(SITE_NOW).toISOString()
    const rule = { rule: 'a', revision: 'a' }
    await db.insert({ table: 'alert_rules', rows: [{ ...rule, state: 'active', began_at: at }] })
    await db.insert({ table: 'alert_states', rows: [{ ...rule, subject: 'b', holds: true }] })
    await db.insert({ table: 'alert_firings', rows: [{ ...rule, id: 'c', fired_at: at, due_at: at }] })
    const delivery = { rule: 'a', channel: 'd', firing: 'c', due_at: at, next_try_at: at, state: 'pending', version: 1 }
    await db.insert({ table: 'alert_deliveries', rows: [delivery] })
    const check = { token: 1, slot: at, exclusions: [], difference_at: null, gaps: {} }
    await db.insert({ table: 'price_checks', rows: [check] })
    const suspect = { token: 1, slot: at, provider: 'coingecko', observed_at: at, price: 2, others: [], last_price: 1 }
    const kept = { last_at: at, reason: 'no price', is_withheld: true, state: 'suspect', quote: '{}', decided_slot: at }
    await db.insert({ table: 'suspect_prices', rows: [{ ...suspect, ...kept }] })
    const correction = { dataset: 'holders', entity: 1, observed_at: at, stored_at: at, job: 'replay', reason: 'e' }
    await db.insert({ table: 'corrections', rows: [{ ...correction, before: null, after: '{}' }] })
    const manifest = await backUp(site.database.db, folder, () => {})
    expect(manifest.tables.length).toBeGreaterThan(25)
    expect(manifest.tables.filter(({ rows }) => rows === 0).map(({ name }) => name)).toEqual([])
    const config = createTestConfig()
    const copy = await createTestDatabase(config, { empty: true })
    await run(copy, folder)
    expect(await hashes(copy.db)).toEqual(await hashes(site.database.db))
    expect(await readAnswers(site, config)).toEqual(await readAnswers(site, site.config))
    await copy.drop()
  })

  it('copies tables that receive rows, and each is restored as it was copied', async () => {
    const source = await createTestDatabase(createTestConfig())
    const market = { points: 50, stepMs: 300_000 }
    await storeMarket(source.db, { keys: [1, 2, 3], until: SITE_NOW, ...market })
    let isOver = false
    let arrived = 0
    const arriving = (async () => {
      for (; !isOver; arrived += 1) await storeMarket(source.db, { keys: [100 + arrived], until: SITE_NOW, ...market })
    })()
    const folder = join(folders, 'moving')
    const manifest = await backUp(source.db, folder, async ({ name }) => {
      const before = arrived
      // The first insert may have started before this table was read; the second had not.
      while (name === 'token_prices' && arrived < before + 2) await new Promise(setImmediate)
    })
    isOver = true
    await arriving
    const rows = (name: string) => manifest.tables.find((table) => table.name === name)?.rows ?? 0
    expect(rows('token_prices')).toBeGreaterThanOrEqual(150)
    // A roll-up is copied after its source table, and contains all of its rows.
    expect(rows('token_quotes') * market.points).toBeGreaterThan(rows('token_prices'))
    const copy = await createTestDatabase(createTestConfig(), { empty: true })
    const restored = await run(copy, folder)
    expect(restored.every(({ equal }) => equal)).toBe(true)
    expect(await hashes(copy.db)).toEqual(hashesOf(manifest))
    await Promise.all([copy.drop(), source.drop()])
  })

  it('requires an empty folder, and its restore an empty database', async () => {
    const folder = join(folders, 'again')
    const source = await createTestDatabase(createTestConfig())
    await storeMarket(source.db, { keys: [1], until: SITE_NOW, points: 3, stepMs: 300_000 })
    await backUp(source.db, folder, () => {})
    await expect(backUp(source.db, folder, () => {})).rejects.toMatchObject({ code: 'config' })
    await expect(run(source, folder)).rejects.toThrow(/is not empty \(token_prices, /)
    const restored = await run(source, folder, { intoExisting: true })
    expect(restored.every(({ equal }) => equal)).toBe(true)
    await storeMarket(source.db, { keys: [2], until: SITE_NOW, points: 3, stepMs: 300_000 })
    const concurrent = await run(source, folder, { intoExisting: true })
    expect(concurrent.find(({ name }) => name === 'token_prices')).toMatchObject({ rows: 3, equal: false })
    await source.drop()
  })

  it('stores nothing if it is damaged or incomplete', async () => {
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

describe('npm run restore -- --dry-run', () => {
  const check = (folder: string) => {
    const args = [...toProgram(join(import.meta.dirname, '../../clickhouse/restore.ts')), folder, '--dry-run']
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    return { status, stderr }
  }

  it('compares the files and rows of each table with the manifest', async () => {
    const { folder, manifest } = await backUpPrices('counted')
    expect(check(folder)).toMatchObject({ status: 0 })
    const write = (change: (table: Manifest['tables'][number]) => Partial<Manifest['tables'][number]>) => {
      const tables = manifest.tables.map((one) => (one.name === 'token_prices' ? { ...one, ...change(one) } : one))
      writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, tables }))
    }
    // A table without one of its files, which the folder still has, and without a file in both.
    write(({ files }) => ({ files: files.slice(0, -1) }))
    expect(check(folder)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /token_prices: the manifest lists files with 0 of 6 rows; token_prices\/000001.tsv.gz is not in the manifest/,
      ),
    })
    write(({ files }) => ({ files: files.map((file) => ({ ...file, rows: 5 })), rows: 5 }))
    expect(check(folder)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/token_prices\/000001.tsv.gz: 6 rows, the manifest has 5/),
    })
    write(() => ({ sha256: '0'.repeat(64) }))
    expect(check(folder)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/token_prices: its files are not the written content of the table/),
    })
  })
})

describe('schema of a backup', () => {
  it('is created first if it is older, and upgraded after the rows are stored', async () => {
    const { folder, manifest } = await backUpPrices('older')
    const target = await createEmpty()
    const migrations = copyMigrations(LATER)
    const restored = await run(target, folder, { migrations })
    expect(restored.every(({ equal }) => equal)).toBe(true)
    const repeated = join(folders, 'upgraded')
    const upgraded = await backUp(target.db, repeated, () => {})
    expect(upgraded.migrations.map(({ name }) => name)).toEqual([
      ...manifest.migrations.map(({ name }) => name),
      '900_later.sql',
    ])
    const columns = ({ tables }: Manifest) => tables.find(({ name }) => name === 'market_caps')?.columns
    expect(columns(manifest)).toContain('member_count')
    expect(columns(upgraded)).not.toContain('member_count')
    const unchanged = ({ tables }: Manifest) =>
      hashesOf({ tables: tables.filter(({ name }) => name !== 'market_caps') })
    expect(unchanged(upgraded)).toEqual(unchanged(manifest))
    // Rows of the older schema cannot be stored in the newer one.
    await expect(run(target, folder, { migrations, intoExisting: true })).rejects.toThrow(
      /has 900_later.sql, which the backup is older than/,
    )
  })

  it('is rejected before any change if it is newer, unreleased, or older than the first release', async () => {
    const { folder, manifest } = await backUpPrices('newer', copyMigrations(LATER))
    const target = await createEmpty()
    await expect(run(target, folder)).rejects.toThrow(/of a newer program, which has 900_later.sql/)
    const second = copyMigrations({ '900_later.sql': 'DROP TABLE IF EXISTS market_caps;' })
    await expect(run(target, folder, { migrations: second })).rejects.toThrow(/unreleased schema: its 900_later.sql/)
    const [first, ...rest] = manifest.migrations
    const early = { ...manifest, migrations: [{ ...first, checksum: 'of another file' }, ...rest] }
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify(early))
    await expect(run(target, folder)).rejects.toMatchObject({
      code: 'schema_too_old',
      message: expect.stringContaining(`before the first release (its ${first?.name} differs)`),
    })
    expect(await exists(target)).toBe(false)
  })
})

describe('restore', () => {
  const stop = () => {
    throw new Error('stopped')
  }

  it('resumes after an interruption, and rejects other uses of the database until then', async () => {
    const { folder, manifest } = await backUpPrices('stopped')
    const { folder: another } = await backUpPrices('another')
    const target = await createEmpty()
    await expect(run(target, folder, { onTable: ({ name }) => name === 'token_prices' && stop() })).rejects.toThrow(
      'stopped',
    )
    await expect(requireMigrated(target.db)).rejects.toThrow(/holds a part of a backup: npm run restore/)
    await expect(migrate(target.server, target.db, target.db.name, silent)).rejects.toThrow(/holds a part of a backup/)
    await expect(run(target, another)).rejects.toThrow(/holds a part of another backup/)
    let takenUp = 0
    const restored = await run(target, folder, { onTakenUp: () => (takenUp += 1) })
    expect([takenUp, restored.every(({ equal }) => equal)]).toEqual([1, true])
    expect(await hashes(target.db)).toEqual(hashesOf(manifest))
    await requireMigrated(target.db)
    await expect(run(target, folder)).rejects.toThrow(/is not empty/)
  })

  it('restores rows older than the TTL, also after a kill, and the TTL deletes them afterwards', async () => {
    const source = await createTestDatabase(createTestConfig())
    onTestFinished(() => source.drop())
    const folder = join(folders, 'old-state')
    const findJobState = async (db: Database) => {
      const found = (await listTables(db)).find(({ name }) => name === 'job_state')
      if (found === undefined) throw new Error('there is no job_state')
      return found
    }
    await keepingOld(source.db, await findJobState(source.db), async () => {
      const rows = [{ job: 'commits', name: 'prices', value: 'old', written_at: '2026-01-01T00:00:00.000Z' }]
      await source.db.insert({ table: 'job_state', rows })
      await backUp(source.db, folder, () => {})
    })
    const target = await createEmpty()
    const merge = () => target.db.command({ name: 'merge', sql: 'OPTIMIZE TABLE job_state FINAL' })
    const load: Database['load'] = async (of) => {
      await target.db.load(of)
      if (of.table === 'job_state') await merge()
    }
    const merged = { server: target.server, db: { ...target.db, load } }
    const first: boolean[] = []
    const onTable = ({ equal }: { equal: boolean }) => {
      first.push(equal)
      stop()
    }
    await expect(run(merged, folder, { onTable })).rejects.toThrow('stopped')
    expect(first).toEqual([true])
    const killed = `SYSTEM STOP TTL MERGES ${target.db.name}.job_state`
    await target.db.command({ name: 'killed', sql: killed })
    const restored = await run(merged, folder)
    expect(restored.every(({ equal }) => equal)).toBe(true)
    await merge()
    expect(await target.db.rows({ name: 'left', sql: 'SELECT 1 FROM job_state', schema: z.unknown() })).toEqual([])
  })

  it('stores no row twice after an interruption during the upgrade', async () => {
    const { folder } = await backUpPrices('stopped-late')
    const target = await createEmpty()
    const migrations = copyMigrations(LATER)
    const onInfo = ({ migration }: { migration: string }) => migration === '900_later.sql' && stop()
    const log = Object.create(silent, { info: { value: onInfo } })
    await expect(run(target, folder, { migrations, log })).rejects.toThrow('stopped')
    const stored: string[] = []
    const restored = await run(target, folder, { migrations, onTable: ({ name }) => stored.push(name) })
    expect([stored, restored.every(({ equal }) => equal)]).toEqual([[], true])
    await requireMigrated(target.db)
  })

  it('rejects a second restore into its database', async () => {
    const { folder, manifest } = await backUpPrices('twice')
    const target = await createEmpty()
    const [one, two] = await Promise.allSettled([run(target, folder), run(target, folder)])
    const reasons = [one, two].flatMap((outcome) => (outcome?.status === 'rejected' ? [outcome.reason.message] : []))
    expect(reasons).toEqual([`another restore into ${target.db.name} is running: wait until it has ended`])
    expect(await hashes(target.db)).toEqual(hashesOf(manifest))
  })
})

describe('npm run backup and npm run restore', () => {
  const command = (file: string, ...args: string[]) => {
    const env = { ...process.env, ...toStoreSettings(site.config) }
    const path = join(import.meta.dirname, '../../clickhouse', file)
    const { status, stdout, stderr } = spawnSync(process.execPath, [...toProgram(path), ...args], {
      env,
      encoding: 'utf8',
    })
    return { status, stdout, stderr }
  }

  it.each([
    ['SIGKILL', [null, 'SIGKILL'], ''],
    ['SIGINT', [130, null], 'the same command continues the restore'],
    ['SIGTERM', [143, null], 'the same command continues the restore'],
  ] as const)('resume a restore that ended by %s', async (signal, end, said) => {
    const { folder, manifest } = await backUpPrices(`ended-by-${signal}`)
    const target = await createEmpty()
    const env = { ...process.env, ...toStoreSettings(target.config) }
    const path = join(import.meta.dirname, '../../clickhouse/restore.ts')
    const args = [...toProgram(path), folder]
    const killed = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
    await once(killed.stderr.setEncoding('utf8'), 'data')
    let last = ''
    killed.stderr.on('data', (text) => {
      last += text
    })
    killed.kill(signal)
    expect(await once(killed, 'close')).toEqual(end)
    expect(last).toContain(said)
    const sql = "SELECT query_id FROM system.processes WHERE query_id LIKE 'restore into %'"
    await expect.poll(() => target.server.rows({ name: 'locks', sql, schema: z.unknown() })).toEqual([])
    const repeated = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
    expect(repeated).toMatchObject({ status: 0, stderr: expect.stringContaining('continuing an interrupted restore') })
    expect(await hashes(target.db)).toEqual(hashesOf(manifest))
  })

  it('report planned steps, and errors without a stack trace', () => {
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
    expect(command('backup.ts', '/proc/nope')).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^\/proc\/nope cannot be made or read: .*\n$/),
    })
    expect(command('restore.ts', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--dry-run') })
  })
})
