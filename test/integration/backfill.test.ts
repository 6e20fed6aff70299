import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { Worker } from 'bullmq'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DataError } from '../../shared/errors.ts'
import { readExpected } from '../../shared/ledger/expected.ts'
import { removeUnfounded } from '../../shared/ledger/repair.ts'
import { findUnfounded } from '../../shared/ledger/unfounded.ts'
import { noteDropped } from '../../shared/queue/dropped.ts'
import { toQueuePrefix } from '../../shared/queue/queues.ts'
import type { Database } from '../../shared/store/store.ts'
import { collectHistories } from '../../workers/backfill/collect-history.ts'
import { findLedgerGaps } from '../../workers/backfill/ledger-gaps.ts'
import { isAsGoodAsProviders, isComplete, type Outcome, type Standing } from '../../workers/backfill/outcome.ts'
import { toOutcomeTable } from '../../workers/backfill/outcome-table.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import type { Stores } from '../../workers/backfill/until-done.ts'
import marketCap from '../../workers/jobs/market-cap.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { planRepair } from '../../workers/schedule/gaps.ts'
import { emptyRedis } from '../support/empty-redis.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const DAY = 86_400_000
const DAYS = { from: '2024-05-01', to: '2024-05-03' }
const BUCKETS = 2 * 288

let pipeline: Pipeline
let runners: Worker[] = []
beforeEach(async () => {
  pipeline = await createPipeline()
})
afterEach(async () => {
  await Promise.all(runners.map((runner) => runner.close()))
  runners = []
  await pipeline.close()
})

const start = (job: typeof prices) => {
  const runner = createRunner(job, pipeline.context, 'history')
  runners.push(runner)
  return runner
}

const toStores = (): Stores => ({
  db: pipeline.database.db,
  redis: pipeline.context.redis,
  prefix: pipeline.config.redis.prefix,
  now: () => pipeline.clock.now,
})

const sendRequest = (only: string | undefined, dataset = 'prices', interval = '5m') =>
  planBackfill({ dataset, ...DAYS, interval, only }, pipeline.registry, pipeline.clock.now)

/** Collects it; writes its progress lines to `lines`. */
async function collect(one: ReturnType<typeof sendRequest>, again = false): Promise<Outcome> {
  const out = Object.assign(new PassThrough(), { isTTY: false }) as unknown as NodeJS.WriteStream
  const [outcome] = await collectHistories([one], toStores(), { again, out })
  if (outcome === undefined) throw new Error('nothing was asked for')
  return outcome
}

const count = ({ parts }: Outcome, standing: Standing) =>
  parts.filter((part) => part.standing === standing).reduce((sum, { buckets }) => sum + buckets, 0)

const refuse = (status: number) => {
  for (const provider of ['coinmarketcap', 'coingecko'])
    pipeline.upstream.faults.set(provider, { kind: 'status', status })
}

/** Advances the clock until a failed range is retried. */
const stopAfter = (runner: Worker) =>
  runner.on('failed', () => {
    pipeline.clock.now += 31 * 60_000
  })

