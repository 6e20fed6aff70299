import { join } from 'node:path'
import { storeRegistry } from '../../clickhouse/registry.ts'
import type { Config } from '../../shared/config/config.ts'
import { CADENCES, type Cadence } from '../../shared/intervals.ts'
import { QUEUE_CLASSES } from '../../shared/queue/queue-classes.ts'
import {
  createQueues,
  type DatasetQueue,
  type JobPayload,
  type JobReport,
  toQueueName,
} from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { createDatabase } from '../../shared/store/store.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { type JobContext, runJob } from '../../workers/run/runner.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { createUpstream } from '../upstream/server.ts'
import { toStandInSettings } from '../upstream/settings.ts'
import { type Company, createCompany } from './company.ts'
import { toClock, toClockTime } from './slot-clock.ts'
import { openSlotEvents, type SlotEvents } from './slot-events.ts'
import { loadSmallRegistry } from './small-registry.ts'

const NAMES = ['worker 1', 'worker 2', 'worker 3', 'scheduler 1', 'scheduler 2']

/** Settings that the processes need in addition to those of stores and providers. */
const SETTINGS = {
  RATINGS_SOURCE: join(import.meta.dirname, 'ratings.csv'),
  DEX_FIRST_RUN_HOURS: '1',
  LOG_LEVEL: process.env.FAULTS_LOG_LEVEL ?? 'silent',
}

/** Environment of the processes: a database, queues, and a stand-in for the providers per clock. */
export interface Stage {
  readonly config: Config
  readonly database: TestDatabase
  readonly company: Company
  readonly events: SlotEvents
  /** Moves all clocks, those of the stand-ins included. */
  moveTo(slot: number): Promise<void>
  /** Unfinished jobs in the queues. */
  countOpen(): Promise<number>
  /** Runs a job without kills, over the environment's database or another one. */
  collectAlone(
    job: Job,
    payload: JobPayload,
    candidate?: { database: string; firstRunHours: number },
  ): Promise<JobReport>
  /** Creates another database with the same registry and returns its name. */
  openSecond(): Promise<string>
  close(): Promise<void>
}

export async function createStage(): Promise<Stage> {
  const registry = loadSmallRegistry()
  let current = 0
  const toStandIn = (clock: Cadence) => createUpstream({ registry, now: () => toClockTime(clock, current) })
  const standIns = { '5m': await toStandIn('5m'), '1h': await toStandIn('1h'), '1d': await toStandIn('1d') }
  const urls = { '5m': standIns['5m'].url, '1h': standIns['1h'].url, '1d': standIns['1d'].url }
  const config = createTestConfig()
  const { clickhouse, redis: store } = config
  const database = await createTestDatabase(config)
  await storeRegistry(database.db, registry, silent)
  const redis = createRedis(store.url, silent)
  const opened = jobs.map(({ name }) => createQueues(name, redis, store.prefix))
  const queues = opened.flatMap((own) => QUEUE_CLASSES.map((queueClass) => own[queueClass]))
  const names = jobs.flatMap(({ name }) => QUEUE_CLASSES.map((queueClass) => toQueueName(name, queueClass)))
  const events = await openSlotEvents(names, redis, store.prefix)
  const environment = {
    ...SETTINGS,
    ...toStoreSettings(config),
    REDIS_URL: store.url,
    QUEUE_PREFIX: store.prefix,
  }
  const company = createCompany(NAMES, environment, urls)
  const rest: TestDatabase[] = []
  return {
    config,
    database,
    company,
    events,
    moveTo: async (slot) => {
      current = slot
      await company.moveTo(slot)
    },
    countOpen: () => countOpenJobs(queues),
    openSecond: async () => {
      const own = createTestConfig()
      const second = await createTestDatabase(own)
      rest.push(second)
      await storeRegistry(second.db, registry, silent)
      return own.clickhouse.database
    },
    collectAlone: async (job, payload, second) => {
      const clock = toClock(job)
      const own = createTestConfig({ ...SETTINGS, ...toStandInSettings(urls[clock]) })
      const dex = second === undefined ? own.dex : { ...own.dex, firstRunHours: second.firstRunHours }
      const stored = second === undefined ? clickhouse : { ...clickhouse, database: second.database }
      const now = () => toClockTime(clock, current)
      return runAlone(job, payload, { config: { ...own, dex, clickhouse: stored }, redis, registry, now })
    },
    close: async () => {
      await company.stop()
      await events.close()
      await Promise.all(queues.map((queue) => queue.close()))
      redis.disconnect()
      await Promise.all([database, ...rest].map((each) => each.drop()))
      await Promise.all(CADENCES.map((clock) => standIns[clock].close()))
    },
  }
}

async function countOpenJobs(queues: readonly DatasetQueue[]): Promise<number> {
  const counts = await Promise.all(
    queues.map((queue) => queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed')),
  )
  return counts.flatMap((each) => Object.values(each)).reduce((sum, count) => sum + count, 0)
}

/** Runs a job in this process, over a separate database connection. No computation follows its rows. */
async function runAlone(
  job: Job,
  payload: JobPayload,
  input: Pick<JobContext, 'config' | 'redis' | 'registry' | 'now'>,
): Promise<JobReport> {
  const db = createDatabase(input.config.clickhouse, 'write')
  const recomputation = { enqueue: async () => {}, close: async () => {} }
  const redact = (text: string) => text
  const context = { ...input, http: createHttpClients({ log: silent }), db, recomputation, log: silent, redact }
  try {
    return await runJob(job, job.connect(context), context, payload)
  } finally {
    await db.close()
  }
}
