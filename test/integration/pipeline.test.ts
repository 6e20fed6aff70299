import { once } from 'node:events'
import { Job, type Worker } from 'bullmq'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { DataError } from '../../shared/errors.ts'
import type { Lane } from '../../shared/queue/lanes.ts'
import { enqueueRanges } from '../../shared/queue/queues.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { toAgain, wantAsked } from '../../workers/backfill/ask.ts'
import { readOutcome } from '../../workers/backfill/outcome.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import prices from '../../workers/jobs/prices.ts'
import treasury from '../../workers/jobs/treasury.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { enqueueDue, type SchedulerContext } from '../../workers/schedule/due-slots.ts'
import { enqueueMissing } from '../../workers/schedule/look.ts'
import { createWorkerMetrics } from '../../workers/watch/worker-metrics.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { runChunks } from '../support/run-chunks.ts'
import { silent } from '../support/silent.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const counts = z.object({ tokens: z.number(), rows: z.number() })

let pipeline: Pipeline
let runners: Worker[]
beforeEach(async () => {
  pipeline = await createPipeline()
  runners = []
})
afterEach(async () => {
  await Promise.all(runners.map((runner) => runner.close()))
  await pipeline.close()
})

function startWorker(lane?: Lane) {
  const runner = createRunner(prices, pipeline.context, lane)
  runners.push(runner)
  return runner
}

/** Resolves when the queue's jobs are all finished, with the jobs by outcome. */
async function untilDone(runner: Worker, jobs: number) {
  const done = { completed: [] as string[], failed: [] as { id: string; reason: string }[] }
  await new Promise<void>((resolve) => {
    const check = () => done.completed.length + done.failed.length >= jobs && resolve()
    runner.on('completed', (job) => {
      done.completed.push(String(job.id))
      check()
    })
    runner.on('failed', (job, error) => {
      if (job?.finishedOn === undefined) return
      done.failed.push({ id: String(job.id), reason: error.message })
      check()
    })
  })
  return done
}

async function stored(table = 'token_prices') {
  const sql = `SELECT uniqExact(token) AS tokens, count() AS rows FROM ${table} FINAL`
  const [row] = await pipeline.database.db.rows({ name: 'stored', sql, schema: counts })
  return row
}

const dump = async () =>
  JSON.stringify(
    await pipeline.database.db.rows({
      name: 'dump',
      sql: 'SELECT * EXCEPT version FROM token_prices FINAL ORDER BY ALL',
      schema: z.record(z.string(), z.unknown()),
    }),
  )

function scheduler(): SchedulerContext {
  const { context, config, registry, clock } = pipeline
  return {
    db: context.db,
    redis: context.redis,
    prefix: config.redis.prefix,
    registry,
    log: silent,
    now: () => clock.now,
  }
}

/** Those that are quoted at the pipeline's time: of some only the past is left now. */
const liveTokens = () => tokenPrices.entities(pipeline.registry).filter((token) => isThereAt(token, pipeline.clock.now))

