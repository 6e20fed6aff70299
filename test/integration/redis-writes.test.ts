import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createCounting } from '../../api/admission/counting.ts'
import { createRedis, requireWritable } from '../../shared/queue/redis.ts'
import { type RedisServer, startRedis } from '../../tools/redis-server.ts'
import { createApiDatabase, createHandFeed, startApi } from '../support/api.ts'
import { createTestConfig } from '../support/database.ts'
import { startRedisDoor } from '../support/redis-door.ts'
import { silent } from '../support/silent.ts'

const dir = mkdtempSync(join(tmpdir(), 'dao-data-redis-writes-'))
let servers: [RedisServer, RedisServer]
let admins: Redis[]
let door: Awaited<ReturnType<typeof startRedisDoor>>
beforeAll(async () => {
  servers = await Promise.all([startRedis(join(dir, 'first')), startRedis(join(dir, 'second'))])
  admins = servers.map(({ url }) => new Redis(url))
})
afterAll(async () => {
  for (const admin of admins ?? []) admin.disconnect()
  await Promise.all((servers ?? []).map((server) => server.stop()))
  rmSync(dir, { recursive: true, force: true })
})
beforeEach(async () => {
  door = await startRedisDoor(servers[0].url)
})
afterEach(async () => {
  await Promise.all(admins.map((admin) => admin.replicaof('NO', 'ONE')))
  await Promise.all(admins.map((admin) => admin.config('SET', 'maxmemory', '0')))
  await door.close()
})

/** The second server becomes the master and takes the address; connections to the first one stay open. */
async function failOver(): Promise<void> {
  const { hostname, port } = new URL(servers[1].url)
  await admins[0]?.replicaof(hostname, Number(port))
  door.leadTo(servers[1].url)
}

function connectTo(use: Parameters<typeof createRedis>[2]): Redis {
  const redis = createRedis(door.url, silent, use)
  onTestFinished(() => redis.disconnect())
  return redis
}

describe('requireWritable', () => {
  it.each(['commands', 'blocking'] as const)('reaches the new master after a failover, over %s', async (use) => {
    const redis = connectTo(use)
    await requireWritable(redis, ['test'])
    await failOver()
    expect(await redis.ping()).toBe('PONG')
    await expect(requireWritable(redis, ['test'])).rejects.toThrow('READONLY')
    await requireWritable(redis, ['test'])
    expect(await admins[1]?.exists('test:ready')).toBe(1)
  })

  it('rejects with the reason when Redis is at its memory limit', async () => {
    const redis = connectTo('commands')
    await admins[0]?.config('SET', 'maxmemory', '1')
    expect(await redis.ping()).toBe('PONG')
    await expect(requireWritable(redis, ['test'])).rejects.toThrow(/OOM .*maxmemory/)
  })
})

describe('GET /health/ready', () => {
  const config = createTestConfig()
  let database: Awaited<ReturnType<typeof createApiDatabase>>
  beforeAll(async () => {
    database = await createApiDatabase(config)
  })
  afterAll(() => database?.drop())

  async function start(anonymous: { requests: number; seconds: number } | undefined) {
    const counting = createCounting(connectTo('counter'), config.redis.prefix)
    const limits = { keys: undefined, anonymous, counting }
    const api = await startApi({ config, ...database, changeFeed: createHandFeed(), limits })
    onTestFinished(api.close)
    return async () => {
      const answer = await fetch(`${api.url}/health/ready`)
      return [answer.status, ((await answer.json()) as { limits: string }).limits]
    }
  }

  it('reports limits as off if none are set', async () => {
    const read = await start(undefined)
    expect(await read()).toEqual([200, 'off'])
  })

  it('reports limits as per process while Redis rejects writes', async () => {
    const read = await start({ requests: 100, seconds: 60 })
    await expect.poll(read).toEqual([200, 'shared'])
    await admins[0]?.config('SET', 'maxmemory', '1')
    expect(await read()).toEqual([200, 'per process'])
    await admins[0]?.config('SET', 'maxmemory', '0')
    expect(await read()).toEqual([200, 'shared'])
    await failOver()
    expect(await read()).toEqual([200, 'per process'])
    await expect.poll(read).toEqual([200, 'shared'])
  })
})
