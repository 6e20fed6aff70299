import type { Worker } from 'bullmq'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { toBucket } from '../../shared/buckets.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { readMissing } from '../../shared/ledger/tables.ts'
import { isSlotEnqueued } from '../../shared/queue/queues.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import { type ChangeEvent, createChangeFeed, readFailing } from '../../shared/store/store.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { loadLargeRegistry } from '../support/large-registry.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'

const TOKENS = 5_000
const BATCHES = 8
const NOW = Date.parse('2024-05-06T07:05:09Z')
const SLOT = Date.parse('2024-05-06T07:05:00Z')
/** Quotes have their own times, before their slot: they fill the bucket before it. */
const BUCKET = toBucket(SLOT, '5m') - 1

let pipeline: Pipeline
let runners: Worker[] = []

beforeAll(async () => {
  pipeline = await createPipeline({ now: NOW, registry: loadLargeRegistry(TOKENS) })
})
beforeEach(async () => {
  for (const table of [
    'token_prices',
    'token_quotes',
    'token_price_rollups',
    'coverage',
    'coverage_notes',
    'job_state',
  ])
    await pipeline.context.db.command({ name: 'empty', sql: `TRUNCATE TABLE ${table}` })
  await pipeline.queue('prices').obliterate({ force: true })
})
afterEach(async () => {
  await Promise.all(runners.map((runner) => runner.close()))
  runners = []
})
afterAll(() => pipeline?.close())

const queues = () => pipeline.queues('prices')
const live = () => tokenPrices.entities(pipeline.registry).filter((token) => isThereAt(token, NOW))

const enqueue = () => {
  const { db, redis, registry, log, now, config } = pipeline.context
  return enqueueDue({ job: prices, queues: queues() }, { db, redis, registry, log, now, prefix: config.redis.prefix })
}

/** Runs two workers until this many jobs are done. @returns the number of jobs of each, and their events. */
async function work(jobs: number) {
  const done: { worker: number; id: string; rows: number }[] = []
  const failed: string[] = []
  await new Promise<void>((resolve) => {
    for (const worker of [0, 1]) {
      const runner = createRunner(prices, pipeline.context)
      runners.push(runner)
      runner.on('completed', ({ id }, { rows }) => {
        done.push({ worker, id: String(id), rows })
        if (done.length === jobs) resolve()
      })
      runner.on('failed', (_, { message }) => void failed.push(message))
    }
  })
  return { done, failed }
}

const counted = z.object({ tokens: z.number(), rows: z.number(), sum: z.string() })

async function readStored() {
  const [stored] = await pipeline.context.db.rows({
    name: 'stored',
    sql: 'SELECT uniqExact(token) AS tokens, count() AS rows, toString(sum(cityHash64(* EXCEPT version))) AS sum FROM token_prices FINAL',
    schema: counted,
  })
  return stored
}

const readUncovered = () => {
  const keys = live().map(({ key }) => key)
  return readMissing(pipeline.context.db, prices.dataset, keys, {
    expected: [{ first: BUCKET, last: BUCKET }],
    seconds: 300,
  })
}

/** Records change events of prices from now on. */
async function followCommits() {
  const { db, config } = pipeline.context
  const subscriber = createRedis(config.redis.url, silent, 'subscriber')
  const feed = createChangeFeed(subscriber, { db, prefix: config.redis.prefix, log: silent })
  await vi.waitFor(() => expect(feed.source).toBe('redis'), { timeout: 60_000, interval: 20 })
  const received: ChangeEvent[] = []
  const enough = new Promise<void>((resolve) =>
    feed.follow((change) => {
      if (change?.dataset === 'prices') received.push(change)
      if (received.length === BATCHES) resolve()
    }),
  )
  return { heard: received, enough, close: () => feed.close() }
}

const IDS = Array.from({ length: BATCHES }, (_, batch) => `prices.20240506T070500Z.${batch}`)

describe('slot of five thousand tokens', () => {
  it('is divided into jobs that several workers collect: all tokens are stored, covered and announced', async () => {
    const { redis, config } = pipeline.context
    const changeEvents = await followCommits()
    await enqueue()
    expect(await isSlotEnqueued(redis, config.redis.prefix, 'prices', SLOT)).toBe(true)
    const { done, failed } = await work(BATCHES)
    await changeEvents.enough
    changeEvents.close()
    expect(failed).toEqual([])
    expect(done.map(({ id }) => id).sort()).toEqual(IDS)
    expect(new Set(done.map(({ worker }) => worker))).toEqual(new Set([0, 1]))
    expect(done.reduce((sum, { rows }) => sum + rows, 0)).toBe(live().length)
    expect(await readStored()).toMatchObject({ tokens: live().length, rows: live().length })
    expect((await readUncovered()).size).toBe(0)
    expect(Math.min(...changeEvents.heard.map(({ from = 0 }) => from))).toBeGreaterThanOrEqual(SLOT - 300_000)
    expect(Math.max(...changeEvents.heard.map(({ to = NOW }) => to))).toBeLessThan(SLOT)
  })

  it('stores nothing new when its jobs are enqueued and collected again', async () => {
    const queue = pipeline.queue('prices')
    await Promise.all([enqueue(), enqueue()])
    expect((await queue.getWaiting()).map(({ id }) => id).sort()).toEqual(IDS)
    await work(BATCHES)
    const first = await readStored()
    for (const id of [IDS[3], IDS[5]]) await queue.remove(String(id))
    for (const runner of runners.splice(0)) await runner.close()
    await enqueue()
    expect((await queue.getWaiting()).map(({ id }) => id).sort()).toEqual([IDS[3], IDS[5]])
    const { done } = await work(2)
    expect(done.every(({ rows }) => rows > 0)).toBe(true)
    expect(await readStored()).toEqual(first)
  })

  it('retries only the failed jobs, and reports failing providers until they work', async () => {
    const { faults } = pipeline.upstream
    for (const provider of ['coinmarketcap', 'coingecko']) faults.set(provider, { kind: 'status', status: 401 })
    const readFailingNames = async () => Object.keys((await readFailing(pipeline.context.db)).get('prices') ?? {})
    await enqueue()
    const runner = createRunner(prices, pipeline.context)
    const dead: string[] = []
    await new Promise<void>((resolve) =>
      runner.on('failed', (job) => {
        dead.push(String(job?.id))
        if (dead.length === 1) resolve()
      }),
    )
    await runner.close()
    expect(await readFailingNames()).toEqual(['coinmarketcap', 'coingecko'])
    faults.clear()
    for (const job of await pipeline.queue('prices').getFailed()) await job.retry('failed', { resetAttemptsMade: true })
    const { done, failed } = await work(BATCHES)
    expect(failed).toEqual([])
    expect(done).toHaveLength(BATCHES)
    expect((await readUncovered()).size).toBe(0)
    expect(await readFailingNames()).toEqual([])
  })
})