describe('a price tick', () => {
  it('stores every token with as few requests as batches need and one insert', async () => {
    await enqueueDue({ job: prices, queues: pipeline.queues('prices') }, scheduler())
    const { completed } = await untilDone(startWorker(), 1)
    expect(completed).toEqual(['prices.20240506T070500Z'])
    expect(await stored()).toEqual({ tokens: liveTokens().length, rows: liveTokens().length })
    expect(await stored('token_quotes')).toEqual({ tokens: liveTokens().length, rows: liveTokens().length })
    expect(pipeline.upstream.requests.count('coinmarketcap')).toBe(
      Math.ceil(liveTokens().filter(({ cmcId }) => cmcId).length / 100),
    )
    const parts = await pipeline.database.db.rows({
      name: 'parts',
      sql: `SELECT count() AS rows, 0 AS tokens FROM system.parts
            WHERE database = {database:String} AND table = 'token_prices' AND active`,
      params: { database: pipeline.config.clickhouse.database },
      schema: counts,
    })
    expect(parts[0]?.rows).toBe(1)
  })

  it('is enqueued once, however many schedulers there are', async () => {
    const each = [1, 2, 3].map(() => ({ job: prices, queues: pipeline.queues('prices') }))
    const tick = () => Promise.all(each.map((scheduled) => enqueueDue(scheduled, scheduler())))
    for (let slot = 0; slot < 4; slot++) {
      await tick()
      await tick()
      pipeline.clock.now += 5 * MINUTE
    }
    const waiting = await pipeline.queue('prices').getWaiting()
    expect(waiting.map(({ id }) => id).sort()).toEqual(
      ['0500', '1000', '1500', '2000'].map((minute) => `prices.20240506T07${minute}Z`),
    )
  })

  it('brings the days that changes compare with when it is the first ever, and only then', async () => {
    const queues = pipeline.queues('treasury')
    await enqueueDue({ job: treasury, queues }, scheduler())
    await enqueueMissing(treasury, queues.history, scheduler())
    const ranges = (await queues.history.getPrioritized()).map(({ data }) => data)
    const times = ranges.flatMap((data) => (data.kind === 'range' ? [data.from, data.to] : []))
    const today = Date.parse('2024-05-06T00:00:00Z')
    expect([Math.min(...times), Math.max(...times)]).toEqual([today - 30 * 24 * 60 * MINUTE, today])
    expect(await queues.live.getJobCounts('waiting', 'prioritized')).toEqual({ waiting: 1, prioritized: 0 })
    await enqueueDue({ job: treasury, queues }, scheduler())
    await enqueueMissing(treasury, queues.history, scheduler())
    expect(await queues.history.getJobCounts('waiting', 'prioritized')).toEqual({
      waiting: 0,
      prioritized: ranges.length,
    })
    expect(await queues.live.getWaitingCount()).toBe(1)
  })

  it('is caught up after downtime, from history', async () => {
    const queues = pipeline.queues('prices')
    const first = enqueueDue({ job: prices, queues }, scheduler())
    const live = startWorker()
    const done = untilDone(live, 1)
    await first
    await done
    pipeline.clock.now += 60 * MINUTE
    const newest = untilDone(live, 1)
    await enqueueDue({ job: prices, queues }, scheduler())
    await newest
    const ranges = await enqueueMissing(prices, queues.history, scheduler())
    await untilDone(startWorker('history'), ranges)
    const sql = `SELECT toUInt64(0) AS tokens, uniqExact(toStartOfFiveMinutes(observed_at)) AS rows FROM token_prices
                 WHERE observed_at >= '2024-05-06 07:10:00' AND observed_at < '2024-05-06 08:05:00'`
    const [slots] = await pipeline.database.db.rows({ name: 'slots', sql, schema: counts })
    expect(slots?.rows).toBe(11)
  })

  it('is caught up when Redis has lost everything meanwhile', async () => {
    const queues = pipeline.queues('prices')
    await enqueueDue({ job: prices, queues }, scheduler())
    await untilDone(startWorker(), 1)
    const { redis } = pipeline.context
    await redis.del(...(await redis.keys(`${pipeline.config.redis.prefix}:*`)))
    pipeline.clock.now += 20 * MINUTE
    expect(await enqueueMissing(prices, queues.history, scheduler())).toBeGreaterThan(0)
    const missed = (await queues.history.getPrioritized()).map(({ data }) => data)
    for (const data of missed) {
      expect(data).toMatchObject({
        from: Date.parse('2024-05-06T07:05:00Z'),
        to: Date.parse('2024-05-06T07:20:00Z'),
      })
    }
  })
})

