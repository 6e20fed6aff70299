import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { migrate } from '../../clickhouse/migrations.ts'
import { loadReleased } from '../../clickhouse/schema/released.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { createDatabase, type Database } from '../../shared/store/store.ts'
import { startOwnClickHouse } from '../support/own-clickhouse.ts'
import { silent } from '../support/silent.ts'

const ROOT = join(import.meta.dirname, '../..')
const DATABASE = 'dao_data_demo'

async function withStore<T>(dataDir: string, work: (server: Database, db: Database) => Promise<T>): Promise<T> {
  const { settings, stop } = await startOwnClickHouse({ dataDir, readable: `${DATABASE}.*` })
  const config = parseConfig({ ...settings, CLICKHOUSE_DATABASE: DATABASE }).clickhouse
  const [server, db] = [createDatabase(config, 'write', { database: 'default' }), createDatabase(config, 'write')]
  try {
    return await work(server, db)
  } finally {
    await Promise.all([server.close(), db.close()])
    await stop()
  }
}

/** A data folder whose store has another checksum for a released migration, as programs before the first release left it. */
async function createOldFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dao-data-old-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await withStore(join(folder, 'clickhouse'), async (server, db) => {
    await migrate(server, db, DATABASE, silent)
    const [name] = loadReleased().keys()
    const row = { name, checksum: 'of another file', applied_at: new Date().toISOString() }
    await db.insert({ table: 'migrations', rows: [row] })
  })
  return folder
}

const readChecksums = (dataDir: string) =>
  withStore(dataDir, (_, db) => {
    const sql = 'SELECT checksum FROM migrations FINAL ORDER BY name'
    return db.rows({ name: 'checksums', sql, schema: z.object({ checksum: z.string() }) })
  })

async function startSystem(mode: 'demo' | 'live', folder: string) {
  const ops = {
    API_OPS_PORT: '0',
    SCHEDULER_OPS_PORT: '0',
    WORKER_OPS_PORT: '0',
    API_PORT: String(await findFreePort()),
  }
  // Uses its own stores, regardless of the environment and .env.
  const stores = { CLICKHOUSE_URL: '', REDIS_URL: '' }
  const env = {
    ...process.env,
    ...ops,
    ...stores,
    DATA_DIR: folder,
    CLICKHOUSE_DATABASE: DATABASE,
    LOG_LEVEL: 'silent',
  }
  const system = spawn(process.execPath, ['--import', 'tsx', 'tools/stack.ts', mode], { cwd: ROOT, env })
  const said = { text: '' }
  for (const output of [system.stdout, system.stderr])
    output.setEncoding('utf8').on('data', (text) => (said.text += text))
  return { said, system, ended: once(system, 'exit') }
}

it('demo mode renames stores older than the first release, and fills new ones', async () => {
  const folder = await createOldFolder()
  const { said, system, ended } = await startSystem('demo', folder)
  await vi.waitFor(() => expect(said.text).toContain('dao-data is up'), { timeout: 120_000 })
  system.kill('SIGTERM')
  await ended
  const backupPath =
    /from before the first release: they are renamed to (clickhouse-until-\S+) and (redis-until-\S+), /.exec(said.text)
  expect(await readdir(folder)).toEqual(
    expect.arrayContaining(['clickhouse', 'redis', ...(backupPath?.slice(1) ?? ['none'])]),
  )
  const released = [...loadReleased().values()]
  expect((await readChecksums(join(folder, 'clickhouse'))).map(({ checksum }) => checksum)).toEqual(
    expect.arrayContaining(released),
  )
  const [first] = await readChecksums(join(folder, String(backupPath?.[1])))
  expect(first?.checksum).toBe('of another file')
})

it('live mode rejects stores older than the first release with one line, and leaves them unchanged', async () => {
  const folder = await createOldFolder()
  const { said, ended } = await startSystem('live', folder)
  expect(await ended).toEqual([1, null])
  expect(said.text).toMatch(/^dao_data_demo was made before the first release .* npm run backfill\n$/)
  expect((await readdir(folder)).sort()).toEqual(['clickhouse', 'redis'])
  const [first] = await readChecksums(join(folder, 'clickhouse'))
  expect(first?.checksum).toBe('of another file')
})
