import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { planBackfill } from '../../workers/backfill/plan.ts'
import prices from '../../workers/jobs/prices.ts'
import treasury from '../../workers/jobs/treasury.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { enqueueMissing } from '../../workers/schedule/scan-for-gaps.ts'
import { emptyRedis } from '../support/empty-redis.ts'
import { createPricesPipeline, type PricesPipeline, untilDone } from '../support/prices-pipeline.ts'
import { runChunks } from '../support/run-chunks.ts'

const MINUTE = 60_000
const counts = z.object({ tokens: z.number(), rows: z.number() })

let pipeline: PricesPipeline
beforeEach(async () => {
  pipeline = await createPricesPipeline()
})
afterEach(() => pipeline.close())

describe('price slot', () => {
  it('stores every token with one request per batch and one insert', async () => {
    await enqueueDue({ job: prices, queues: pipeline.queues('prices') }, pipeline.scheduler)
    const { completed } = await untilDone(pipeline.startWorker(), 1)
    expect(completed).toEqual(['prices.20240506T070500Z'])
    expect(await pipeline.stored()).toEqual({
      tokens: pipeline.liveTokens().length,
      rows: pipeline.liveTokens().length,
    })
    expect(await pipeline.stored('token_quotes')).toEqual({
      tokens: pipeline.liveTokens().length,
      rows: pipeline.liveTokens().length,
    })
    expect(pipeline.upstream.requests.count('coinmarketcap')).toBe(
      Math.ceil(pipeline.liveTokens().filter(({ cmcId }) => cmcId).length / 100),
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

  it('is enqueued once by any number of schedulers', async () => {
    const each = [1, 2, 3].map(() => ({ job: prices, queues: pipeline.queues('prices') }))
    const tick = () => Promise.all(each.map((scheduled) => enqueueDue(scheduled, pipeline.scheduler)))
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

  it('enqueues the days for percentage changes only if it is the first one', async () => {
    const queues = pipeline.queues('treasury')
    await enqueueDue({ job: treasury, queues }, pipeline.scheduler)
    await enqueueMissing(treasury, queues.history, pipeline.scheduler)
    const ranges = (await queues.history.getPrioritized()).map(({ data }) => data)
    const times = ranges.flatMap((data) => (data.kind === 'range' ? [data.from, data.to] : []))
    const today = Date.parse('2024-05-06T00:00:00Z')
    expect([Math.min(...times), Math.max(...times)]).toEqual([today - 30 * 24 * 60 * MINUTE, today])
    expect(await queues.live.getJobCounts('waiting', 'prioritized')).toEqual({ waiting: 1, prioritized: 0 })
    await enqueueDue({ job: treasury, queues }, pipeline.scheduler)
    await enqueueMissing(treasury, queues.history, pipeline.scheduler)
    expect(await queues.history.getJobCounts('waiting', 'prioritized')).toEqual({
      waiting: 0,
      prioritized: ranges.length,
    })
    expect(await queues.live.getWaitingCount()).toBe(1)
  })

  it('is filled from history after downtime', async () => {
    const queues = pipeline.queues('prices')
    const first = enqueueDue({ job: prices, queues }, pipeline.scheduler)
    const live = pipeline.startWorker()
    const done = untilDone(live, 1)
    await first
    await done
    pipeline.clock.now += 60 * MINUTE
    const newest = untilDone(live, 1)
    await enqueueDue({ job: prices, queues }, pipeline.scheduler)
    await newest
    const ranges = await enqueueMissing(prices, queues.history, pipeline.scheduler)
    await untilDone(pipeline.startWorker('history'), ranges)
    const sql = `SELECT toUInt64(0) AS tokens, uniqExact(toStartOfFiveMinutes(observed_at)) AS rows FROM token_prices
                 WHERE observed_at >= '2024-05-06 07:10:00' AND observed_at < '2024-05-06 08:05:00'`
    const [slots] = await pipeline.database.db.rows({ name: 'slots', sql, schema: counts })
    expect(slots?.rows).toBe(11)
  })

  it('is filled after Redis lost all data', async () => {
    const queues = pipeline.queues('prices')
    await enqueueDue({ job: prices, queues }, pipeline.scheduler)
    await untilDone(pipeline.startWorker(), 1)
    const { redis } = pipeline.context
    await emptyRedis(redis, pipeline.config.redis.prefix)
    pipeline.clock.now += 20 * MINUTE
    expect(await enqueueMissing(prices, queues.history, pipeline.scheduler)).toBeGreaterThan(0)
    const missed = (await queues.history.getPrioritized()).map(({ data }) => data)
    for (const data of missed) {
      expect(data).toMatchObject({
        from: Date.parse('2024-05-06T07:05:00Z'),
        to: Date.parse('2024-05-06T07:20:00Z'),
      })
    }
  })
})

describe('back-fill of prices', () => {
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

  it('stores the range, changes nothing when repeated and skips finished chunks', async () => {
    pipeline.startWorker('history')
    expect(await follow(false)).toMatchObject({ rows: 2 * 2 * 288, skipped: 0 })
    const before = await pipeline.dump()
    expect(await pipeline.stored()).toEqual({ tokens: 2, rows: 2 * 2 * 288 })
    expect(await follow(false)).toMatchObject({ rows: 0, skipped: plan().chunks.length })
    expect(await follow(true)).toMatchObject({ rows: 2 * 2 * 288, skipped: 0 })
    expect(await pipeline.dump()).toBe(before)
  })

  it('resumes after an interruption', async () => {
    const { chunks } = plan()
    const queue = pipeline.queue('prices', 'history')
    await queue.addBulk(chunks.map(({ id, payload }) => ({ name: 'prices', data: payload, opts: { jobId: id } })))
    const followed = follow(false)
    pipeline.startWorker('history')
    expect((await followed).rows).toBe(2 * 2 * 288)
    expect((await queue.getJobCounts()).completed).toBe(chunks.length)
  })

  it('rejects invalid ranges and unknown names in one message', () => {
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
