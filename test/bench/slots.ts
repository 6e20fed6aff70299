import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Config, parseConfig } from '../../shared/config/config.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { createQueues } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import type { Token } from '../../shared/registry/entities.ts'
import { startRedis } from '../../tools/redis-server.ts'
import { createHttpClients } from '../../workers/http/client.ts'
import type { Job } from '../../workers/job/define-job.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner, type RunnerContext } from '../../workers/run/runner.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { loadLargeRegistry } from '../support/large-registry.ts'
import { silent } from '../support/silent.ts'
import { toStoreSettings } from '../support/store-settings.ts'
import { atMost, type BenchContext, type Benchmark, type BenchRow, type Findings } from './define-benchmark.ts'
import { type BenchDatabase, withDatabase, withEngine } from './engine.ts'
import { compare, type Side, toMedian } from './measure.ts'

const STEP_MS = INTERVAL_SECONDS[prices.cadence] * 1000
const START = Date.parse('2024-05-06T07:05:09Z')
const UNCUT: Job = { ...prices, slotEntities: Number.POSITIVE_INFINITY }
const AT_ONCE = 4
/** What one call of the provider takes (docs/scaling.md). */
const CALL_MS = 300

export const slots: Benchmark = {
  name: 'slots',
  about:
    'How long a slot of prices takes from the scheduler until its last piece is stored and announced, by how many tokens there are.',
  run: (context) => withEngine((engine) => withDatabase(engine, 'slots', (database) => measure(database, context))),
}

async function measure(database: BenchDatabase, { quick, say }: BenchContext): Promise<Findings> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-redis-'))
  const redis = await startRedis(dir)
  const provider = await startProvider()
  const rows: BenchRow[] = []
  try {
    for (const tokens of quick ? [500, 5_000] : [500, 5_000, 100_000]) {
      const tick = openTicks(database, { tokens, redis: redis.url, provider: provider.url })
      const times: number[] = []
      for (let round = -1; round < (quick ? 1 : 3); round += 1) {
        const taken = await tick.run(prices)
        if (round >= 0) times.push(taken)
      }
      const what = `a slot of ${tokens.toLocaleString('en-US')} tokens, a provider that answers at once`
      const figure = { name: 'median', value: toMedian(times) / 1000, unit: 's' }
      rows.push({ what, a: figure, target: atMost(tokens / 5_000 < 2 ? 5 : 60, ' s') })
      if (tokens === 5_000) {
        provider.answerAfter(CALL_MS)
        const [a, b] = [toSide('cut', tick.run, prices), toSide('one job', tick.run, UNCUT)]
        const slow = `a slot of 5,000 tokens, ${CALL_MS} ms a call, ${AT_ONCE} jobs at once`
        rows.push(await compare({ what: slow, unit: 's', a, b, rounds: quick ? 1 : 3 }))
        provider.answerAfter(0)
      }
      await tick.close()
      say(`${what} done`)
    }
  } finally {
    await provider.close()
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  return { rows, notes: [NOTE] }
}

const NOTE = `One worker with ${AT_ONCE} jobs at once, in one process with the scheduler and the provider. How often a provider may be asked is not part of it: 100,000 tokens are 1,000 calls.`

const toSide = (name: string, run: (job: Job) => Promise<number>, job: Job): Side => ({
  name,
  measure: async () => (await run(job)) / 1000,
})

/** Slots of so many tokens, one after the other. `run` resolves with how long one took, in milliseconds. */
function openTicks(
  { config, db }: BenchDatabase,
  { tokens, redis: url, provider }: { tokens: number; redis: string; provider: string },
) {
  const all = loadLargeRegistry(tokens)
  const registry = { ...all, tokens: all.tokens.filter(isQuoted).slice(-tokens) }
  const settings = toSettings(config, {
    REDIS_URL: url,
    QUEUE_PREFIX: `bench-${tokens}`,
    ...toProviderSettings(provider),
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
  }
  const queues = createQueues(prices.name, redis, prefix)
  const run = async (job: Job) => {
    clock.now += STEP_MS
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

/** Resolves when jobs have stored so many rows; rejects when one of them fails. */
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
  parseConfig({ ...toStoreSettings(config), ...more, WORKER_CONCURRENCY: String(AT_ONCE) })

const toProviderSettings = (url: string) => ({
  COINMARKETCAP_BASE_URL: url,
  COINGECKO_BASE_URL: url,
  COINMARKETCAP_API_KEY: 'bench',
  COINMARKETCAP_REQUESTS_PER_MINUTE: '600000',
})

interface Provider {
  readonly url: string
  /** How long an answer takes from now on. */
  answerAfter(ms: number): void
  close(): Promise<void>
}

/** CoinMarketCap's latest quotes of whatever ids are asked for; it has nothing else. */
async function startProvider(): Promise<Provider> {
  let waitMs = 0
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://provider')
    if (!url.pathname.endsWith('/quotes/latest')) return void response.writeHead(404).end()
    const body = toAnswer(url.searchParams.get('id')?.split(',') ?? [])
    if (waitMs > 0) await setTimeout(waitMs)
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerAfter: (ms) => {
      waitMs = ms
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function toAnswer(ids: readonly string[]): string {
  const data = ids.map((id) => {
    const price = 1 + (Number(id) % 97) / 7
    const quote = {
      symbol: 'USD',
      price,
      volume_24h: price * 51_234.5,
      market_cap: price * 760_000_000,
      percent_change_1h: 0.123456789,
      percent_change_24h: -2.3456789,
      percent_change_7d: 3.456789,
      percent_change_30d: -4.56789,
      last_updated: '2024-05-06T07:04:00.000Z',
    }
    return { id: Number(id), total_supply: 1.3e9, circulating_supply: 760_000_000, max_supply: null, quote: [quote] }
  })
  return JSON.stringify({ status: { error_code: 0 }, data })
}
