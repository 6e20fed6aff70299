import { execFileSync, spawnSync } from 'node:child_process'
import { once, setMaxListeners } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { createChangeFeed, publishChange } from '../../shared/store/store.ts'
import { planBackfill, runBackfills } from '../../workers/backfill/plan.ts'
import { createRateLimit } from '../../workers/http/limits.ts'
import prices from '../../workers/jobs/prices.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { canCluster, type RedisClusterServers, startRedisCluster } from '../support/redis-cluster.ts'
import { silent } from '../support/silent.ts'

if (!canCluster) console.log('no redis-server and redis-cli here: the tests over a Redis Cluster are skipped')

describe.skipIf(!canCluster)('Redis Cluster of three nodes', () => {
  let servers: RedisClusterServers
  let pipeline: Pipeline
  beforeAll(async () => {
    servers = await startRedisCluster()
    pipeline = await createPipeline({ settings: { REDIS_URL: servers.url } })
  })
  afterAll(async () => {
    await pipeline?.close()
    await servers?.stop()
  })

  it('passes slots from the scheduler to workers', async () => {
    const { context, registry, database, config, clock } = pipeline
    await requireRedis(context.redis)
    const { prefix } = config.redis
    expect(prefix).toMatch(/^\{test-\w+\}$/)
    const scheduler = { db: database.db, redis: context.redis, prefix, registry, log: silent, now: () => clock.now }
    for (const job of [prices, tvl]) {
      const runner = createRunner(job, context)
      const done = once(runner, 'completed')
      await enqueueDue({ job, queues: pipeline.queues(job.name) }, scheduler)
      await enqueueDue({ job, queues: pipeline.queues(job.name) }, scheduler)
      expect((await done)[1]).toMatchObject({ rows: expect.toSatisfy((rows) => rows > 10) })
      await runner.close()
      expect(await pipeline.queue(job.name).getJobCounts('completed', 'waiting')).toEqual({ completed: 1, waiting: 0 })
    }
  })

  it('runs a back-fill and the computations that follow', async () => {
    const { context, registry, config } = pipeline
    const runner = createRunner(prices, context, 'history')
    const request = { dataset: 'prices', from: '2024-04-30', to: '2024-05-01', interval: '1h', only: 'UNI,AAVE' }
    const backfill = planBackfill(request, registry, pipeline.clock.now)
    const { redis } = context
    const stores = { db: context.db, redis, prefix: config.redis.prefix, now: () => pipeline.clock.now }
    expect(await runBackfills([backfill], stores)).toBe(true)
    const counts = await pipeline.queue('market-cap', 'history').getJobCounts('delayed', 'waiting')
    expect(Number(counts.delayed) + Number(counts.waiting)).toBeGreaterThan(0)
    await runner.close()
  })

  it('spreads queues over its nodes, with each queue on one node', async () => {
    const owners = new Map<string, Set<string>>()
    for (const { url } of servers.nodes) {
      const node = createRedis(url, silent)
      for (const key of await node.keys('*')) {
        const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key
        owners.set(tag, (owners.get(tag) ?? new Set()).add(url))
      }
      node.disconnect()
    }
    const queues = [...owners].filter(([tag]) => tag.includes(':'))
    expect(queues.length).toBeGreaterThanOrEqual(3)
    for (const [tag, nodes] of owners) expect([tag, nodes.size]).toEqual([tag, 1])
  })

  it('enforces a rate limit over all processes', async () => {
    const processes = [0, 1, 2].map(() => createRedis(servers.url, silent))
    const limits = processes.map((redis) =>
      createRateLimit('provider', 60, { sharedBy: { redis, prefix: pipeline.config.redis.prefix, log: silent } }),
    )
    await Promise.all(processes.map((redis) => redis.ping()))
    let granted = 0
    const signal = new AbortController()
    setMaxListeners(0, signal.signal)
    const grants = limits.flatMap((limit) => Array.from({ length: 12 }, () => limit.take(signal.signal)))
    for (const one of grants)
      one.then(
        () => (granted += 1),
        () => undefined,
      )
    for (let n = 0; n < 60; n += 1) await Promise.all(processes.map((redis) => redis.set('{test}:beat', n)))
    expect(granted).toBeGreaterThanOrEqual(12)
    expect(granted).toBeLessThanOrEqual(13)
    signal.abort(new Error('over'))
    for (const redis of processes) redis.disconnect()
  })

  it('delivers change events, also after the node that delivered them is down', async () => {
    const { context, config, database } = pipeline
    const { prefix } = config.redis
    const subscriber = createRedis(servers.url, silent, 'subscriber')
    const feed = createChangeFeed(subscriber, { prefix, db: database.db, log: silent })
    const onReceived = (expected: string) =>
      new Promise<void>((resolve) => feed.follow((change) => change?.dataset === expected && resolve()))
    await until(() => subscriber.status === 'ready' && feed.version('prices') !== undefined, feed)
    const received = onReceived('prices')
    await publishChange({ db: database.db, redis: context.redis, prefix }, { dataset: 'prices' })
    await received
    const before = feed.version('prices')
    const lost = once(subscriber, 'close')
    await servers.nodes[0]?.stop()
    await lost
    await once(subscriber, 'ready')
    expect(subscriber.options.port).toBe(Number(new URL(servers.nodes[1]?.url ?? '').port))
    await until(() => String(feed.version('prices')).startsWith('redis'), feed)
    expect(feed.version('prices')).not.toBe(before)
    feed.close()
  })
})