describe('a failing provider', () => {
  const slot = { kind: 'slot', slot: Date.parse('2024-05-06T07:05:00Z') } as const

  it('is stood in for by the next one', async () => {
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 500 })
    await pipeline.queue('prices').add('prices', slot)
    await untilDone(startWorker(), 1)
    const { tokens } = (await stored()) ?? { tokens: 0 }
    expect(tokens).toBe(liveTokens().filter(({ coingeckoId }) => coingeckoId).length)
  })

  it('is asked again later when all are away, and the slot is stored then', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 503 }, { times: 4 })
    await pipeline.queue('prices').add('prices', slot, { attempts: 3, backoff: { type: 'fixed', delay: 1 } })
    const { failed } = await untilDone(startWorker(), 1)
    expect(failed).toEqual([])
    expect((await stored())?.tokens).toBe(liveTokens().length)
  })

  it('is asked again until the slot is over, and the reason then names the time', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 503 })
    const queue = pipeline.queue('prices')
    const runner = startWorker()
    const first = once(runner, 'failed')
    await queue.add('prices', slot, { jobId: 'slot' })
    expect((await first)[0].finishedOn).toBeUndefined()
    // A tenth of a second before the slot is over no pause ends in time.
    pipeline.clock.now = slot.slot + 5 * MINUTE - 100
    const { failed } = await untilDone(runner, 1)
    expect(failed[0]?.reason).toMatch(
      /status 503.*\(not tried again: its time ends at 2024-05-06T07:10:00\.000Z, and the next try would come later\)$/,
    )
  })

  it('that asks for a longer wait than the slot lasts is not asked again, and the reason names both times', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 429, retryAfter: 3600 })
    await pipeline.queue('prices').add('prices', slot)
    const { failed } = await untilDone(startWorker(), 1)
    expect(failed[0]?.reason).toMatch(
      /its time ends at 2024-05-06T07:10:00.000Z, and the provider asks to wait until 2024-05-06T08:05:09.000Z\)$/,
    )
  })

  it('is asked for a range for half an hour from its first failure on, and anew when an operator retries', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 503 })
    const queue = pipeline.queue('prices', 'history')
    const runner = startWorker('history')
    const range = { kind: 'range', from: slot.slot - HOUR, to: slot.slot, interval: '5m' } as const
    const first = once(runner, 'failed')
    await queue.add('prices', range, { jobId: 'range' })
    expect((await first)[0].finishedOn).toBeUndefined()
    pipeline.clock.now += 30 * MINUTE
    const { failed } = await untilDone(runner, 1)
    expect(failed[0]?.reason).toContain('its time ends at 2024-05-06T07:35:09.000Z')
    const again = once(runner, 'failed')
    await (await queue.getJob('range'))?.retry('failed', { resetAttemptsMade: true })
    expect((await again)[0].finishedOn).toBeUndefined()
  })

  it('is asked again, also where Redis refuses to note who is left', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 503 })
    const refuse = vi.spyOn(Job.prototype, 'updateData').mockRejectedValueOnce(new Error('OOM command not allowed'))
    onTestFinished(() => refuse.mockRestore())
    const runner = startWorker()
    const first = once(runner, 'failed')
    await pipeline.queue('prices').add('prices', slot)
    const [job, { message }] = await first
    expect([message, job.finishedOn]).toEqual(['Redis, who is left of a job: OOM command not allowed', undefined])
  })

  it('whose plan is used up postpones a range, which is planned anew when the plan has room', async () => {
    const to = pipeline.clock.now - 24 * HOUR
    const request = { dataset: 'prices', from: new Date(to - HOUR).toISOString(), to: new Date(to).toISOString() }
    const ask = planBackfill({ ...request, interval: '5m', only: 'UNI' }, pipeline.registry, pipeline.clock.now)
    await wantAsked(pipeline.context.db, ask)
    const usedUp = new DataError('provider_exhausted', 'acme: used up', { retryAfterMs: 8 * HOUR })
    const collector = { provider: 'acme', covers: () => true, collect: () => Promise.reject(usedUp) }
    const job = { ...prices, connect: () => [collector] }
    const metrics = createMetrics('test')
    const runner = createRunner(job, { ...pipeline.context, metrics: createWorkerMetrics(metrics) }, 'history')
    runners.push(runner)
    const { history } = pipeline.queues('prices')
    await enqueueRanges(history, ask.chunks)
    expect((await untilDone(runner, 1)).failed).toEqual([])
    expect((await history.getCompleted())[0]?.returnvalue.postponed).toContain('acme: used up')
    const counted = await metrics.metrics()
    expect(counted).toMatch(/^worker_jobs_total\{dataset="prices",outcome="postponed",.*\} 1$/m)
    expect(counted).toMatch(/^worker_jobs_total\{dataset="prices",outcome="failed",.*\} 0$/m)
    const outcome = await readOutcome(pipeline.context.db, ask, {
      ended: [],
      isRenewal: false,
      now: pipeline.clock.now,
    })
    expect(outcome.parts).toMatchObject([{ standing: 'failed', reason: 'acme: used up', entities: ['Uniswap'] }])
    await runner.close()
    expect(await enqueueMissing(job, history, scheduler())).toBe(0)
    pipeline.clock.now += 8 * HOUR
    expect(await enqueueMissing(job, history, scheduler())).toBeGreaterThan(0)
    // What is known and was to be collected again is planned by nobody else.
    const again = createRunner(job, pipeline.context, 'history')
    runners.push(again)
    await history.obliterate({ force: true })
    await enqueueRanges(history, toAgain(ask.chunks))
    expect((await untilDone(again, 1)).failed).toMatchObject([{ reason: expect.stringContaining('acme: used up') }])
  })

  it('that leaves a range to a coarser one is asked for no longer, though every try stores what the other has', async () => {
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 503 })
    const runner = startWorker('history')
    const first = once(runner, 'failed')
    const to = slot.slot - 240 * HOUR
    await pipeline.queue('prices', 'history').add('prices', { kind: 'range', from: to - 24 * HOUR, to, interval: '5m' })
    expect((await first)[0].finishedOn).toBeUndefined()
    expect((await stored())?.rows).toBeGreaterThan(0)
    pipeline.clock.now += 30 * MINUTE
    const { failed } = await untilDone(runner, 1)
    expect(failed[0]?.reason).toContain('its time ends at 2024-05-06T07:35:09.000Z')
  })

  it('that refuses is asked again until the slot is over, and nothing is stored of it', async () => {
    const reason = { kind: 'status', status: 401 } as const
    for (const provider of ['coinmarketcap', 'coingecko']) pipeline.upstream.faults.set(provider, reason)
    const runner = startWorker()
    const first = once(runner, 'failed')
    await pipeline.queue('prices').add('prices', slot)
    expect((await first)[0].finishedOn).toBeUndefined()
    pipeline.clock.now = slot.slot + 5 * MINUTE - 100
    const { failed } = await untilDone(runner, 1)
    expect(failed[0]?.reason).toMatch(/coinmarketcap.*401/)
    expect(await pipeline.queue('prices').getFailedCount()).toBe(1)
    expect((await stored())?.rows).toBe(0)
  })

  it('loses nothing that was stored when its answer is malformed', async () => {
    const queue = pipeline.queue('prices')
    await queue.add('prices', slot)
    const runner = startWorker()
    await untilDone(runner, 1)
    const before = await dump()
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'content-type' })
    const failed = once(runner, 'failed')
    await queue.add('prices', slot, { jobId: 'again' })
    expect((await failed)[1].message).toContain('coinmarketcap')
    expect(await dump()).toBe(before)
  })

  it('refuses a payload that makes no sense, naming the member', async () => {
    await pipeline.queue('prices').add('prices', { kind: 'range', from: -1, to: 5, interval: '5m' })
    const { failed } = await untilDone(startWorker(), 1)
    expect(failed[0]?.reason).toMatch(/prices: .*from/s)
  })
})

