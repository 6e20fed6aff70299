import { storeRegistry } from '../../clickhouse/registry.ts'
import type { Config } from '../../shared/config.ts'
import { createQueue, type DatasetQueue } from '../../shared/queues.ts'
import { createRedis } from '../../shared/redis.ts'
import { loadRegistry, type Registry } from '../../shared/registry/registry.ts'
import { createFollowUps } from '../../workers/follow-ups.ts'
import { jobs } from '../../workers/jobs.ts'
import { createHttpClients } from '../../workers/providers/http.ts'
import type { RunnerContext } from '../../workers/runner.ts'
import type { Chain } from '../upstream/chain.ts'
import { createUpstream } from '../upstream/server.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from './database.ts'
import { silent } from './silent.ts'

type Upstream = Awaited<ReturnType<typeof createUpstream>>

/** Everything between the providers' stand-in and the tables, with a clock that stands still until it is moved. */
export interface Pipeline {
  readonly config: Config
  readonly database: TestDatabase
  readonly upstream: Upstream
  readonly registry: Registry
  readonly context: RunnerContext
  readonly clock: { now: number }
  queue(dataset: string): DatasetQueue
  close(): Promise<void>
}

export interface PipelineOptions {
  readonly now?: number
  /** A clock of the test's own, in place of one that stands still at `now`. */
  readonly clock?: { now: number }
  readonly dataDir?: string
  /** Chains in place of the world's own, by slug. */
  readonly chains?: Readonly<Record<string, Chain>>
  readonly settings?: Readonly<Record<string, string>>
}

export async function createPipeline(options: PipelineOptions = {}): Promise<Pipeline> {
  const registry = loadRegistry()
  const clock = options.clock ?? { now: options.now ?? Date.parse('2024-05-06T07:05:09Z') }
  const { dataDir = null, chains = {} } = options
  const upstream = await createUpstream({ registry, now: () => clock.now, dataDir, chains })
  const config = createTestConfig({
    COINMARKETCAP_BASE_URL: `${upstream.url}/coinmarketcap`,
    COINMARKETCAP_API_KEY: 'test',
    COINGECKO_BASE_URL: `${upstream.url}/coingecko/api/v3`,
    DEFILLAMA_BASE_URL: `${upstream.url}/defillama`,
    DEFILLAMA_COINS_BASE_URL: `${upstream.url}/defillama-coins`,
    RPC_URLS: `ethereum=${upstream.url}/rpc/ethereum`,
    RPC_REQUESTS_PER_MINUTE: '60000',
    COINMARKETCAP_REQUESTS_PER_MINUTE: '60000',
    COINGECKO_REQUESTS_PER_MINUTE: '60000',
    DEFILLAMA_REQUESTS_PER_MINUTE: '60000',
    MORALIS_BASE_URL: `${upstream.url}/moralis/api/v2.2`,
    MORALIS_API_KEY: 'test',
    MORALIS_REQUESTS_PER_MINUTE: '60000',
    ETHPLORER_BASE_URL: `${upstream.url}/ethplorer`,
    ETHPLORER_BNB_BASE_URL: `${upstream.url}/binplorer`,
    ETHPLORER_REQUESTS_PER_MINUTE: '60000',
    ETHPLORER_REQUESTS_PER_HOUR: '60000',
    X_BASE_URL: `${upstream.url}/x`,
    X_BEARER_TOKEN: 'test',
    X_REQUESTS_PER_MINUTE: '60000',
    SENTIMENT_SAMPLE_SIZE: '20',
    DISCORD_BASE_URL: `${upstream.url}/discord/api/v10`,
    DISCORD_REQUESTS_PER_MINUTE: '60000',
    TELEGRAM_BASE_URL: `${upstream.url}/telegram`,
    TELEGRAM_BOT_BASE_URL: `${upstream.url}/telegram-bot`,
    TELEGRAM_BOT_TOKEN: 'test',
    TELEGRAM_REQUESTS_PER_MINUTE: '60000',
    SNAPSHOT_BASE_URL: `${upstream.url}/snapshot`,
    SNAPSHOT_REQUESTS_PER_MINUTE: '60000',
    GOLDRUSH_BASE_URL: `${upstream.url}/goldrush`,
    GOLDRUSH_API_KEY: 'test',
    GOLDRUSH_REQUESTS_PER_MINUTE: '60000',
    ...options.settings,
  })
  const database = await createTestDatabase(config)
  await storeRegistry(database.db, registry, silent)
  const redis = createRedis(config.redis.url, silent)
  const blocking = createRedis(config.redis.url, silent, 'blocking')
  const http = createHttpClients({ log: silent, backoffMs: 1 })
  const now = () => clock.now
  const followUps = createFollowUps(jobs, redis, config.redis.prefix)
  const context = { config, http, db: database.db, redis, blocking, followUps, registry, log: silent, now }
  const queues: DatasetQueue[] = []
  return {
    config,
    database,
    upstream,
    registry,
    context,
    clock,
    queue: (dataset) => {
      const queue = createQueue(dataset, redis, config.redis.prefix)
      queues.push(queue)
      return queue
    },
    close: async () => {
      await Promise.all([followUps.close(), ...queues.map((queue) => queue.close())])
      redis.disconnect()
      blocking.disconnect()
      await Promise.all([database.drop(), upstream.close()])
    },
  }
}
