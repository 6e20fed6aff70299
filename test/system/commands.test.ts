import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { putInForce, storeRegistry } from '../../clickhouse/registry.ts'
import { dropScratch, toScratchName } from '../../clickhouse/schema/scratch.ts'
import { union } from '../../shared/buckets.ts'
import { telegramMembers } from '../../shared/datasets/telegram.ts'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import { recordExpected } from '../../shared/ledger/expected.ts'
import type { Note } from '../../shared/ledger/ledger.ts'
import { addCoverage, writeNotes } from '../../shared/ledger/tables.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { toProgram } from '../../tools/children.ts'
import prices from '../../workers/jobs/prices.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'

const ROOT = join(import.meta.dirname, '../..')
const STEP = 300_000

const config = createTestConfig()
let database: TestDatabase
beforeEach(async () => {
  database = await createTestDatabase(config)
})
afterEach(() => database.drop())

const env = () => ({ ...process.env, ...toStoreSettings(config) })

describe('exit code of npm run gaps', () => {
  const gaps = (...args: string[]) => {
    const command = [...toProgram(join(ROOT, 'workers/commands/find-gaps.ts')), ...args]
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { env: env(), encoding: 'utf8' })
    return { status, stdout, stderr }
  }
  const tokens = prices.entities(loadRegistry()).filter((token) => isThereAt(token, Date.now()))
  const store = (points: number, until: number) =>
    storeMarket(database.db, { keys: tokens.map(({ key }) => key), until, points, stepMs: STEP })
  const now = () => toBucketStart(Date.now(), '5m')

  /**
   * Records the last `buckets` of every token as wanted and stored, except those of `isOmitted`. The next one is stored, too: it may
   * begin while the command runs. So is the one before them, which an earlier call may have recorded as wanted.
   */
  async function cover(buckets: number, isOmitted: (ago: number) => boolean = () => false) {
    const { db } = database
    const last = now() / STEP
    await recordExpected(db, prices.dataset, [{ entity: ALL_ENTITIES, from: (last - buckets) * STEP, interval: '5m' }])
    const numbers = Array.from({ length: buckets + 3 }, (_, place) => place - 1).filter((ago) => !isOmitted(ago))
    const reports = tokens.flatMap(({ key }) =>
      union(numbers.map((ago) => ({ first: last - ago, last: last - ago }))).map((run) => ({
        ...{ entity: key, state: 'stored' as const, provider: 'coingecko', seconds: 300 },
        ...run,
      })),
    )
    await addCoverage(db, prices.dataset, reports)
  }

  it('is 0 for complete and fresh data, and 3 for missing data', async () => {
    await store(5, now())
    await cover(50)
    expect(gaps('prices')).toMatchObject({ status: 0, stdout: '' })
    await database.db.command({ name: 'forget', sql: 'TRUNCATE TABLE coverage' })
    await cover(50, (ago) => ago >= 20 && ago < 23)
    const observed = gaps('prices', '--json')
    expect(observed.status).toBe(3)
    const found = JSON.parse(observed.stdout)
    expect(found).toHaveLength(tokens.length)
    expect(found[0]).toMatchObject({ dataset: 'prices', missing: 3, state: 'pending' })
    expect(gaps('prices', '--from', new Date(now() - 10 * STEP).toISOString())).toMatchObject({ status: 0 })
  })

  it('is 0 for data that no provider serves, and the output has the reason of missed and failed buckets', async () => {
    const { db } = database
    await store(5, now())
    await cover(50, (ago) => ago >= 20 && ago < 23)
    const note = (index: number, own: Partial<Note>): Note => ({
      ...{ entity: tokens[index]?.key ?? 0, queueClass: 'history', from: now() - 30 * STEP, to: now() - 10 * STEP },
      ...{
        state: 'unserved',
        provider: 'x',
        reason: 'x has no id for it',
        since: 0,
        tries: 1,
        nextTry: 0,
        providers: '',
      },
      ...own,
    })
    const unserved = tokens.map((_, index) => note(index, {}))
    await writeNotes(db, prices.dataset, unserved)
    expect(gaps('prices')).toMatchObject({ status: 0, stdout: '' })
    await writeNotes(db, prices.dataset, [note(0, { state: 'missed', tries: 0, reason: 'nobody collected it' })])
    expect(gaps('prices')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/ 3 +missed +nobody collected it/),
    })
    await writeNotes(db, prices.dataset, [note(1, { state: 'failed', reason: 'x: status 503' })])
    expect(gaps('prices')).toMatchObject({ status: 3, stdout: expect.stringMatching(/ 3 +failed +x: status 503/) })
  })

  it('is 2 for stale or empty data, unless the range has ended', async () => {
    expect(gaps('prices')).toMatchObject({ status: 2, stderr: expect.stringContaining('prices is empty') })
    const old = toBucketStart(Date.now(), '5m') - 10 * STEP
    await store(5, old)
    expect(gaps('prices')).toMatchObject({ status: 2, stderr: expect.stringContaining('prices is stale: ') })
    expect(gaps('prices', '--to', new Date(old).toISOString())).toMatchObject({ status: 0 })
  })

  it.each([
    [['weather'], 'no such dataset'],
    [['--unknown'], '--unknown'],
    [['prices', 'tvl'], 'one dataset at a time'],
    [['prices', '--from', '2022-01-31'], '--from 2022-01-31 is before 2022-02-01'],
  ])('is 1 for %j', (args, reason) => {
    expect(gaps(...args)).toMatchObject({ status: 1, stderr: expect.stringContaining(reason) })
  })
})