describe('a back-fill', () => {
  const request = { dataset: 'prices', from: '2024-05-01', to: '2024-05-03', interval: '5m', only: 'UNI,aave' }
  const plan = () => planBackfill(request, pipeline.registry, pipeline.clock.now)
  const follow = (again: boolean) => {
    const { context, config } = pipeline
    const options = {
      redis: context.redis,
      blocking: context.blocking,
      prefix: config.redis.prefix,
      again,
      onStep: () => {},
    }
    return runChunks(pipeline.queue('prices', 'history'), plan().chunks, options)
  }

  it('stores the range, changes nothing when repeated and skips what is finished', async () => {
    startWorker('history')
    expect(await follow(false)).toMatchObject({ rows: 2 * 2 * 288, skipped: 0 })
    const before = await dump()
    expect(await stored()).toEqual({ tokens: 2, rows: 2 * 2 * 288 })
    expect(await follow(false)).toMatchObject({ rows: 0, skipped: plan().chunks.length })
    expect(await follow(true)).toMatchObject({ rows: 2 * 2 * 288, skipped: 0 })
    expect(await dump()).toBe(before)
  })

  it('goes on where it was stopped', async () => {
    const { chunks } = plan()
    const queue = pipeline.queue('prices', 'history')
    await queue.addBulk(chunks.map(({ id, payload }) => ({ name: 'prices', data: payload, opts: { jobId: id } })))
    const followed = follow(false)
    startWorker('history')
    expect((await followed).rows).toBe(2 * 2 * 288)
    expect((await queue.getJobCounts()).completed).toBe(chunks.length)
  })

  it('that an older version left in the live queue is moved to history, and not lost', async () => {
    const { chunks } = plan()
    const live = pipeline.queue('prices')
    const opts = { priority: 10 }
    await live.addBulk(
      chunks.map(({ id, payload }) => ({ name: 'prices', data: payload, opts: { ...opts, jobId: id } })),
    )
    const [chunk] = chunks
    if (chunk === undefined) throw new Error('nothing is planned')
    // A computation that follows stored rows has an id of the queue's own.
    await live.add('prices', chunk.payload)
    expect((await untilDone(startWorker(), chunks.length + 1)).failed).toEqual([])
    expect((await stored())?.rows).toBe(0)
    const history = pipeline.queue('prices', 'history')
    const moved = (await history.getJobs(['prioritized', 'waiting'])).map(({ id, data }) => [id, data])
    expect(moved).toHaveLength(chunks.length + 1)
    expect(moved).toEqual(expect.arrayContaining(chunks.map(({ id, payload }) => [id, payload])))
    const followed = follow(false)
    startWorker('history')
    await followed
    expect(await stored()).toEqual({ tokens: 2, rows: 2 * 2 * 288 })
  })

  it('refuses bad ranges and unknown names, all at once', () => {
    const bad = { dataset: 'prices', from: '2024-02-30', to: '2023-01-01', interval: '2h', only: 'UNI,NOPE' }
    expect(() => planBackfill(bad, pipeline.registry, pipeline.clock.now)).toThrow(
      /--from 2024-02-30.*--interval 2h.*nope/s,
    )
    expect(() => planBackfill({ ...request, from: '2022-01-31' }, pipeline.registry, pipeline.clock.now)).toThrow(
      '--from 2022-01-31 is before 2022-02-01',
    )
    const reversed = { ...request, from: '2024-05-03', to: '2024-05-01' }
    expect(() => planBackfill(reversed, pipeline.registry, pipeline.clock.now)).toThrow('is not before')
    expect(() => planBackfill({ ...request, dataset: 'weather' }, pipeline.registry, pipeline.clock.now)).toThrow(
      'no such dataset',
    )
    expect(() => planBackfill({ ...request, to: '2099-01-01' }, pipeline.registry, pipeline.clock.now)).toThrow(
      'in the future',
    )
  })
})