describe('back-fill', () => {
  it('records the range as wanted, and requests only missing buckets, or all with --again', async () => {
    const { db } = pipeline.database
    const queue = pipeline.queue('prices', 'history')
    start(prices)
    const first = await collect(sendRequest('UNI'))
    expect([isComplete(first), count(first, 'covered')]).toEqual([true, BUCKETS])
    const [uni] = sendRequest('UNI').entities
    expect(await readExpected(db, prices.dataset)).toMatchObject([
      { entity: uni?.key, from: Date.parse(DAYS.from), to: Date.parse(DAYS.to), seconds: 300 },
    ])
    const done = await queue.getCompletedCount()
    expect(isComplete(await collect(sendRequest('UNI')))).toBe(true)
    expect(await queue.getCompletedCount()).toBe(done)
    expect(await readExpected(db, prices.dataset)).toHaveLength(1)
    expect(isComplete(await collect(sendRequest('UNI'), true))).toBe(true)
    expect(await queue.getCompletedCount()).toBe(done + sendRequest('UNI').chunks.length)
    const both = await collect(sendRequest('UNI,AAVE'))
    expect([isComplete(both), count(both, 'covered')]).toEqual([true, 2 * BUCKETS])
  })

  it("ends at a token's end, and requests, stores and misses nothing after it", async () => {
    const { registry } = pipeline
    await pipeline.close()
    const until = Date.parse('2024-05-02T00:00:00Z')
    const tokens = registry.tokens.map((token) => (token.symbol === 'UNI' ? { ...token, until } : token))
    pipeline = await createPipeline({ registry: { ...registry, tokens } })
    const { db } = pipeline.database
    start(prices)
    const outcome = await collect(sendRequest('UNI,AAVE'))
    expect([isComplete(outcome), count(outcome, 'covered')]).toEqual([true, (BUCKETS / 2) * 3])
    const [uni] = sendRequest('UNI').entities
    const newest = await db.rows({
      name: 'newest',
      sql: 'SELECT toUnixTimestamp64Milli(max(observed_at)) AS at FROM token_prices WHERE token = {key: UInt64}',
      params: { key: uni?.key },
      schema: z.object({ at: z.int() }),
    })
    expect(newest).toEqual([{ at: expect.toSatisfy((at) => at < until && at >= until - 600_000) }])
    const range = { from: Date.parse(DAYS.from), to: Date.parse(DAYS.to) }
    expect(await readExpected(db, prices.dataset)).toContainEqual(
      expect.objectContaining({ entity: uni?.key, from: range.from, to: until }),
    )
    const sought = { range, interval: undefined, now: pipeline.clock.now }
    expect(await findLedgerGaps(db, prices, pipeline.registry, sought)).toEqual([])
  })

  it('resumes when its queue is emptied', async () => {
    const { redis } = pipeline.context
    const queue = pipeline.queue('prices', 'history')
    const collected = collect(sendRequest('UNI,AAVE'))
    await expect.poll(() => queue.getJobCountByTypes('prioritized', 'waiting')).toBeGreaterThan(0)
    await emptyRedis(redis, pipeline.config.redis.prefix)
    await expect.poll(() => queue.getJobCountByTypes('prioritized', 'waiting')).toBeGreaterThan(0)
    start(prices)
    expect(count(await collected, 'covered')).toBe(2 * BUCKETS)
  })

  it('collects no chunk twice if its finished job has left the queue', async () => {
    const queue = pipeline.queue('prices', 'history')
    const request = { dataset: 'prices', from: '2024-04-26', to: '2024-05-03', interval: '5m', only: 'UNI' }
    const one = planBackfill(request, pipeline.registry, pipeline.clock.now)
    expect(one.chunks).toHaveLength(2)
    const lines: string[] = []
    const out = Object.assign(
      new PassThrough().on('data', (line) => lines.push(String(line))),
      { isTTY: false },
    )
    const collected = collectHistories([one], toStores(), { again: true, out: out as unknown as NodeJS.WriteStream })
    const prefix = toQueuePrefix(pipeline.config.redis.prefix, queue.name)
    const worker = new Worker(queue.name, null, { connection: pipeline.context.blocking, prefix })
    runners.push(worker)
    const finishNext = async () => {
      const job = await worker.getNextJob('token')
      await job?.moveToCompleted({ rows: 0 }, 'token', false)
      return job?.id ?? ''
    }
    await expect.poll(() => queue.getJobCountByTypes('prioritized')).toBe(2)
    const first = await finishNext()
    await expect.poll(() => lines.join('')).toContain('1 of 2 parts')
    await queue.remove(first)
    await finishNext()
    await collected
    expect(await queue.getJobCountByTypes('prioritized', 'waiting', 'active')).toBe(0)
  })

  it('ends if one of its jobs is dropped', async () => {
    const queue = pipeline.queue('prices', 'history')
    const collected = collect(sendRequest('UNI'))
    const ids = sendRequest('UNI').chunks.map(({ id }) => id)
    await expect.poll(() => queue.getJobCountByTypes('prioritized', 'waiting')).toBe(ids.length)
    await noteDropped(pipeline.context.redis, queue, ids)
    await Promise.all(ids.map((id) => queue.remove(id)))
    const outcome = await collected
    expect(isComplete(outcome)).toBe(false)
    expect(count(outcome, 'missing')).toBe(BUCKETS)
    expect(toOutcomeTable([outcome])).toMatch(/missing of Uniswap: its job \S+ was dropped\n {2}the same command/)
  })

  it('reports failures, and the same command retries them', async () => {
    refuse(403)
    stopAfter(start(prices))
    const outcome = await collect(sendRequest('UNI'))
    expect([isComplete(outcome), count(outcome, 'failed')]).toEqual([false, BUCKETS])
    const table = toOutcomeTable([outcome])
    expect(table).toMatch(/prices 5m: 576 buckets failed of Uniswap: .*403/)
    expect(table).toMatch(/(set or check \w+_API_KEY|tried again by itself)/)
    pipeline.upstream.faults.clear()
    expect(isComplete(await collect(sendRequest('UNI')))).toBe(true)
  })

  it('reports buckets that were not renewed, although they stay covered', async () => {
    stopAfter(start(prices))
    expect(isComplete(await collect(sendRequest('UNI')))).toBe(true)
    refuse(403)
    const outcome = await collect(sendRequest('UNI'), true)
    const counts = [count(outcome, 'covered'), count(outcome, 'not renewed')]
    expect([isComplete(outcome), isAsGoodAsProviders(outcome), ...counts]).toEqual([false, false, BUCKETS, BUCKETS])
    expect(toOutcomeTable([outcome])).toMatch(/576 buckets not renewed of Uniswap: .*403.*\n.*tries it again/)
    pipeline.upstream.faults.clear()
    expect(isComplete(await collect(sendRequest('UNI'), true))).toBe(true)
  })

  it('waits for computed datasets, and reports buckets that cannot be computed', async () => {
    start(prices)
    expect(isComplete(await collect(sendRequest(undefined, 'prices', '1d')))).toBe(true)
    const runner = start(marketCap)
    const computed = once(runner, 'completed')
    const outcome = await collect(sendRequest(undefined, 'market-cap', '1d'))
    await computed
    expect([isComplete(outcome), count(outcome, 'covered')]).toEqual([true, 2])
    const before = planBackfill(
      { dataset: 'market-cap', from: '2024-03-01', to: '2024-03-03', interval: '1d', only: undefined },
      pipeline.registry,
      pipeline.clock.now,
    )
    const empty = await collect(before)
    expect([isComplete(empty), count(empty, 'unserved')]).toEqual([false, 2])
    expect(toOutcomeTable([empty])).toContain('back-fill prices of that time')
  })

  it('ends at the newest due bucket, and leaves newer ones to the slots', async () => {
    start(prices)
    const now = pipeline.clock.now
    const from = new Date(now - DAY / 4).toISOString()
    const request = { dataset: 'prices', from, to: undefined, interval: '5m', only: 'UNI' }
    const outcome = await collect(planBackfill(request, pipeline.registry, now))
    expect([isComplete(outcome), count(outcome, 'covered') > 60]).toEqual([true, true])
  })
})