it('npm run status and npm run gaps include DAOs with discovered links', async () => {
  const { db } = database
  const registry = loadRegistry()
  await storeRegistry(db, registry, silent)
  const existing = telegramMembers.entities(registry)
  const found = registry.daos.find(({ live, telegram }) => live && telegram === null)
  await db.command({
    name: 'find',
    sql: `ALTER TABLE daos UPDATE links = map('telegram', 'https://t.me/found') WHERE key = {key: UInt64} SETTINGS mutations_sync = 2`,
    params: { key: found?.key },
  })
  const today = Math.floor(Date.now() / DAY_MS)
  await recordExpected(db, telegramMembers, [{ entity: ALL_ENTITIES, from: (today - 4) * DAY_MS, interval: '1d' }])
  const days = { state: 'stored', provider: 'telegram', seconds: 86_400, first: today - 4, last: today } as const
  await addCoverage(
    db,
    telegramMembers,
    existing.map(({ key }) => ({ entity: key, ...days })),
  )
  const run = (name: string, ...args: string[]) => {
    const command = [...toProgram(join(ROOT, `workers/commands/${name}.ts`)), ...args, '--json']
    return JSON.parse(spawnSync(process.execPath, command, { env: env(), encoding: 'utf8' }).stdout)
  }
  const { complete } = run('status').find(({ dataset }: { dataset: string }) => dataset === 'telegram')
  expect(complete).toBeCloseTo(existing.length / (existing.length + 1), 12)
  expect(run('find-gaps', 'telegram')).toMatchObject([{ id: found?.id, missing: 4, state: 'pending' }])
})

describe('npm run migrate -- --check', () => {
  const SCRATCH = 'dao_data_schema_check_'
  const command = [...toProgram(join(ROOT, 'clickhouse/migrate.ts')), '--check']
  const scratches = async () => {
    const sql = `SELECT name FROM system.databases WHERE startsWith(name, '${SCRATCH}')`
    return database.server.rows({ name: 'scratches', sql, schema: z.object({ name: z.string() }) })
  }

  it('prints the changes of a migration, and drops its own scratch tables and day-old ones', async () => {
    await putInForce(database.db, silent)
    const [remaining, young] = [toScratchName(Date.now() - 2 * DAY_MS), toScratchName(Date.now() - DAY_MS / 2)]
    for (const name of [remaining, young])
      await database.server.command({ name: 'left', sql: `CREATE DATABASE ${name}` })
    const { status, stdout } = spawnSync(process.execPath, command, { env: env(), encoding: 'utf8' })
    expect(stdout).toContain('the schema matches the files')
    expect(stdout).toContain('the active registry matches the files')
    expect(status).toBe(0)
    expect(await scratches()).toEqual([{ name: young }])
    await dropScratch(database.server, young)
  })

  it.each([0, 1, 20, 40])(
    'drops its scratch tables and reports no result if it is stopped at table %i',
    async (created) => {
      const child = spawn(process.execPath, command, { env: env() })
      const ended = once(child, 'exit')
      const said = text(child.stdout)
      const sql = `SELECT count() AS tables FROM system.tables WHERE startsWith(database, '${SCRATCH}')`
      const schema = z.object({ tables: z.coerce.number() })
      const tables = async () => (await database.server.rows({ name: 'tables', sql, schema }))[0]?.tables
      await expect.poll(scratches, { interval: 1 }).toHaveLength(1)
      await expect.poll(tables, { interval: 1 }).toBeGreaterThanOrEqual(created)
      child.kill('SIGINT')
      expect(await ended).toEqual([130, null])
      expect(await said).toBe('')
      expect(await scratches()).toEqual([])
    },
  )
})

describe('commands with options that npm consumed', () => {
  it.each([
    [['backfill', 'prices', '--from', '2024-01-01', '--again'], '--from and --again'],
    [['jobs', 'list', '--state', 'delayed'], '--state'],
    [['restore', '/nowhere', '--into-existing'], '--into-existing'],
  ])('fail with a hint: npm run %j', (args, taken) => {
    const { status, stderr } = spawnSync('npm', ['run', '--silent', ...args], {
      cwd: ROOT,
      env: env(),
      encoding: 'utf8',
    })
    expect(stderr).toContain(
      `npm parsed ${taken} as its own option: put -- before the options, as in npm run ${args[0]} -- --`,
    )
    expect(status).toBe(1)
  })
})
