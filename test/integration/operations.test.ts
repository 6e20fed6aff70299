import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { END_OF_TIME } from '../../shared/intervals.ts'
import { recordExpected } from '../../shared/ledger/expected.ts'
import { addCoverage, writeNotes } from '../../shared/ledger/tables.ts'
import { createRedis, requireRedis } from '../../shared/queue/redis.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { applyTo, findJobs, toJobsTable, toRequest } from '../../workers/commands/queued-jobs.ts'
import { isAlarming, readStatus, toStatusTable } from '../../workers/commands/status.ts'
import prices from '../../workers/jobs/prices.ts'
import tvl from '../../workers/jobs/tvl.ts'
import { createWatchdog } from '../../workers/monitoring/watchdog.ts'
import { createRunner, rememberFailing } from '../../workers/run/runner.ts'
import { storeMarket } from '../support/market.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let pipeline: Pipeline
beforeEach(async () => {
  pipeline = await createPipeline()
})
afterEach(() => pipeline.close())

describe('readStatus', () => {
  it('returns the age and state of each dataset from stored rows, with the time of the next check', async () => {
    const { db } = pipeline.database
    const until = Date.parse('2024-05-06T07:05:00Z')
    await storeMarket(db, { keys: [1, 2], until, points: 3, stepMs: 300_000 })
    const read = (now: number) => readStatus(db, [prices.dataset, tvl.dataset], pipeline.registry, now)
    const [fresh, empty] = await read(until + 6 * MINUTE)
    expect(fresh).toEqual({
      dataset: 'prices',
      cadence: '5m',
      lastUpdated: '2024-05-06T07:05:00.000Z',
      lagSeconds: 360,
      state: 'fresh',
      idle: null,
      rows: 6,
      complete: 0,
      failing: [],
    })
    expect(empty).toMatchObject({ dataset: 'tvl', lastUpdated: null, lagSeconds: null, state: 'empty', rows: 0 })
    expect(isAlarming(fresh === undefined ? [] : [fresh])).toBe(false)
    const [late] = await read(until + 8 * MINUTE)
    const [stale] = await read(until + 11 * MINUTE)
    expect([late?.state, stale?.state]).toEqual(['late', 'stale'])
    expect([late, stale, empty].map((one) => one !== undefined && isAlarming([one]))).toEqual([false, true, true])
    expect(toStatusTable(await read(until + 6 * MINUTE))).toBe(
      [
        'dataset  cadence  last updated (UTC)   lag  state  rows  complete',
        'prices   5m       2024-05-06 07:05:00  6m   fresh  6     0 %',
        'tvl      1h       -                    -    empty  0     0 %',
      ].join('\n'),
    )
    const [, off] = await readStatus(db, [prices.dataset, tvl.dataset], pipeline.registry, until, ['tvl'])
    expect(off).toMatchObject({ state: 'empty', idle: 'off' })
    expect(off && isAlarming([off])).toBe(false)
    const entities = prices.entities(pipeline.registry)
    await recordExpected(db, prices.dataset, [
      { entity: ALL_ENTITIES, from: until - 10 * 5 * MINUTE, to: until, interval: '5m' },
    ])
    const first = (until - 10 * 5 * MINUTE) / (5 * MINUTE)
    const report = { state: 'stored' as const, provider: 'coingecko', seconds: 300, first, last: first + 8 }
    await addCoverage(
      db,
      prices.dataset,
      entities.map(({ key }) => ({ ...report, entity: key })),
    )
    await rememberFailing({ db, now: () => until }, 'prices', {
      slot: until,
      batch: undefined,
      isComplete: true,
      failures: [{ provider: 'coinmarketcap', reason: new DataError('provider_unavailable', 'status 503') }],
      answered: [],
    })
    const observed = toStatusTable(await read(until + 6 * MINUTE))
    expect(observed).toMatch(/^prices .* 90 %$/m)
    expect(observed).toContain('prices: coinmarketcap fails since 2024-05-06 07:05:00: status 503')
  })

  it('reports an unserved dataset as unknown, unless it once had data', async () => {
    const { db } = pipeline.database
    const now = Date.parse('2024-05-06T07:05:00Z')
    const times = { from: now - HOUR, to: END_OF_TIME, since: now, nextTry: now, tries: 1 }
    const reason = { queueClass: 'live', state: 'unserved', provider: 'defillama', reason: 'no key' } as const
    const keys = tvl.entities(pipeline.registry).map(({ key }) => key)
    const toNotes = (selected: number[]) => selected.map((entity) => ({ entity, ...reason, ...times }))
    const read = async () => {
      const [status] = await readStatus(db, [tvl.dataset], pipeline.registry, now)
      return [status?.state, status?.idle, status && isAlarming([status])]
    }
    await writeNotes(db, tvl.dataset, toNotes(keys.slice(1)))
    expect(await read()).toEqual(['empty', null, true])
    await writeNotes(db, tvl.dataset, toNotes(keys))
    expect(await read()).toEqual(['empty', 'unserved', false])
    const metrics = createMetrics('test')
    const { redis } = pipeline.context
    const watched = { db, redis, prefix: pipeline.config.redis.prefix, datasets: [tvl.dataset] }
    await createWatchdog({
      ...watched,
      records: pipeline.registry,
      registry: metrics,
      log: silent,
      now: () => now,
    }).check()
    expect(await metrics.metrics()).toMatch(/^dataset_state\{dataset="tvl",state="unserved",.*\} 1$/m)
    const observed_at = new Date(now - 3 * HOUR).toISOString()
    await db.insert({ table: 'protocol_tvl', rows: [{ dao: 1, observed_at, tvl_usd: 5 }] })
    expect(await read()).toEqual(['stale', null, true])
  })
})

