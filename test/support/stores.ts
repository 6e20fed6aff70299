import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ClickHouseContainer } from '@testcontainers/clickhouse'
import { GenericContainer, Wait } from 'testcontainers'
import type { TestProject } from 'vitest/node'
import { migrate } from '../../clickhouse/migrations.ts'
import { parseConfig } from '../../shared/config/config.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { buildIfNeeded } from '../../tools/build.ts'
import { runCompiledIn } from '../../tools/children.ts'
import { startRedis } from '../../tools/redis-server.ts'
import { startOwnClickHouse, TEST_DATABASES } from './own-clickhouse.ts'
import { readTemplate, type SchemaTemplate } from './schema-copy.ts'
import { silent } from './silent.ts'

/** Addresses of the ClickHouse and the Redis that all test files of a run share. */
export interface Stores {
  /** Settings: addresses, users and passwords. */
  readonly settings: Readonly<Record<string, string>>
  readonly template: SchemaTemplate
  /** The name of the shared demo database, and of the Redis list with the token for its collection. */
  readonly demo: string
  /**
   * Whether the server ends with the run, and all databases with it. On an external server, databases must be dropped.
   */
  readonly endsWithRun: boolean
}

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder with the compiled programs. */
    compiled: string
    stores: Stores
  }
}

type Started<T> = T & { stop(): Promise<unknown> }

const PASSWORD = 'test'

/**
 * State shared by the projects of one run. Vitest loads this file once per project, so the state is global to the
 * process.
 */
interface Environment {
  compiled: string
  readonly stores: Promise<Stores & { stop(): Promise<void> }>
}
const global: { daoDataTests?: Environment } = globalThis as never

/**
 * Compiles the programs and starts ClickHouse and Redis, once per run, for the projects that name this file as their
 * global setup. The stores are CLICKHOUSE_URL and REDIS_URL if they are set, containers if Docker runs, else
 * ClickHouse's own server from its package and a private Redis.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  global.daoDataTests ??= createEnvironment(project)
  const environment = global.daoDataTests
  const { stop, ...stores } = await environment.stores
  project.provide('compiled', environment.compiled)
  project.provide('stores', stores)
  project.onTestsRerun(() => project.provide('compiled', environment.compiled))
  return stop
}

function createEnvironment(project: TestProject): Environment {
  const environment = { compiled: buildIfNeeded(), stores: startStores() }
  runCompiledIn(environment.compiled)
  project.onTestsRerun(() => {
    environment.compiled = buildIfNeeded()
  })
  return environment
}

async function startStores(): Promise<Stores & { stop(): Promise<void> }> {
  const docker = spawnSync('docker', ['info'], { stdio: 'ignore' }).status === 0
  const [clickhouse, redis] = await Promise.all([startClickHouse(docker), startRedisStore(docker)])
  console.log(`ClickHouse: ${clickhouse.kind}, Redis: ${redis.kind}`)
  const settings = { ...clickhouse.settings, REDIS_URL: redis.url }
  const template = await createTemplate(settings)
  const demo = `${TEST_DATABASES}demo_${randomBytes(6).toString('hex')}`
  const tokens = createRedis(redis.url, silent)
  await tokens.rpush(demo, 'nothing')
  const stop = async () => {
    try {
      await dropDatabase(settings, template.database)
      await dropDatabase(settings, demo)
      await tokens.del(demo)
    } finally {
      tokens.disconnect()
      await Promise.all([clickhouse.stop(), redis.stop()])
    }
  }
  let stopped: Promise<void> | undefined
  return {
    settings,
    template,
    demo,
    endsWithRun: !process.env.CLICKHOUSE_URL,
    // Each project of the run calls it.
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}

async function createTemplate(settings: Stores['settings']): Promise<SchemaTemplate> {
  const name = `${TEST_DATABASES}template_${randomBytes(6).toString('hex')}`
  const config = parseConfig({ ...settings, CLICKHOUSE_DATABASE: name }).clickhouse
  const server = createDatabase(config, 'write', { database: 'default' })
  const db = createDatabase(config, 'write')
  await migrate(server, db, name, silent)
  const template = await readTemplate(db)
  await Promise.all([db.close(), server.close()])
  return template
}

async function dropDatabase(settings: Stores['settings'], name: string): Promise<void> {
  const server = createDatabase(parseConfig(settings).clickhouse, 'write', { database: 'default' })
  await server.command({ name: 'drop', sql: `DROP DATABASE IF EXISTS ${name}` })
  await server.close()
}

async function startClickHouse(
  docker: boolean,
): Promise<Started<{ kind: string; settings: Readonly<Record<string, string>> }>> {
  const configured = process.env.CLICKHOUSE_URL
  if (configured) {
    const { CLICKHOUSE_USER: user = 'default', CLICKHOUSE_PASSWORD: password = '' } = process.env
    return { kind: 'from CLICKHOUSE_URL', settings: toSettings(configured, user, password), stop: async () => {} }
  }
  if (!docker) {
    const own = await startOwnClickHouse()
    return { kind: "the package's own server", settings: own.settings, stop: () => own.stop() }
  }
  const container = await new ClickHouseContainer('clickhouse/clickhouse-server:25.8')
    .withUsername('writer')
    .withPassword(PASSWORD)
    .withEnvironment({ CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT: '1' })
    .start()
  return {
    kind: 'container',
    settings: toSettings(container.getHttpUrl(), 'writer', PASSWORD),
    stop: () => container.stop(),
  }
}

/** An external server has only one known user, who is also the reader. */
const toSettings = (url: string, user: string, password: string) => ({
  CLICKHOUSE_URL: url,
  CLICKHOUSE_USER: user,
  CLICKHOUSE_PASSWORD: password,
  CLICKHOUSE_READ_USER: user,
  CLICKHOUSE_READ_PASSWORD: password,
})

async function startRedisStore(docker: boolean): Promise<Started<{ kind: string; url: string }>> {
  const configured = process.env.REDIS_URL
  if (configured) return { kind: 'from REDIS_URL', url: configured, stop: async () => {} }
  if (docker) {
    const container = await new GenericContainer('redis:7.4-alpine')
      .withCommand(['redis-server', '--maxmemory-policy', 'noeviction'])
      .withExposedPorts(6379)
      .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
      .start()
    const url = `redis://${container.getHost()}:${container.getMappedPort(6379)}`
    return { kind: 'container', url, stop: () => container.stop() }
  }
  const dir = mkdtempSync(join(tmpdir(), 'dao-data-redis-'))
  const redis = await startRedis(dir)
  const stop = async () => {
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  return { kind: 'private server', url: redis.url, stop }
}
