import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { readRedisAccess, redisDir, withOwnStores } from '../../shared/config/own-stores.ts'
import { findFreePort } from '../../shared/free-port.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { findProcesses } from '../support/system-processes.ts'
import { createUpstream, type Upstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Timeout for a process to restart on a busy machine. */
const BACK_MS = 170_000

let upstream: Upstream
let folder: string
let apiUrl: string
let settings: Record<string, string>
let npm: ChildProcess
let said = ''

beforeAll(async () => {
  upstream = await createUpstream({ registry: loadRegistry() })
  folder = await mkdtemp(join(tmpdir(), 'dao-data-parts-'))
  const port = await findFreePort()
  apiUrl = `http://127.0.0.1:${port}`
  const ops = { API_OPS_PORT: '0', SCHEDULER_OPS_PORT: '0', WORKER_OPS_PORT: '0' }
  // A dataset with rare commits: cached responses of other datasets stay valid.
  const one = { WORKER_QUEUES: 'tvl', LOG_LEVEL: 'silent' }
  settings = { ...toStandInSettings(upstream.url), ...ops, ...one, DATA_DIR: folder, API_PORT: String(port) }
  await startSystem()
}, 240_000)
afterAll(async () => {
  for (const { pid } of parts()) process.kill(pid, 'SIGKILL')
  await upstream?.close()
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
})

/** Processes of the system; Redis overwrites its environment with its process title, so it is found by its address. */
function parts() {
  const redis = readRedisAccess(redisDir(folder))?.url?.replace(/^.*@/, 'redis-server ') ?? 'none'
  return findProcesses(
    ({ command, environment }) => environment.includes(`DATA_DIR=${folder}`) || command.startsWith(redis),
  )
}

const loadAccess = (): Config => parseConfig({ ...settings, ...withOwnStores(settings) })

/** The system as an operator starts it; resolves when it is up. */
async function startSystem(): Promise<void> {
  said = ''
  npm = spawn('npm', ['run', '--silent', 'live'], { cwd: ROOT, env: { ...process.env, ...settings } })
  for (const output of [npm.stdout, npm.stderr]) output?.setEncoding('utf8').on('data', (text) => (said += text))
  await vi.waitFor(() => expect(said).toContain('dao-data is up'), { timeout: BACK_MS })
}

async function kill(file: string): Promise<void> {
  const found = parts().find(({ command }) => command.includes(file))
  if (found === undefined) throw new Error(`${file} does not run`)
  process.kill(found.pid, 'SIGKILL')
}

/** Writes to both stores continuously, and records the writes that each of them has acknowledged. */
function startWriting() {
  const acknowledged = { clickhouse: [] as number[], redis: [] as number[] }
  const over = new AbortController()
  const { clickhouse, redis: store } = loadAccess()
  const redis = new Redis(store.url, { maxRetriesPerRequest: 0, retryStrategy: () => 100 })
  redis.on('error', () => {})
  const { url, user: username, password } = clickhouse
  const client = createClient({ url, username, password, log: { level: ClickHouseLogLevel.OFF } })
  const insert = async (n: number) => {
    await client.insert({ table: 'kept', values: [{ n }], format: 'JSONEachRow' })
    acknowledged.clickhouse.push(n)
  }
  const push = async (n: number) => {
    await redis.rpush('kept', n)
    acknowledged.redis.push(n)
  }
  const goOn = async (write: (n: number) => Promise<void>) => {
    // An unavailable store rejects without a delay, so the loop waits until it is back.
    for (let n = 0; !over.signal.aborted; n += 1) await write(n).catch(() => wait(20))
  }
  const loops = [goOn(insert), goOn(push)]
  return {
    acknowledged,
    create: () => client.command({ query: 'CREATE TABLE IF NOT EXISTS kept (n UInt32) ENGINE = MergeTree ORDER BY n' }),
    readStored: async () => {
      const rows = await client.query({ query: 'SELECT DISTINCT n FROM kept', format: 'JSONCompactEachRow' })
      const inClickHouse = new Set((await rows.json<[number]>()).map(([n]) => n))
      return { inClickHouse, inRedis: new Set((await redis.lrange('kept', 0, -1)).map(Number)) }
    },
    stop: async () => {
      over.abort()
      await Promise.all(loops)
      await client.close()
      redis.disconnect()
    },
  }
}

/** Requests cached and uncached responses continuously, and counts the responses by status. */
function startAsking() {
  const statuses = { kept: new Map<number, number>(), missed: new Map<number, number>() }
  let isOver = false
  const request = async (path: string, counts: Map<number, number>) => {
    // There is no response while the API itself is down.
    const { status } = await fetch(apiUrl + path).catch(() => ({ status: 0 }))
    counts.set(status, (counts.get(status) ?? 0) + 1)
    await wait(5)
  }
  const goOn = async () => {
    for (let n = 0; !isOver; n += 1) {
      await request('/data/daos/treasury?limit=3', statuses.kept)
      await request(
        `/data/tokens/historic-financial?name=Uniswap&interval=1d&start=2023-01-01&limit=${1 + (n % 900)}`,
        statuses.missed,
      )
    }
  }
  const loop = goOn()
  return {
    countKept: () => statuses.kept.get(200) ?? 0,
    take: () => {
      const taken = { kept: [...statuses.kept.keys()], missed: [...statuses.missed.keys()] }
      statuses.kept.clear()
      statuses.missed.clear()
      return taken
    },
    stop: async () => {
      isOver = true
      await loop
    },
  }
}

it('npm start restarts each killed process without losing an acknowledged write', async () => {
  const writing = startWriting()
  await writing.create()
  const asking = startAsking()
  await expect.poll(() => asking.countKept(), { timeout: BACK_MS }).toBeGreaterThan(20)
  const kills = [
    ['ClickHouse', 'clickhouse/server.ts'],
    ['Redis', 'redis-server'],
    ['Redis', 'tools/redis.ts'],
    ['worker', 'workers/programs/worker.ts'],
    ['scheduler', 'workers/programs/scheduler.ts'],
    ['API', 'api/main.ts'],
  ] as const
  for (const [name, file] of kills) {
    said = ''
    asking.take()
    await kill(file)
    await expect.poll(() => said, { timeout: BACK_MS }).toContain(`${name} is back`)
    const before = { clickhouse: writing.acknowledged.clickhouse.length, redis: writing.acknowledged.redis.length }
    await expect
      .poll(() => writing.acknowledged.clickhouse.length, { timeout: BACK_MS })
      .toBeGreaterThan(before.clickhouse)
    await expect.poll(() => writing.acknowledged.redis.length, { timeout: BACK_MS }).toBeGreaterThan(before.redis)
    const answers = asking.take()
    expect([200, 503, ...(name === 'API' ? [0] : [])], name).toEqual(expect.arrayContaining(answers.missed))
    if (name === 'ClickHouse') expect(answers.kept).toEqual([200])
  }
  await Promise.all([asking.stop(), writing.stop()])

  // All at the same time, while both stores receive writes; the next start continues from there.
  const more = startWriting()
  await expect.poll(() => more.acknowledged.clickhouse.length, { timeout: BACK_MS }).toBeGreaterThan(20)
  const exited = once(npm, 'exit')
  for (const { pid } of parts()) process.kill(pid, 'SIGKILL')
  await exited
  await more.stop()
  await startSystem()
  const after = startWriting()
  const { inClickHouse, inRedis } = await after.readStored()
  for (const { acknowledged } of [writing, more]) {
    expect(acknowledged.clickhouse.filter((n) => !inClickHouse.has(n))).toEqual([])
    expect(acknowledged.redis.filter((n) => !inRedis.has(n))).toEqual([])
  }
  await after.stop()
}, 600_000)

it('npm start ends all its processes when npm is stopped or killed', async () => {
  npm.kill('SIGTERM')
  await expect.poll(parts).toEqual([])
  await startSystem()
  npm.kill('SIGKILL')
  await expect.poll(parts).toEqual([])
}, 600_000)