describe('dead letters', () => {
  const slot = { kind: 'slot', slot: Date.parse('2024-05-06T07:05:00Z') } as const
  const failed = { state: 'failed', reason: undefined } as const

  /** Two jobs that failed permanently for different reasons. */
  async function failTwo() {
    const queue = pipeline.queue('prices')
    // The slot is nearly over: the job has one attempt.
    pipeline.clock.now = slot.slot + 5 * MINUTE - 1
    for (const provider of ['coinmarketcap', 'coingecko'])
      pipeline.upstream.faults.set(provider, { kind: 'status', status: 401 })
    const runner = createRunner(prices, pipeline.context)
    let failures = 0
    const both = new Promise<void>((resolve) => runner.on('failed', () => ++failures === 2 && resolve()))
    await queue.add('prices', slot, { jobId: 'refused' })
    await queue.add('prices', { kind: 'range', from: -1, to: 1, interval: '5m' }, { jobId: 'odd' })
    await both
    await runner.close()
    pipeline.upstream.faults.clear()
    return queue
  }

  it('can be listed and selected by reason, and complete after a retry', async () => {
    const queue = await failTwo()
    const all = await findJobs(queue, failed)
    expect(all.map(({ listed }) => listed.id).sort()).toEqual(['odd', 'refused'])
    expect(toJobsTable(all.map(({ listed }) => listed))).toMatch(/refused +failed +1 .*401/)
    const refused = await findJobs(queue, { ...failed, reason: '401' })
    expect(refused.map(({ listed }) => listed.id)).toEqual(['refused'])
    expect(await applyTo(refused, 'retry', () => {})).toEqual([])
    expect((await queue.getJob('refused'))?.attemptsMade).toBe(0)
    const runner = createRunner(prices, pipeline.context)
    const [done] = await once(runner, 'completed')
    await runner.close()
    expect(done.id).toBe('refused')
    expect((await findJobs(queue, failed)).map(({ listed }) => listed.id)).toEqual(['odd'])
  })

  it('can be dropped, and jobs that another operator removed are reported', async () => {
    const queue = await failTwo()
    const all = await findJobs(queue, failed)
    await queue.remove('odd')
    let steps = 0
    const missed = await applyTo(all, 'retry', () => {
      steps += 1
    })
    expect([missed.map(({ id }) => id), steps]).toEqual([['odd'], 2])
    const waiting = await findJobs(queue, { state: 'waiting', reason: undefined })
    expect(await applyTo(waiting, 'drop', () => {})).toEqual([])
    expect(await queue.getJobCountByTypes('waiting', 'failed')).toBe(0)
  })

  it('exclude delayed jobs, which can be retried or dropped too', async () => {
    const queue = pipeline.queue('prices')
    const inAnHour = { delay: 3_600_000 }
    for (const jobId of ['sooner', 'never']) await queue.add('prices', slot, { ...inAnHour, jobId })
    const delayed = toRequest({ action: 'retry', dataset: 'prices', state: 'delayed', reason: undefined })
    const [sooner, never] = await findJobs(queue, delayed)
    if (sooner === undefined || never === undefined) throw new Error('two jobs are delayed')
    expect([sooner.listed.id, never.listed.id]).toEqual(['sooner', 'never'])
    expect(await applyTo([sooner], 'retry', () => {})).toEqual([])
    expect(await applyTo([never], 'drop', () => {})).toEqual([])
    expect(await queue.getJobCounts('delayed', 'waiting', 'prioritized')).toEqual({
      delayed: 0,
      waiting: 1,
      prioritized: 0,
    })
    const runner = createRunner(prices, pipeline.context)
    const [done] = await once(runner, 'completed')
    await runner.close()
    expect(done.id).toBe('sooner')
    expect(await applyTo([sooner], 'retry', () => {})).toMatchObject([{ id: 'sooner' }])
  })

  it('reject invalid requests', () => {
    const input = { action: 'retry', dataset: 'weather', state: 'active', reason: undefined }
    expect(() => toRequest(input)).toThrow(/weather.*retry is for jobs that are failed, delayed/s)
    expect(() => toRequest({ ...input, action: undefined, state: 'gone' })).toThrow(/list, retry, drop.*--state gone/s)
    expect(toRequest({ ...input, dataset: 'prices', state: undefined }).state).toBe('failed')
    const drop = { action: 'drop', dataset: undefined, state: undefined, reason: undefined }
    expect(() => toRequest({ ...drop, more: ['tvl'] })).toThrow(/tvl: .*--dataset/)
  })
})

describe('operator command without Redis', () => {
  it('exits with the name of the setting', async () => {
    const redis = createRedis('redis://:secret@127.0.0.1:1', silent)
    await expect(requireRedis(redis)).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringMatching(/^REDIS_URL: no Redis answers at 127\.0\.0\.1:1(?!.*secret)/),
    })
  })
})
