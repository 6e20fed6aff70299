import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Redis } from 'ioredis'
import { createQueue, type DatasetQueue } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { startRedis } from '../../tools/redis-server.ts'
import type { Chunk } from '../../workers/schedule/chunks.ts'
import type { OwnClickHouse } from '../support/own-clickhouse.ts'
import { runChunks } from '../support/run-chunks.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'

const root = join(import.meta.dirname, '../..')

/** The system's processes over private stores, with a provider's stand-in. */
export interface Stack {
  readonly engine: OwnClickHouse
  readonly database: BenchDatabase
  readonly redis: Redis
  readonly blocking: Redis
  readonly prefix: string
  readonly queue: DatasetQueue
  /**
   * Starts a program of the system; `ready` has the facts that it announced. The program ends with the stack at the
   * latest.
   */
  start(
    name: string,
    file: string,
    settings?: Readonly<Record<string, string>>,
  ): Promise<Child & { ready: Record<string, unknown> }>
}

/**
 * Runs `work` with a stack and a provider that caches its responses, so that only the first response of each path is
 * computed.
 */
export function withStack<T>(name: string, work: (stack: Stack) => Promise<T>): Promise<T> {
  return withEngine((engine) =>
    withDatabase(engine, name, async (database) => {
      const dir = mkdtempSync(join(tmpdir(), 'bench-redis-'))
      const server = await startRedis(dir)
      const standIn = startChild('provider', join(root, 'test/upstream/main.ts'), { UPSTREAM_DATA_DIR: '' })
      const provider = await startMemory(String((await untilReady(standIn)).url))
      const redis = createRedis(server.url, silent)
      const blocking = createRedis(server.url, silent, 'blocking')
      const prefix = `bench-${name}`
      const queue = createQueue('prices', redis, prefix, 'history')
      const children = new Set<Child>()
      const env = { ...toEnvironment(database, provider.url), REDIS_URL: server.url, QUEUE_PREFIX: prefix }
      const start: Stack['start'] = async (title, file, settings = {}) => {
        const child = startChild(title, join(root, file), { ...env, ...settings })
        const ready = await untilReady(child)
        children.add(child)
        const stop = () => (children.delete(child) ? child.stop() : Promise.resolve())
        return { ...child, ready, stop }
      }
      try {
        return await work({ engine, database, redis, blocking, prefix, queue, start })
      } finally {
        await Promise.all([...children].map((child) => child.stop()))
        await queue.close()
        redis.disconnect()
        blocking.disconnect()
        await provider.close()
        await standIn.stop()
        await server.stop()
        rmSync(dir, { recursive: true, force: true })
      }
    }),
  )
}

/** Runs the chunks' jobs to their end. @returns the rows stored. */
export async function collect(stack: Stack, chunks: readonly Chunk[]): Promise<number> {
  const { queue, redis, blocking, prefix } = stack
  const outcome = await runChunks(queue, chunks, { redis, blocking, prefix, again: true, onStep: () => {} })
  const [failure] = outcome.failures.keys()
  if (failure !== undefined) throw new Error(`a part of the back-fill failed: ${failure}`)
  return outcome.rows
}

function toEnvironment({ config }: BenchDatabase, provider: string): Record<string, string> {
  return {
    ...toStoreSettings(config),
    COINMARKETCAP_BASE_URL: `${provider}/coinmarketcap`,
    COINMARKETCAP_API_KEY: 'bench',
    COINMARKETCAP_REQUESTS_PER_MINUTE: '60000',
    COINMARKETCAP_CREDITS_PER_MONTH: '1000000000',
    // Not used; keeps all traffic on this machine.
    COINGECKO_BASE_URL: `${provider}/coingecko`,
    LOG_LEVEL: 'silent',
    API_HOST: '127.0.0.1',
    API_PORT: '0',
    API_OPS_PORT: '0',
    WORKER_OPS_PORT: '0',
  }
}

interface CachedResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** An HTTP proxy that requests each path from `origin` once and then serves it from memory. */
async function startMemory(origin: string): Promise<{ url: string; close(): Promise<void> }> {
  const cached = new Map<string, Promise<CachedResponse>>()
  const server = createServer(async (request, response) => {
    const path = request.url ?? '/'
    const answer = cached.get(path) ?? fetchCached(`${origin}${path}`, request.headers)
    cached.set(path, answer)
    const { status, headers, body } = await answer
    response.writeHead(status, headers).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** The received bytes, compressed or not. */
async function fetchCached(url: string, headers: IncomingHttpHeaders): Promise<CachedResponse> {
  const [response] = (await once(get(url, { headers: { ...headers, host: new URL(url).host } }), 'response')) as [
    IncomingMessage,
  ]
  const body = await buffer(response)
  const { 'transfer-encoding': _, ...rest } = response.headers
  return { status: response.statusCode ?? 500, headers: { ...rest, 'content-length': String(body.length) }, body }
}
