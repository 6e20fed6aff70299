import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { INTERVALS } from '../../shared/intervals.ts'
import { type Child, startChild, untilReady } from '../../tools/children.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { createFastClock, FAST_CLOCK_BEGINS } from './fast-clock.ts'

/** A five-minute slot passes in a second. */
const SPEED = 300
const SLOTS = 60
const SLOT_MS = 300_000
const KILL_EVERY_MS = 2_500

let pipeline: Pipeline
let environment: Record<string, string>
const startedAt = Date.now()
const now = createFastClock(startedAt, SPEED)
const children = new Map<string, Child>()

beforeAll(async () => {
  const clock = {
    get now() {
      return now()
    },
  }
  pipeline = await createPipeline({ clock })
  const { clickhouse, redis, providers } = pipeline.config
  environment = {
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_USER: clickhouse.user,
    CLICKHOUSE_PASSWORD: clickhouse.password,
    CLICKHOUSE_DATABASE: clickhouse.database,
    REDIS_URL: redis.url,
    QUEUE_PREFIX: redis.prefix,
    COINMARKETCAP_BASE_URL: providers.coinmarketcap.baseUrl,
    COINMARKETCAP_API_KEY: 'test',
    COINMARKETCAP_REQUESTS_PER_MINUTE: '60000',
    COINGECKO_BASE_URL: providers.coingecko.baseUrl,
    COINGECKO_REQUESTS_PER_MINUTE: '60000',
    LOG_LEVEL: 'silent',
  }
})
afterAll(async () => {
  for (const child of children.values()) child.process.kill('SIGKILL')
  await pipeline.close()
})

async function start(name: string): Promise<void> {
  const role = name.split(' ')[0] ?? ''
  const args = [role, String(startedAt), String(SPEED)]
  const child = startChild(name, join(import.meta.dirname, 'part.ts'), environment, args)
  children.set(name, child)
  await untilReady(child)
}

/** Kills one process after the other, as a crash would, and replaces it, until the time is over. */
async function killAtRandom(until: number): Promise<number> {
  const names = [...children.keys()]
  let kills = 0
  while (now() < until) {
    // The passing of time is what this test is about; nothing else could be waited for.
    await wait(KILL_EVERY_MS)
    const name = names[Math.floor(Math.random() * names.length)] ?? ''
    children.get(name)?.process.kill('SIGKILL')
    kills += 1
    await start(name)
  }
  return kills
}

/** Resolves when a scheduler has enqueued a slot: one of them may have been replaced just before the end. */
async function untilEnqueued(slot: number): Promise<void> {
  const { redis } = pipeline.context
  const key = `${pipeline.config.redis.prefix}:slots`
  while (Number(await redis.hget(key, 'prices')) < slot) await wait(100)
}

/** Resolves when the queue has nothing left to do; jobs of killed workers come back after their lock has run out. */
async function untilIdle(): Promise<void> {
  const queue = pipeline.queue('prices')
  for (;;) {
    const counts = await queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed')
    if (Object.values(counts).every((count) => count === 0)) return
    await wait(250)
  }
}

it('fills every slot of every token once, whoever is killed', { timeout: 240_000 }, async () => {
  const parts = ['worker 1', 'worker 2', 'worker 3', 'scheduler 1', 'scheduler 2']
  await Promise.all(parts.map(start))
  const first = Math.ceil(now() / SLOT_MS) * SLOT_MS
  const kills = await killAtRandom(FAST_CLOCK_BEGINS + SLOTS * SLOT_MS)
  const last = Math.floor(now() / SLOT_MS) * SLOT_MS
  await untilEnqueued(last)
  for (const name of ['scheduler 1', 'scheduler 2']) await children.get(name)?.stop()
  await untilIdle()

  const { db } = pipeline.database
  const tokens = pipeline.registry.tokens.filter(({ live, livePrice }) => live && livePrice)
  const slots = (last - first) / SLOT_MS
  const sql = `SELECT toUInt32(uniqExact(token)) AS tokens, toUInt32(min(filled)) AS least, toUInt32(max(filled)) AS most
    FROM
    (
      SELECT token, uniqExact(toStartOfFiveMinutes(observed_at)) AS filled FROM token_prices FINAL
      WHERE observed_at >= fromUnixTimestamp64Milli({first: Int64}) AND observed_at < fromUnixTimestamp64Milli({last: Int64})
      GROUP BY token
    )`
  const schema = z.object({ tokens: z.number(), least: z.number(), most: z.number() })
  const [filled] = await db.rows({ name: 'filled', sql, params: { first, last }, schema })
  expect(filled).toEqual({ tokens: tokens.length, least: slots, most: slots })
  expect(slots).toBeGreaterThanOrEqual(SLOTS / 2)
  expect(kills).toBeGreaterThan(5)
  expect(await pipeline.queue('prices').getFailedCount()).toBe(0)
  for (const interval of INTERVALS.filter((one) => one !== '5m')) expect(await differences(interval)).toBe(0)
})

/** How many buckets of a roll-up are not what a computation from the raw series gives. */
async function differences(interval: string): Promise<number> {
  const bucket =
    interval === '7d'
      ? "toDateTime(toMonday(observed_at), 'UTC')"
      : `toStartOfInterval(observed_at, INTERVAL ${toSql(interval)})`
  const sql = `SELECT toUInt32(count()) AS n FROM
    (
      SELECT token, ${bucket} AS bucket_at, min(observed_at) AS at, argMin(price, observed_at) AS first_price
      FROM token_prices FINAL GROUP BY token, bucket_at
    ) AS computed
    FULL OUTER JOIN (SELECT token, bucket_at, observed_at, price FROM token_prices_${interval} FINAL) AS kept
      ON kept.token = computed.token AND kept.bucket_at = computed.bucket_at
    WHERE kept.observed_at != computed.at OR kept.price != computed.first_price`
  const [row] = await pipeline.database.db.rows({ name: 'differences', sql, schema: z.object({ n: z.number() }) })
  return row?.n ?? -1
}

const toSql = (interval: string) => interval.replace('m', ' MINUTE').replace('h', ' HOUR').replace('d', ' DAY')
