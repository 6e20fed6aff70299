import { storeRegistry } from '../../clickhouse/registry.ts'
import type { Config } from '../../shared/config/config.ts'
import { QUEUE_CLASSES, type QueueClass } from '../../shared/queue/queue-classes.ts'
import { createQueues, type DatasetQueue, type DatasetQueues } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import { jobs } from '../../workers/jobs/list.ts'
import type { RunnerContext } from '../../workers/run/runner.ts'
import { createRecomputation } from '../../workers/schedule/recompute.ts'
import type { Chain } from '../upstream/chain.ts'
import type { Markets } from '../upstream/own-markets.ts'
import { createUpstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from './database.ts'
import { loadFewDaos } from './few-daos.ts'
import { silent } from './silent.ts'

type Upstream = Awaited<ReturnType<typeof createUpstream>>

/** All components from the providers' stand-in to the tables, with a clock that only the test moves. */
export interface Pipeline {
  readonly config: Config
  readonly database: TestDatabase
  readonly upstream: Upstream
  readonly registry: Registry
  readonly context: RunnerContext
  readonly clock: { now: number }
  queues(dataset: string): DatasetQueues
  /** The live queue by default. */
  queue(dataset: string, queueClass?: QueueClass): DatasetQueue
  close(): Promise<void>
}

export interface PipelineOptions {
  readonly now?: number
  /** A clock owned by the test, instead of one fixed at `now`. */
  readonly clock?: { now: number }
  readonly dataDir?: string
  /** Replaces the shipped registry. */
  readonly registry?: Registry
  /** Replaces the world's chains, by slug. */
  readonly chains?: Readonly<Record<string, Chain>>
  /** Whether providers agree on prices; by default they do. */
  readonly markets?: Markets
  /** The chains with a node, by default ethereum. */
  readonly nodes?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  /** Set if the database is dropped with its server. */
  readonly leavesDatabase?: boolean
}

export async function createPipeline(options: PipelineOptions = {}): Promise<Pipeline> {
  const registry = options.registry ?? loadFewDaos()
  const clock = options.clock ?? { now: options.now ?? Date.parse('2024-05-06T07:05:09Z') }
  const { dataDir = null, chains = {}, markets = 'agreeing' } = options
  const upstream = await createUpstream({ registry, now: () => clock.now, dataDir, chains, markets })
  const config = createTestConfig({
    ...toStandInSettings(upstream.url, options.nodes),
    ...options.settings,
  })
  const database = await createTestDatabase(config)
  await storeRegistry(database.db, registry, silent)
  const redis = createRedis(config.redis.url, silent)
  const blocking = createRedis(config.redis.url, silent, 'blocking')
  const http = createHttpClients({ log: silent, backoffMs: 1 })
  const now = () => clock.now
  const redact = (text: string) => text
  const recomputation = createRecomputation(jobs, redis, config.redis.prefix, database.db)
  const context = { config, http, db: database.db, redis, blocking, recomputation, registry, log: silent, now, redact }
  const opened: DatasetQueues[] = []
  const openQueues = (dataset: string) => {
    const queues = createQueues(dataset, redis, config.redis.prefix)
    opened.push(queues)
    return queues
  }
  return {
    config,
    database,
    upstream,
    registry,
    context,
    clock,
    queues: openQueues,
    queue: (dataset, queueClass = 'live') => openQueues(dataset)[queueClass],
    close: async () => {
      await Promise.all([
        recomputation.close(),
        ...opened.flatMap((queues) => QUEUE_CLASSES.map((queueClass) => queues[queueClass].close())),
      ])
      redis.disconnect()
      blocking.disconnect()
      const { db, server, drop } = database
      await (options.leavesDatabase ? Promise.all([db.close(), server.close()]) : drop())
      await upstream.close()
    },
  }
}