/** Writes and reads keys of many hash slots and receives published messages, over the connections of all programs. */
const TLS_CLIENT = `
  import { createRedis } from ${JSON.stringify(join(import.meta.dirname, '../../shared/queue/redis.ts'))}
  import { createLog } from ${JSON.stringify(join(import.meta.dirname, '../../shared/telemetry/log.ts'))}
  const [url] = process.argv.slice(-1)
  const log = createLog('test', 'warn')
  const [redis, subscriber] = [createRedis(url, log), createRedis(url, log, 'subscriber')]
  const keys = Array.from({ length: 50 }, (_, n) => 'key-' + n)
  await Promise.all(keys.map((key) => redis.set(key, key)))
  const read = await Promise.all(keys.map((key) => redis.get(key)))
  if (String(read) !== String(keys)) throw new Error('read ' + read)
  await subscriber.subscribe('channel')
  subscriber.on('message', () => process.exit(0))
  await redis.publish('channel', 'message')`

const canSign = spawnSync('openssl', ['version']).status === 0

describe.skipIf(!canCluster || !canSign)('Redis Cluster over TLS with a certificate for a host name', () => {
  const dir = mkdtempSync(join(tmpdir(), 'dao-data-redis-tls-'))
  const [certificate, key] = [join(dir, 'certificate.pem'), join(dir, 'key.pem')]
  beforeAll(() => {
    const subject = ['-subj', '/CN=test', '-addext', 'subjectAltName=DNS:localhost']
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', ...kind, ...subject, '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  })
  afterAll(() => rmSync(dir, { recursive: true, force: true }))

  it.each(['hostname', 'ip'] as const)(
    'accepts connections if its nodes announce themselves by %s',
    async (announced) => {
      const tls = await startRedisCluster({ certificate, key, announced })
      // Node reads trusted certificates only at process start.
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate }
      const args = ['--import', 'tsx', '--input-type=module', '-e', TLS_CLIENT, tls.url]
      const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 60_000 })
      await tls.stop()
      expect([status, stderr]).toEqual([0, ''])
    },
  )
})

/** Resolves when `isSo` is true, which is checked at every change event. */
function until(isSo: () => boolean, feed: { follow(listener: () => void): void }): Promise<void> {
  return new Promise((resolve) => {
    const check = () => isSo() && resolve()
    feed.follow(check)
    check()
  })
}
