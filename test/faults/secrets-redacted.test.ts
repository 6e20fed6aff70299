import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findFreePort } from '../../shared/free-port.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { toProgram } from '../../tools/children.ts'
import { type RedisServer, startRedis } from '../../tools/redis-server.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { sendJson, startProviderServer } from '../provider-server.ts'
import { type OwnClickHouse, startOwnClickHouse } from '../support/own-clickhouse.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { toStandInSettings } from '../upstream/settings.ts'

const toSecret = (name: string) => `${name}-secret-0123456789abcdef`
const REDIS_PASSWORD = toSecret('redis')
const CLICKHOUSE_PASSWORD = toSecret('clickhouse')
const KEYS = {
  COINMARKETCAP_API_KEY: toSecret('coinmarketcap'),
  COINGECKO_API_KEY: toSecret('coingecko'),
  MORALIS_API_KEY: toSecret('moralis'),
  ETHPLORER_API_KEY: toSecret('ethplorer'),
  X_BEARER_TOKEN: toSecret('x'),
  DISCORD_BOT_TOKEN: toSecret('discord'),
  TELEGRAM_BOT_TOKEN: toSecret('telegram'),
  SNAPSHOT_API_KEY: toSecret('snapshot'),
  GOLDRUSH_API_KEY: toSecret('goldrush'),
  OPS_TOKEN: toSecret('ops'),
}
/** Nodes have their keys in the path, in the query or in the credentials of the URL. */
const NODE_SECRETS = ['path', 'query', 'user'].map(toSecret)
const [IN_PATH, IN_QUERY, AS_USER] = NODE_SECRETS

const workers: ChildProcess[] = []
let redisDir: string
let redis: RedisServer
let redisUrl: string
let clickhouse: OwnClickHouse
let pipeline: Pipeline
let parrot: Awaited<ReturnType<typeof createParrot>>

beforeAll(async () => {
  redisDir = await mkdtemp(join(tmpdir(), 'dao-data-secrets-'))
  redis = await startRedis(redisDir)
  const admin = new Redis(redis.url)
  await admin.config('SET', 'requirepass', REDIS_PASSWORD)
  admin.disconnect()
  redisUrl = redis.url.replace('redis://', `redis://:${REDIS_PASSWORD}@`)
  clickhouse = await startOwnClickHouse({
    users: {
      writer: { name: 'writer', password: CLICKHOUSE_PASSWORD },
      reader: { name: 'reader', password: CLICKHOUSE_PASSWORD },
    },
  })
  parrot = await createParrot()
  const stores = { ...clickhouse.settings, REDIS_URL: redisUrl }
  pipeline = await createPipeline({ now: Date.now(), settings: stores })
})
afterAll(async () => {
  for (const worker of workers) worker.kill('SIGKILL')
  await pipeline?.close()
  await Promise.all([parrot?.close(), clickhouse?.stop(), redis?.stop()])
  await rm(redisDir, { recursive: true, force: true })
})

/** A provider that echoes the whole request in every kind of faulty response, one after the other. */
async function createParrot() {
  let requestCount = 0
  return startProviderServer((request, response, url) => {
    requestCount += 1
    const received = { url: url.href, ...request.headers }
    const ways = [
      () => sendJson(response, { error: received, message: JSON.stringify(received) }, 401),
      () => sendJson(response, { jsonrpc: '2.0', id: 0, error: { code: -32000, message: JSON.stringify(received) } }),
      () =>
        sendJson(response, { errors: [{ message: JSON.stringify(received) }], description: JSON.stringify(received) }),
      () => response.writeHead(500, { 'content-type': 'text/html' }).end(`<p>${JSON.stringify(received)}</p>`),
      () => response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${JSON.stringify(received)}</p>`),
      () => sendJson(response, `no JSON: ${JSON.stringify(received)}`),
      () => response.writeHead(302, { location: `http://elsewhere.invalid${url.href.slice(15)}` }).end(),
      () => request.socket.destroy(),
    ]
    ways[requestCount % ways.length]?.()
  })
}

/** Settings of a worker with every secret. */
async function toEnvironment(providers: string, rpcUrl: string) {
  return {
    PATH: process.env.PATH,
    ...toStandInSettings(providers),
    ...KEYS,
    RPC_URLS: `ethereum=${rpcUrl}`,
    RATINGS_SOURCE: `${providers}/ratings.csv?token=${KEYS.OPS_TOKEN}`,
    ...toStoreSettings(pipeline.config),
    LOG_LEVEL: 'trace',
    WORKER_OPS_PORT: String(await findFreePort()),
    WORKER_DRAIN_SECONDS: '0',
  }
}

