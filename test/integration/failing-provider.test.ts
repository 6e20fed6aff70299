import { once } from 'node:events'
import { Job } from 'bullmq'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { addCoverage, writeNotes } from '../../shared/ledger/tables.ts'
import { enqueueRanges } from '../../shared/queue/queues.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { type Ended, readOutcome } from '../../workers/backfill/outcome.ts'
import { planBackfill } from '../../workers/backfill/plan.ts'
import { recordExpectedHistory, toRepeated } from '../../workers/backfill/request.ts'
import prices from '../../workers/jobs/prices.ts'
import { createWorkerMetrics } from '../../workers/monitoring/worker-metrics.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { enqueueMissing } from '../../workers/schedule/scan-for-gaps.ts'
import { createPricesPipeline, type PricesPipeline, untilDone } from '../support/prices-pipeline.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let pipeline: PricesPipeline
beforeEach(async () => {
  pipeline = await createPricesPipeline()
})
afterEach(() => pipeline.close())

describe('a failing provider', () => {
  const slot = { kind: 'slot', slot: Date.parse('2024-05-06T07:05:00Z') } as const

  it('is replaced by the next provider', async () => {
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 500 })
    await pipeline.queue('prices').add('prices', slot)
    await untilDone(pipeline.startWorker(), 1)
    const { tokens } = (await pipeline.stored()) ?? { tokens: 0 }
    expect(tokens).toBe(pipeline.liveTokens().filter(({ coingeckoId }) => coingeckoId).length)
  })

  it('is retried later if all providers fail, and the slot is stored then', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 503 }, { times: 4 })
    await pipeline.queue('prices').add('prices', slot, { attempts: 3, backoff: { type: 'fixed', delay: 1 } })
    const { failed } = await untilDone(pipeline.startWorker(), 1)
    expect(failed).toEqual([])
    expect((await pipeline.stored())?.tokens).toBe(pipeline.liveTokens().length)
  })

  it('is retried until the end of the slot, and the reason then has the time', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 503 })
    const queue = pipeline.queue('prices')
    const runner = pipeline.startWorker()
    const first = once(runner, 'failed')
    await queue.add('prices', slot, { jobId: 'slot' })
    expect((await first)[0].finishedOn).toBeUndefined()
    // A tenth of a second before the end of the slot, every pause ends too late.
    pipeline.clock.now = slot.slot + 5 * MINUTE - 100
    const { failed } = await untilDone(runner, 1)
    expect(failed[0]?.reason).toMatch(
      /status 503.*\(not tried again: its time ends at 2024-05-06T07:10:00\.000Z, and the next try would come later\)$/,
    )
  })

  it('is not retried if it requests a wait beyond the slot, and the reason has both times', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 429, retryAfter: 3600 })
    await pipeline.queue('prices').add('prices', slot)
    const { failed } = await untilDone(pipeline.startWorker(), 1)
    expect(failed[0]?.reason).toMatch(
      /its time ends at 2024-05-06T07:10:00.000Z, and the provider asks to wait until 2024-05-06T08:05:09.000Z\)$/,
    )
  })

  it('is retried for a range for half an hour after the first failure, and again when an operator retries', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 503 })
    const queue = pipeline.queue('prices', 'history')
    const runner = pipeline.startWorker('history')
    const range = { kind: 'range', from: slot.slot - HOUR, to: slot.slot, interval: '5m' } as const
    const first = once(runner, 'failed')
    await queue.add('prices', range, { jobId: 'range' })
    expect((await first)[0].finishedOn).toBeUndefined()
    pipeline.clock.now += 30 * MINUTE
    const { failed } = await untilDone(runner, 1)
    expect(failed[0]?.reason).toContain('its time ends at 2024-05-06T07:35:09.000Z')
    const repeated = once(runner, 'failed')
    await (await queue.getJob('range'))?.retry('failed', { resetAttemptsMade: true })
    expect((await repeated)[0].finishedOn).toBeUndefined()
  })

  it('is retried, even if Redis cannot store the remaining entities', async () => {
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 503 })
    const refuse = vi.spyOn(Job.prototype, 'updateData').mockRejectedValueOnce(new Error('OOM command not allowed'))
    onTestFinished(() => refuse.mockRestore())
    const runner = pipeline.startWorker()
    const first = once(runner, 'failed')
    await pipeline.queue('prices').add('prices', slot)
    const [job, { message }] = await first
    expect([message, job.finishedOn]).toEqual([
      'Redis, remaining entities of a job: OOM command not allowed',
      undefined,
    ])
  })

  it('postpones a range if its plan is exhausted, and the range is planned again after the reset', async () => {
    const to = pipeline.clock.now - 24 * HOUR
    const request = { dataset: 'prices', from: new Date(to - HOUR).toISOString(), to: new Date(to).toISOString() }
    const plan = planBackfill({ ...request, interval: '5m', only: 'UNI' }, pipeline.registry, pipeline.clock.now)
    await recordExpectedHistory(pipeline.context.db, plan)
    const usedUp = new DataError('provider_exhausted', 'acme: used up', { retryAfterMs: 8 * HOUR })
    const collector = { provider: 'acme', covers: () => true, collect: () => Promise.reject(usedUp) }
    const job = { ...prices, connect: () => [collector] }
    const metrics = createMetrics('test')
    const runner = createRunner(job, { ...pipeline.context, metrics: createWorkerMetrics(metrics) }, 'history')
    pipeline.runners.push(runner)
    const { history } = pipeline.queues('prices')
    await enqueueRanges(history, plan.chunks)
    expect((await untilDone(runner, 1)).failed).toEqual([])
    expect((await history.getCompleted())[0]?.returnvalue.postponed).toContain('acme: used up')
    const counted = await metrics.metrics()
    expect(counted).toMatch(/^worker_jobs_total\{dataset="prices",outcome="postponed",.*\} 1$/m)
    expect(counted).toMatch(/^worker_jobs_total\{dataset="prices",outcome="failed",.*\} 0$/m)
    const outcome = await readOutcome(pipeline.context.db, plan, {
      ended: [],
      isRenewal: false,
      now: pipeline.clock.now,
    })
    expect(outcome.parts).toMatchObject([{ standing: 'failed', reason: 'acme: used up', entities: ['Uniswap'] }])
    await runner.close()
    expect(await enqueueMissing(job, history, pipeline.scheduler)).toBe(0)
    pipeline.clock.now += 8 * HOUR
    expect(await enqueueMissing(job, history, pipeline.scheduler)).toBeGreaterThan(0)
    // No gap scan plans a range that is covered and was to be collected again.
    const repeated = createRunner(job, pipeline.context, 'history')
    pipeline.runners.push(repeated)
    await history.obliterate({ force: true })
    await enqueueRanges(history, toRepeated(plan.chunks))
    expect((await untilDone(repeated, 1)).failed).toMatchObject([{ reason: expect.stringContaining('acme: used up') }])
  })

  it('has a reason for each state of the requested hours', async () => {
    const { db } = pipeline.context
    const from = Date.parse('2024-05-01T00:00:00Z')
    const times = { from: new Date(from).toISOString(), to: new Date(from + 4 * HOUR).toISOString() }
    const request = { dataset: 'prices', ...times, interval: '1h' as const, only: 'UNI' }
    const plan = planBackfill(request, pipeline.registry, pipeline.clock.now)
    await recordExpectedHistory(db, plan)
    const [chunk] = plan.chunks
    const [uni] = plan.job.entities(pipeline.registry).filter(({ name }) => name === 'Uniswap')
    if (chunk === undefined || uni === undefined) throw new Error('a range of Uniswap is needed')
    const read = async (ended: readonly Ended[]) => {
      const { parts } = await readOutcome(db, plan, { ended, isRenewal: false, now: pipeline.clock.now })
      return parts.map(({ standing, reason, buckets }) => [standing, reason, buckets])
    }
    expect(await read([])).toEqual([['missing', 'not collected yet', 48]])
    expect(await read([{ chunk, reason: 'acme: refused' }])).toEqual([['missing', 'acme: refused', 48]])

    const [first, hour, day] = [from / 300_000, 12, 86_400]
    const report = { entity: uni.key, state: 'stored', provider: 'acme', seconds: day } as const
    await addCoverage(db, prices.dataset, [{ ...report, first, last: first + hour - 1 }])
    const parts = (coarser: string) => [
      ['coarser', coarser, hour],
      ['missing', 'not collected yet', 3 * hour],
    ]
    expect(await read([])).toEqual(parts('the provider has only a longer step'))
    const note = { entity: uni.key, queueClass: 'history', state: 'coarser', provider: 'acme', since: 0 } as const
    const noted = { ...note, from, to: from + HOUR, reason: 'acme has only days', tries: 1, nextTry: 0 }
    await writeNotes(db, prices.dataset, [noted])
    expect(await read([])).toEqual(parts('acme has only days'))
  })

  it("is not retried for a range that a coarser provider filled, although each attempt stores that provider's rows", async () => {
    pipeline.upstream.faults.set('coinmarketcap', { kind: 'status', status: 503 })
    const runner = pipeline.startWorker('history')
    const first = once(runner, 'failed')
    const to = slot.slot - 240 * HOUR
    await pipeline.queue('prices', 'history').add('prices', { kind: 'range', from: to - 24 * HOUR, to, interval: '5m' })
    expect((await first)[0].finishedOn).toBeUndefined()
    expect((await pipeline.stored())?.rows).toBeGreaterThan(0)
    pipeline.clock.now += 30 * MINUTE
    const { failed } = await untilDone(runner, 1)
    expect(failed[0]?.reason).toContain('its time ends at 2024-05-06T07:35:09.000Z')
  })

  it('is retried until the end of the slot if it rejects requests, and stores nothing', async () => {
    const reason = { kind: 'status', status: 401 } as const
    for (const provider of ['coinmarketcap', 'coingecko']) pipeline.upstream.faults.set(provider, reason)
    const runner = pipeline.startWorker()
    const first = once(runner, 'failed')
    await pipeline.queue('prices').add('prices', slot)
    expect((await first)[0].finishedOn).toBeUndefined()
    pipeline.clock.now = slot.slot + 5 * MINUTE - 100
    const { failed } = await untilDone(runner, 1)
    expect(failed[0]?.reason).toMatch(/coinmarketcap.*401/)
    expect(await pipeline.queue('prices').getFailedCount()).toBe(1)
    expect((await pipeline.stored())?.rows).toBe(0)
  })

  it('does not change stored rows by a malformed response', async () => {
    const queue = pipeline.queue('prices')
    await queue.add('prices', slot)
    const runner = pipeline.startWorker()
    await untilDone(runner, 1)
    const before = await pipeline.dump()
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'content-type' })
    const failed = once(runner, 'failed')
    await queue.add('prices', slot, { jobId: 'again' })
    expect((await failed)[1].message).toContain('coinmarketcap')
    expect(await pipeline.dump()).toBe(before)
  })

  it('is not called for an invalid payload, and the reason names the member', async () => {
    await pipeline.queue('prices').add('prices', { kind: 'range', from: -1, to: 5, interval: '5m' })
    const { failed } = await untilDone(pipeline.startWorker(), 1)
    expect(failed[0]?.reason).toMatch(/prices: .*from/s)
  })
})
