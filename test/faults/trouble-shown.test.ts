import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import type { Job } from '../../workers/job/define-job.ts'
import prices from '../../workers/jobs/prices.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { createWatchedPipeline, type WatchedPipeline } from './watched-pipeline.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** The start of a slot of both datasets. */
const SLOT = Date.parse('2024-05-06T07:00:00Z')
/** Jobs run within this time after the start of a slot. */
const PROMPTLY = 5_000

let pipeline: WatchedPipeline
afterEach(() => pipeline.close())

/** A pipeline that has stored one slot without faults. */
async function open(job: Job): Promise<ReturnType<WatchedPipeline['serve']>> {
  pipeline = await createWatchedPipeline(job, { now: SLOT + PROMPTLY })
  const runner = pipeline.serve()
  await once(runner, 'completed')
  await pipeline.watch()
  expect(pipeline.takeWarnings()).toEqual([])
  expect(await pipeline.status()).toMatchObject({ state: 'fresh' })
  expect(await pipeline.metric('dataset_state', { state: 'fresh' })).toBe(1)
  return runner
}

// Every fault starts with the second slot, and must be reported before the fourth is due.
describe('monitoring before the next tick', () => {
  it('reports a stopped scheduler', async () => {
    await open(prices)
    await pipeline.scheduler.stop()
    pipeline.clock.now = SLOT + 9 * MINUTE
    await pipeline.watch()
    expect(await pipeline.status()).toMatchObject({ state: 'late' })
    expect(await pipeline.metric('dataset_state', { dataset: 'prices', state: 'late' })).toBe(1)
    expect(await pipeline.metric('dataset_lag_seconds', { dataset: 'prices' })).toBe(10 * 60)
    expect(pipeline.takeWarnings()).toMatchObject([
      { dataset: 'prices', msg: 'data is late: its slots are not enqueued: does a scheduler run?' },
    ])
  })

  it('reports a provider that always fails while another provider responds', async () => {
    const runner = await open(prices)
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 500 })
    pipeline.clock.now += 5 * MINUTE
    const completed = once(runner, 'completed')
    await pipeline.scheduler.scan()
    await completed
    await pipeline.watch()
    const since = new Date(SLOT + 5 * MINUTE).toISOString()
    expect(await pipeline.status()).toMatchObject({ state: 'fresh', note: `coinmarketcap: failing since ${since}` })
    const failed = { provider: 'coinmarketcap', outcome: 'unavailable' }
    expect(await pipeline.metric('provider_calls_total', failed)).toBeGreaterThan(0)
    expect(pipeline.takeWarnings()).toContainEqual(
      expect.objectContaining({
        dataset: 'prices',
        provider: 'coinmarketcap',
        msg: 'provider failed',
        reason: expect.stringContaining('status 500'),
      }),
    )

    pipeline.upstream.faults.clear()
    pipeline.clock.now += 5 * MINUTE
    const repeated = once(runner, 'completed')
    await pipeline.scheduler.scan()
    await repeated
    expect((await pipeline.status()).note).toBeUndefined()
  })

  it('reports a provider that always fails and has no replacement', async () => {
    const runner = await open(tvl)
    pipeline.upstream.faults.set('defillama', { kind: 'status', status: 500 })
    pipeline.clock.now += HOUR
    const failed = once(runner, 'failed')
    await pipeline.scheduler.scan()
    await failed
    const since = new Date(SLOT + HOUR).toISOString()
    expect(await pipeline.status()).toMatchObject({ note: `defillama: failing since ${since}` })
    expect(await pipeline.metric('worker_jobs_total', { dataset: 'tvl', outcome: 'retried' })).toBe(1)
    const calls = { provider: 'defillama', outcome: 'unavailable' }
    expect(await pipeline.metric('provider_calls_total', calls)).toBeGreaterThan(0)
    expect(pipeline.takeWarnings()).toContainEqual(
      expect.objectContaining({
        dataset: 'tvl',
        msg: 'will be tried again',
        reason: expect.stringContaining('defillama '),
      }),
    )
    pipeline.clock.now = SLOT + 1.6 * HOUR
    await pipeline.watch()
    expect(await pipeline.status()).toMatchObject({ state: 'late' })
    expect(await pipeline.metric('dataset_state', { dataset: 'tvl', state: 'late' })).toBe(1)
    expect(pipeline.takeWarnings()).toContainEqual(
      expect.objectContaining({ dataset: 'tvl', msg: 'data is late: its newest slot is enqueued but not stored' }),
    )
  })

  it('reports a queue that grows', async () => {
    const runner = await open(prices)
    await runner.close()
    for (const minutes of [5, 10]) {
      pipeline.clock.now = SLOT + minutes * MINUTE + PROMPTLY
      await pipeline.scheduler.scan()
      await pipeline.watch()
    }
    expect(await pipeline.status()).toMatchObject({ state: 'stale' })
    expect(await pipeline.metric('queue_jobs', { dataset: 'prices', lane: 'live', state: 'waiting' })).toBe(2)
    expect(
      await pipeline.metric('queue_oldest_job_age_seconds', { dataset: 'prices', lane: 'live', state: 'waiting' }),
    ).toBeGreaterThan(0)
    const warnings = pipeline.takeWarnings()
    expect(warnings).toContainEqual(
      expect.objectContaining({
        dataset: 'prices',
        waiting: 2,
        msg: 'the queue fills up: no worker serves it, or too few',
      }),
    )
    expect(warnings).toContainEqual(
      expect.objectContaining({ dataset: 'prices', msg: 'data is stale: its newest slot is enqueued but not stored' }),
    )
  })
})
