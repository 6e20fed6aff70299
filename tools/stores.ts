import { renameSync } from 'node:fs'
import { basename } from 'node:path'
import { migrate } from '../clickhouse/migrations.ts'
import { putInForce } from '../clickhouse/registry.ts'
import { type Config, hasValue, loadConfig, provideSettings } from '../shared/config/config.ts'
import { clickhouseDir, redisDir } from '../shared/config/own-stores.ts'
import { DataError } from '../shared/errors.ts'
import { findFreePort } from '../shared/free-port.ts'
import { createDatabase } from '../shared/store/store.ts'
import { createLog } from '../shared/telemetry/log.ts'
import type { Part, Supervisor } from './supervisor.ts'

/**
 * Starts the stores without a setting and upgrades the schema. A demo's stores from before the first release are moved
 * aside and replaced by new ones, because a demo's data can be generated again.
 * @throws DataError `schema_too_old` for any other database from before the first release, which is unchanged.
 */
export async function prepareStores(supervisor: Supervisor, mode: Config['mode']): Promise<Config> {
  const own = await toOwnStores()
  await Promise.all(own.map(supervisor.start))
  const config = loadConfig()
  try {
    await prepareSchema(config)
    return config
  } catch (error) {
    const isTooOld = error instanceof DataError && error.code === 'schema_too_old'
    // Both stores contain old data, and an external store cannot be moved.
    if (!isTooOld || mode !== 'demo' || own.length < 2) throw error
  }
  for (const store of [...own].reverse()) await supervisor.end(store)
  const renamed = renameStores(config.dataDir, new Date())
  const reason = `the stores in ${config.dataDir} are from before the first release`
  console.log(`${reason}: they are renamed to ${renamed.join(' and ')}, and the demo is filled again`)
  await Promise.all(own.map(supervisor.start))
  const newConfig = loadConfig()
  await prepareSchema(newConfig)
  return newConfig
}

/** Fixed ports, so that restarts keep them. Other processes find the stores through the data folder. */
async function toOwnStores(): Promise<readonly Part[]> {
  const stores: Part[] = []
  if (!hasValue('REDIS_URL'))
    stores.push({ name: 'Redis', file: 'tools/redis.ts', args: [String(await findFreePort())] })
  if (!hasValue('CLICKHOUSE_URL')) {
    provideSettings({ CLICKHOUSE_EMBEDDED_PORT: String(await findFreePort()) })
    stores.push({ name: 'ClickHouse', file: 'clickhouse/server.ts' })
  }
  return stores
}

async function prepareSchema({ clickhouse, logLevel }: Config): Promise<void> {
  const log = createLog('migrate', logLevel)
  const server = createDatabase(clickhouse, 'write', { database: 'default' })
  const db = createDatabase(clickhouse, 'write')
  try {
    await migrate(server, db, clickhouse.database, log)
    await putInForce(db, log)
  } finally {
    await Promise.all([server.close(), db.close()])
  }
}

/**
 * Renames the folders of both stores, so that new ones are created. Redis comes first: if the process is killed in
 * between, the next start finds the old database and repeats this. Old slot records beside a new database would prevent
 * the collection of these slots.
 * @returns their new names.
 */
function renameStores(dataDir: string, now: Date): string[] {
  const since = now.toISOString().replace(/\.\d+/, '').replaceAll(':', '-')
  const rename = (folder: string) => {
    const newName = `${folder}-until-${since}`
    renameSync(folder, newName)
    return basename(newName)
  }
  const redis = rename(redisDir(dataDir))
  return [rename(clickhouseDir(dataDir)), redis]
}