it('findLedgerGaps returns the gaps of a range, and the planned jobs fill them', async () => {
  const { db } = pipeline.database
  start(prices)
  await collect(sendRequest('UNI'))
  const [uni] = sendRequest('UNI').entities
  if (uni === undefined) throw new Error('the registry has no UNI')
  const find = () => {
    const range = { from: Date.parse(DAYS.from), to: Date.parse(DAYS.to) }
    return findLedgerGaps(db, prices, pipeline.registry, { range, interval: undefined, now: pipeline.clock.now })
  }
  expect(await find()).toEqual([])
  const hour = { from: Date.parse('2024-05-01T03:00:00Z'), to: Date.parse('2024-05-01T04:00:00Z') }
  await db.command({
    name: 'lose',
    sql: `DELETE FROM token_prices WHERE observed_at >= '2024-05-01 03:00:00' AND observed_at < '2024-05-01 04:00:00'`,
  })
  const unfounded = await findUnfounded(db, prices.dataset)
  const lost = new DataError('storage', 'its answer was lost')
  const command: Database['command'] = async (statement) => {
    await db.command(statement)
    throw lost
  }
  // Buckets with rows are restored even if the change event of their removal is lost.
  await expect(removeUnfounded({ ...db, command }, prices.dataset, unfounded)).rejects.toBe(lost)
  const gaps = await find()
  expect(gaps).toMatchObject([{ entity: { id: uni.id }, ...hour, missing: 12, state: 'pending' }])
  const chunks = planRepair(prices, gaps, '5m')
  const outcome = await collect({ ...sendRequest('UNI'), range: hour, chunks, isExpected: true }, true)
  expect([isComplete(outcome), count(outcome, 'covered')]).toEqual([true, 12])
  expect(await find()).toEqual([])
})

describe('table of back-fill outcomes', () => {
  it('has a line per history, and a next step for every reason', () => {
    const part = (standing: Standing, reason: string, buckets: number, entities: string[]) => ({
      ...{ standing, reason, buckets, entities },
    })
    const table = toOutcomeTable([
      {
        title: 'prices 5m',
        computedFrom: [],
        parts: [part('covered', '', 10, ['A', 'B']), part('failed', 'x: 403', 3, ['B'])],
      },
      {
        title: 'holders 1h',
        computedFrom: [],
        parts: [part('unserved', 'moralis: MORALIS_API_KEY is not set', 7, ['A', 'B', 'C', 'D', 'E', 'F', 'G'])],
      },
    ])
    expect(table.split('\n')).toEqual([
      'history     covered  coarser  nothing there  unserved  failed  missing',
      'prices 5m   10 (2)   0        0              0         3 (1)   0',
      'holders 1h  0        0        0              7 (7)     0       0',
      'prices 5m: 3 buckets failed of B: x: 403',
      '  it is retried automatically, with increasing delays; the same command retries now',
      'holders 1h: 7 buckets unserved of A, B, C, D, E and 2 more: moralis: MORALIS_API_KEY is not set',
      '  set or check MORALIS_API_KEY and restart the workers: then it is collected by itself',
    ])
  })
})