/** A worker process, and its output until it exits. */
function startWorker(env: NodeJS.ProcessEnv) {
  const file = join(import.meta.dirname, '../../workers/programs/worker.ts')
  const worker = spawn(process.execPath, toProgram(file), { env, stdio: ['ignore', 'pipe', 'pipe'] })
  workers.push(worker)
  const said = Promise.all([text(worker.stdout), text(worker.stderr)])
  const exited = once(worker, 'exit')
  return { worker, said, exited }
}

/** The complete output of a worker process that tries each job once, with its metrics. */
async function listen(providers: string, rpcUrl: string): Promise<string> {
  const env = await toEnvironment(providers, rpcUrl)
  const { worker, said, exited } = startWorker(env)
  const round = `round ${Date.now()}`
  await Promise.all(
    jobs.map(async (job) => {
      const queue = pipeline.queue(job.name)
      const slot = toBucketStart(Date.now(), job.cadence)
      await queue.add(job.name, { kind: 'slot', slot }, { jobId: round })
      const isTried = async () => {
        const queued = await queue.getJob(round)
        return queued?.finishedOn !== undefined || (queued?.attemptsMade ?? 0) > 0
      }
      await expect.poll(isTried, { interval: 250, timeout: 600_000 }).toBe(true)
    }),
  )
  const metrics = await (await fetch(`http://127.0.0.1:${env.WORKER_OPS_PORT}/metrics`)).text()
  worker.kill('SIGTERM')
  await exited
  return [...(await said), metrics].join('\n')
}

/** All data in Redis under the queues' prefix, and the stored state of jobs and responses in ClickHouse. */
async function readStored(): Promise<string> {
  const client = new Redis(redisUrl)
  const found: unknown[] = []
  for (const key of await client.keys(`${pipeline.config.redis.prefix}:*`)) {
    const kind = await client.type(key)
    if (kind === 'hash') found.push(await client.hgetall(key))
    if (kind === 'string') found.push(await client.get(key))
    if (kind === 'stream') found.push(await client.xrange(key, '-', '+'))
  }
  client.disconnect()
  for (const table of ['job_state', 'coverage_notes']) {
    const sql = `SELECT * FROM ${table} FINAL`
    found.push(await pipeline.database.db.rows({ name: 'stored', sql, schema: z.unknown() }))
  }
  return JSON.stringify(found)
}

const SECRETS = [toSecret('wrong'), REDIS_PASSWORD, CLICKHOUSE_PASSWORD, ...Object.values(KEYS), ...NODE_SECRETS]
const findSecrets = (from: string) =>
  SECRETS.flatMap((secret) => {
    const at = from.indexOf(secret)
    return at < 0 ? [] : [from.slice(Math.max(0, at - 120), at + 60)]
  })

describe('worker output, Redis and ClickHouse', { timeout: 900_000 }, () => {
  it.each([
    ['answer', () => pipeline.upstream.url, (url: string) => `${url}/rpc/ethereum?apikey=${IN_QUERY}`],
    [
      'repeat what they are asked with',
      () => parrot.baseUrl,
      (url: string) => `${url}/v2/${IN_PATH}?apikey=${IN_QUERY}`,
    ],
    [
      'cannot be reached',
      () => 'http://127.0.0.1:9099',
      (url: string) => `${url.replace('//', `//${AS_USER}:${AS_USER}@`)}/v2/${IN_PATH}`,
    ],
  ])('contain no secret while providers %s', async (_how, toUrl, toNode) => {
    const url = toUrl()
    const said = await listen(url, toNode(url))
    expect(said).toContain('worker started')
    expect(findSecrets(said)).toEqual([])
    expect(findSecrets(await readStored())).toEqual([])
  })

  it.each([
    ['ClickHouse', (): object => ({ CLICKHOUSE_PASSWORD: toSecret('wrong') })],
    ['Redis', () => ({ REDIS_URL: redisUrl.replace(REDIS_PASSWORD, toSecret('wrong')) })],
  ])('contain no secret if the password of %s is wrong', async (_store, toWrong) => {
    const env = await toEnvironment(pipeline.upstream.url, `${pipeline.upstream.url}/rpc/ethereum`)
    const { worker, said, exited } = startWorker({ ...env, ...toWrong() })
    await new Promise<void>((resolve) => {
      let received = ''
      worker.stderr.on('data', (bytes) => {
        received += String(bytes)
        if (/AUTHENTICATION_FAILED|WRONGPASS/.test(received)) resolve()
      })
    })
    worker.kill('SIGTERM')
    await exited
    const all = (await said).join('\n')
    expect(findSecrets(all)).toEqual([])
  })
})
