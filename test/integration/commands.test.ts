import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { toBucketStart } from '../../shared/intervals.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { toProgram } from '../../tools/children.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { storeMarket } from '../support/market.ts'
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

describe('the exit code of gaps', () => {
  const gaps = (...args: string[]) => {
    const command = [...toProgram(join(ROOT, 'workers/commands/find-gaps.ts')), ...args]
    const { status, stderr } = spawnSync(process.execPath, command, { env: env(), encoding: 'utf8' })
    return { status, stderr }
  }
  const keys = loadRegistry()
    .tokens.slice(0, 2)
    .map(({ key }) => key)
  const store = (points: number, until: number) => storeMarket(database.db, { keys, until, points, stepMs: STEP })

  it('is 0 for what is whole and fresh, and 3 for what has a hole', async () => {
    const now = toBucketStart(Date.now(), '5m')
    await store(5, now)
    expect(gaps('prices')).toMatchObject({ status: 0 })
    await store(2, now - 10 * STEP)
    expect(gaps('prices')).toMatchObject({ status: 3 })
    // What has a hole may be stale as well.
    expect(gaps('prices', '--to', new Date(now - STEP).toISOString())).toMatchObject({ status: 3 })
  })

  it('is 2 for what is stale or empty, unless the range has ended', async () => {
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

describe('options that npm keeps for itself', () => {
  it.each([
    [['backfill', 'prices', '--from', '2024-01-01', '--again'], '--from and --again'],
    [['jobs', 'list', '--state', 'delayed'], '--state'],
    [['restore', '/nowhere', '--into-existing'], '--into-existing'],
  ])('are told: npm run %j', (args, taken) => {
    const { status, stderr } = spawnSync('npm', ['run', '--silent', ...args], {
      cwd: ROOT,
      env: env(),
      encoding: 'utf8',
    })
    expect(stderr).toContain(`npm took ${taken} for itself: put -- before the options, as in npm run ${args[0]} -- --`)
    expect(status).toBe(1)
  })
})
