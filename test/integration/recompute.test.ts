import { once } from 'node:events'
import { Worker } from 'bullmq'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { protocolTvl } from '../../shared/datasets/protocol-tvl.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { DataError } from '../../shared/errors.ts'
import { readDueUnits } from '../../shared/ledger/tables.ts'
import { toQueueName } from '../../shared/queue/queues.ts'
import marketCap from '../../workers/jobs/market-cap.ts'
import prices from '../../workers/jobs/prices.ts'
import { runJob } from '../../workers/run/runner.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const DAY = 86_400_000
const rowsOf = (...times: string[]) => times.map((observed_at) => ({ observed_at }))
const rangeOf = (day: string) => {
  const from = Date.parse(`${day}T00:00:00Z`)
  return { kind: 'range', from, to: from + DAY, interval: '1d' }
}

let pipeline: Pipeline
let workers: Worker[]
beforeEach(async () => {
  pipeline = await createPipeline()
  workers = []
})
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()))
  await pipeline.close()
})

const enqueue = (...times: string[]) => pipeline.context.recomputation.enqueue(tokenPrices, rowsOf(...times))
const waiting = async () => (await pipeline.queue('market-cap', 'history').getDelayed()).map(({ data }) => data)

/** Replaces the real worker: records its jobs, and runs as long as the test needs. */
function startWorker(run: () => Promise<void>) {
  const worker = new Worker(toQueueName('market-cap', 'history'), run, {
    connection: pipeline.context.blocking,
    prefix: pipeline.config.redis.prefix,
  })
  workers.push(worker)
  return worker
}

describe('computation after a stored batch', () => {
  it('is enqueued once per day range, for any number of batches', async () => {
    for (let batch = 0; batch < 50; batch++) await enqueue('2024-05-06T07:05:00Z', '2024-05-06T07:00:00Z')
    await enqueue('2024-04-01T00:00:00Z')
    expect(await waiting()).toEqual([rangeOf('2024-05-06'), rangeOf('2024-04-01')])
  })

  it('is not enqueued for datasets that it does not use', async () => {
    await pipeline.context.recomputation.enqueue(protocolTvl, rowsOf('2024-05-06T07:05:00Z'))
    expect(await waiting()).toEqual([])
  })

  it('runs a second time for batches stored while it runs, and a third time for later ones', async () => {
    let runs = 0
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const worker = startWorker(async () => {
      runs += 1
      if (runs === 1) await held
    })
    const started = once(worker, 'active')
    await enqueue('2024-05-06T07:05:00Z')
    await started
    for (let batch = 0; batch < 5; batch++) await enqueue('2024-05-06T07:10:00Z')
    const [first, second] = [once(worker, 'completed'), untilCompleted(worker, 2)]
    release()
    await first
    await second
    expect(runs).toBe(2)
    const third = once(worker, 'completed')
    await enqueue('2024-05-06T07:15:00Z')
    await third
    expect(runs).toBe(3)
    expect(await waiting()).toEqual([])
  })

  it('stays due if its source cannot be read, whatever happens to its job', async () => {
    await enqueue('2024-05-06T07:05:00Z')
    const { db } = pipeline.context
    const due = () => readDueUnits(db, marketCap.dataset, 0)
    const day = rangeOf('2024-05-06')
    expect(await due()).toEqual([{ from: day.from, to: day.to }])
    const unreadable = (): Promise<object[]> => Promise.reject(new DataError('storage', 'ClickHouse: no answer'))
    const collector = { provider: 'stored-series', covers: () => true, collect: unreadable }
    await expect(runJob(marketCap, [collector], pipeline.context, day)).rejects.toMatchObject({ code: 'storage' })
    expect(await due()).toHaveLength(1)
    await runJob(marketCap, marketCap.connect(pipeline.context), pipeline.context, day)
    expect(await due()).toEqual([])
  })

  it('is enqueued before the storing job completes, and the job is retried if that fails', async () => {
    const { context } = pipeline
    const slot = { kind: 'slot', slot: Date.parse('2024-05-06T07:05:00Z') }
    const unavailable = { ...context.recomputation, enqueue: () => Promise.reject(new Error('connection lost')) }
    const refused = runJob(prices, prices.connect(context), { ...context, recomputation: unavailable }, slot)
    await expect(refused).rejects.toMatchObject({ code: 'storage' })
    const [stored] = await context.db.rows({
      name: 'stored',
      sql: 'SELECT count() AS rows FROM token_prices FINAL',
      schema: z.object({ rows: z.number() }),
    })
    const report = await runJob(prices, prices.connect(context), context, slot)
    expect(stored?.rows).toBe(report.rows)
    expect(await waiting()).toContainEqual(rangeOf('2024-05-06'))
  })
})

function untilCompleted(worker: Worker, count: number): Promise<void> {
  let completed = 0
  return new Promise((resolve) => {
    worker.on('completed', () => {
      completed += 1
      if (completed === count) resolve()
    })
  })
}
