import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { createQueues } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { startRedis } from '../../tools/redis-server.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import type { Job } from '../../workers/job/define-job.ts'
import holders from '../../workers/jobs/holders.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner, type RunnerContext } from '../../workers/run/runner.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { loadLargeRegistry } from '../support/large-registry.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { compare, type Side, toMedian } from './measure.ts'
import { type SlotProvider, startSlotProvider } from './slot-provider.ts'

const START = Date.parse('2024-05-06T07:05:09Z')
const toUncut = (job: Job): Job => ({ ...job, slotEntities: Number.POSITIVE_INFINITY })
const CONCURRENCY = 4
/** Duration of one provider call (docs/scaling.md). */
const CALL_MS = 300
/** Holders need two calls per token. With slower calls, a slot in a single job would take minutes. */
const HOLDERS = { tokens: 2_000, callMs: 30 }

export const slots: Benchmark = {
  name: 'slots',
  about:
    'Time of a slot of prices or holders from the scheduler until its last batch is stored and announced, by number of tokens.',
  run: (context) => withEngine((engine) => withDatabase(engine, 'slots', (database) => measure(database, context))),
}

async function measure(database: BenchDatabase, { quick, say }: BenchContext): Promise<Findings> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-redis-'))
  const redis = await startRedis(dir)
  const provider = await startSlotProvider()
  const rows: BenchRow[] = []
  try {
    for (const tokens of quick ? [500, 5_000] : [500, 5_000, 100_000]) {
      const tick = openTicks(database, { base: prices, tokens, redis: redis.url, provider })
      const times: number[] = []
      for (let round = -1; round < (quick ? 1 : 3); round += 1) {
        const taken = await tick.run(prices)
        if (round >= 0) times.push(taken)
      }
      const what = `a slot of ${tokens.toLocaleString('en-US')} tokens, a provider without delay`
      const figure = { name: 'median', value: toMedian(times) / 1000, unit: 's' }
      rows.push({ what, a: figure, target: atMost(tokens / 5_000 < 2 ? 5 : 60, ' s') })
      if (tokens === 5_000) {
        provider.answerAfter(CALL_MS)
        const [a, b] = [toSide('cut', tick.run, prices), toSide('one job', tick.run, toUncut(prices))]
        const slow = `a slot of 5,000 tokens, ${CALL_MS} ms a call, ${CONCURRENCY} concurrent jobs`
        rows.push(await compare({ what: slow, unit: 's', a, b, rounds: quick ? 1 : 3 }))
        provider.answerAfter(0)
      }
      await tick.close()
      say(`${what} done`)
    }
    rows.push(await measureHolders(database, { redis: redis.url, provider, rounds: quick ? 1 : 3 }))
    say('a slot of holders done')
  } finally {
    await provider.close()
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  return { rows, notes: [NOTE] }
}

async function measureHolders(
  database: BenchDatabase,
  { redis, provider, rounds }: { redis: string; provider: SlotProvider; rounds: number },
): Promise<BenchRow> {
  const { tokens, callMs } = HOLDERS
  const tick = openTicks(database, { base: holders, tokens, redis, provider })
  provider.answerAfter(callMs)
  const [a, b] = [toSide('cut', tick.run, holders), toSide('one job', tick.run, toUncut(holders))]
  const what = `a slot of the holders of ${tokens.toLocaleString('en-US')} tokens, ${callMs} ms a call, ${CONCURRENCY} concurrent jobs`
  const row = await compare({ what, unit: 's', a, b, rounds })
  provider.answerAfter(0)
  await tick.close()
  return row
}

const NOTE = `One worker with ${CONCURRENCY} concurrent jobs, in one process with the scheduler and the provider. Rate limits of providers are not included: 100,000 tokens are 1,000 calls.`

const toSide = (name: string, run: (job: Job) => Promise<number>, job: Job): Side => ({
  name,
  measure: async () => (await run(job)) / 1000,
})

interface Ticks {
  readonly base: Job
  readonly tokens: number
  readonly redis: string
  readonly provider: SlotProvider
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * Slots of a job's dataset for `tokens` tokens, one after the other. `run` resolves with the duration of one, in
 * milliseconds.
 */
export function openTicks(
  { config, db }: BenchDatabase,
  { base, tokens, redis: url, provider, settings: more = {} }: Ticks,
) {
  const all = loadLargeRegistry(tokens)
  const registry = { ...all, tokens: all.tokens.filter(isQuoted).slice(-tokens) }
  const settings = toSettings(config, {
    REDIS_URL: url,
    QUEUE_PREFIX: `bench-${base.name}-${tokens}`,
    ...toProviderSettings(provider.url),
    ...more,
  })
  const [redis, blocking] = [createRedis(url, silent), createRedis(url, silent, 'blocking')]
  const prefix = settings.redis.prefix
  const clock = { now: START }
  const now = () => clock.now
  const recomputation = { enqueue: async () => {}, close: async () => {} }
  const http = createHttpClients({ log: silent })
  const context: RunnerContext = {
    config: settings,
    http,
    db,
    redis,
    blocking,
    recomputation,
    registry,
    log: silent,
    now,
    redact: (text) => text,
  }
  const queues = createQueues(base.name, redis, prefix)
  const run = async (job: Job) => {
    clock.now += INTERVAL_SECONDS[job.cadence] * 1000
    provider.quoteAt(clock.now)
    const runner = createRunner(job, context)
    await runner.waitUntilReady()
    const startedAt = performance.now()
    await enqueueDue({ job, queues }, { db, redis, prefix, registry, log: silent, now })
    await untilStored(runner, tokens)
    const taken = performance.now() - startedAt
    await runner.close()
    return taken
  }
  const close = async () => {
    await Promise.all([queues.live.close(), queues.history.close()])
    redis.disconnect()
    blocking.disconnect()
  }
  return { run, close }
}

const isQuoted = ({ live, livePrice, cmcId }: Token) => live && livePrice && cmcId !== null

/** Resolves when jobs have stored this number of rows; rejects when one of them fails. */
function untilStored(runner: ReturnType<typeof createRunner>, rows: number): Promise<void> {
  let stored = 0
  return new Promise((resolve, reject) => {
    runner.on('completed', (_, report) => {
      stored += report.rows
      if (stored >= rows) resolve()
    })
    runner.on('failed', (_, error) => reject(error))
  })
}

const toSettings = (config: Config, more: Readonly<Record<string, string>>): Config =>
  parseConfig({ ...toStoreSettings(config), ...more, WORKER_CONCURRENCY: String(CONCURRENCY) })

const toProviderSettings = (url: string) => ({
  COINMARKETCAP_BASE_URL: url,
  COINGECKO_BASE_URL: url,
  COINMARKETCAP_API_KEY: 'bench',
  COINMARKETCAP_REQUESTS_PER_MINUTE: '600000',
  COINMARKETCAP_CREDITS_PER_MONTH: '1000000000',
  MORALIS_BASE_URL: url,
  MORALIS_API_KEY: 'bench',
  MORALIS_REQUESTS_PER_MINUTE: '600000',
  MORALIS_UNITS_PER_DAY: '1000000000',
})
