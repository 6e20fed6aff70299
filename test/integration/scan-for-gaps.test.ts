import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, END_OF_TIME, HOUR_MS, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import { readExpected, recordExpected } from '../../shared/ledger/expected.ts'
import type { Report } from '../../shared/ledger/ledger.ts'
import { addCoverage, readNotes, writeNotes } from '../../shared/ledger/tables.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import { findLedgerGaps } from '../../workers/backfill/ledger-gaps.ts'
import type { Collector, Job } from '../../workers/job/define-job.ts'
import { recordProviders } from '../../workers/job/state.ts'
import governance from '../../workers/jobs/governance.ts'
import holders from '../../workers/jobs/holders.ts'
import prices from '../../workers/jobs/prices.ts'
import telegram from '../../workers/jobs/telegram.ts'
import treasury from '../../workers/jobs/treasury.ts'
import { runJob } from '../../workers/run/runner.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { enqueueMissing } from '../../workers/schedule/scan-for-gaps.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'

const NOW = Date.parse('2024-05-06T07:05:09Z')
const YESTERDAY = Date.parse('2024-05-05T00:00:00Z')

let pipeline: Pipeline
beforeAll(async () => {
  pipeline = await createPipeline({ now: NOW, settings: { MORALIS_API_KEY: '' } })
})
afterAll(() => pipeline?.close())
afterEach(async () => {
  pipeline.clock.now = NOW
  for (const table of ['coverage', 'coverage_notes', 'coverage_wanted'])
    await pipeline.context.db.command({ name: 'empty', sql: `TRUNCATE TABLE ${table}` })
})

/** Missed slots that the scheduler counted. */
let missed = 0
const metrics = {
  slots: (_: string, outcome: string, slots: number) => {
    if (outcome === 'missed') missed += slots
  },
  failed: () => {},
}
const scheduler = () => {
  const { db, redis, registry, log, now, config } = pipeline.context
  return { db, redis, registry, log, now, metrics, prefix: config.redis.prefix }
}

const scan = (job: Job) => enqueueMissing(job, pipeline.queue(job.name, 'history'), scheduler())

/** Runs a scheduler's gap scan every minute, with a worker; returns how often the provider was asked. */
async function countRequests(job: Job, minutes: number, answer: () => object[]): Promise<number> {
  let requestCount = 0
  const collect = async () => {
    requestCount += 1
    return answer()
  }
  const provider: Collector = { provider: job.providers[0]?.name ?? '', covers: () => true, collect }
  const queue = pipeline.queue(job.name, 'history')
  const start = pipeline.clock.now
  for (let minute = 0; minute < minutes; minute += 1) {
    pipeline.clock.now = start + minute * 60_000
    await scan(job)
    for (const queued of await queue.getJobs(['waiting', 'prioritized'])) {
      await runJob(job, [provider], pipeline.context, queued.data)
      await queued.remove()
    }
  }
  return requestCount
}

/** The coverage of all entities, without the last `fewer` buckets of the first entity. */
const stored = (job: Job, from: number, to: number, fewer: number): Report[] => {
  const seconds = INTERVAL_SECONDS[job.cadence]
  const [first, last] = [from / seconds / 1000, to / seconds / 1000 - 1]
  const provider = job.providers[0]?.name ?? ''
  return job.entities(pipeline.registry).map(({ key }, at) => ({
    entity: key,
    state: 'stored',
    provider,
    seconds,
    first,
    last: at === 0 ? last - fewer : last,
  }))
}

describe('gap scan if a provider does not have the newest data yet', () => {
  it('requests the newest buckets three times, not every minute', async () => {
    const { db } = pipeline.context
    const range = { from: Date.parse('2024-05-06T06:00:00Z'), to: Date.parse('2024-05-06T06:55:00Z') }
    await recordExpected(db, prices.dataset, [{ entity: ALL_ENTITIES, ...range, interval: '5m' }])
    await addCoverage(db, prices.dataset, stored(prices, range.from, range.to, 5))
    pipeline.clock.now = Date.parse('2024-05-06T07:00:30Z')
    expect(await countRequests(prices, 5, () => [])).toBe(1)
    const [first] = prices.entities(pipeline.registry)
    const notes = await readNotes(db, prices.dataset, [first?.key ?? 0], { from: 0, to: END_OF_TIME })
    expect(notes.map(({ state, reason }) => [state, reason])).toEqual([
      ['pending', `${prices.providers[0]?.name} has nothing there yet`],
    ])
    expect(await countRequests(prices, 75, () => [])).toBe(3)
    const what = { range, interval: undefined, now: pipeline.clock.now }
    expect(await findLedgerGaps(db, prices, pipeline.registry, what)).toEqual([])
  })

  it('requests the day that has just ended once', async () => {
    const { db } = pipeline.context
    await recordExpected(db, treasury.dataset, [{ entity: ALL_ENTITIES, from: YESTERDAY, interval: '1d' }])
    await addCoverage(db, treasury.dataset, stored(treasury, YESTERDAY, YESTERDAY + DAY_MS, 0).slice(1))
    expect(await countRequests(treasury, 5, () => [])).toBe(1)
  })
})

describe('gap scan of workers with different settings', () => {
  it('retries unserved buckets once per change of settings', async () => {
    const { db, config } = pipeline.context
    await recordExpected(db, treasury.dataset, [{ entity: ALL_ENTITIES, from: YESTERDAY, interval: '1d' }])
    await addCoverage(db, treasury.dataset, stored(treasury, YESTERDAY, YESTERDAY + DAY_MS, 0).slice(1))
    const unconfigured = () => {
      throw new DataError('provider_unconfigured', 'goldrush: GOLDRUSH_API_KEY is not set')
    }
    const goldrush = { ...config.providers.goldrush, apiKey: 'added' }
    const second = { ...config, providers: { ...config.providers, goldrush } }
    await recordProviders(db, treasury.name, config)
    expect(await countRequests(treasury, 5, unconfigured)).toBe(1)
    await recordProviders(db, treasury.name, second)
    expect(await countRequests(treasury, 5, unconfigured)).toBe(1)
  })
})

describe('gap scan of a dataset without history', () => {
  it('counts no missed slot between the turns of a token', async () => {
    const { db } = pipeline.context
    const start = YESTERDAY
    await recordExpected(db, holders.dataset, [{ entity: ALL_ENTITIES, from: start, interval: '1h' }])
    const keys = holders.entities(pipeline.registry).map(({ key }) => key)
    for (let turn = 0; turn < 14; turn += 1) {
      const slot = start + turn * HOUR_MS
      pipeline.clock.now = slot + 10_000
      await runJob(holders, holders.connect(pipeline.context), pipeline.context, { kind: 'slot', slot })
    }
    pipeline.clock.now = start + 14 * HOUR_MS + 90_000
    await scan(holders)
    const notes = await readNotes(db, holders.dataset, keys, { from: 0, to: END_OF_TIME })
    // Other tokens have their first turn later.
    expect(notes.filter(({ from }) => from >= start + 12 * HOUR_MS)).toEqual([])
  })

  it('records missed buckets with their reason', async () => {
    const { db } = pipeline.context
    const day = Date.parse('2024-05-03T00:00:00Z')
    await recordExpected(db, telegram.dataset, [{ entity: ALL_ENTITIES, from: day, interval: '1d' }])
    const [first, ...rest] = stored(telegram, day, day + 4 * DAY_MS, 0)
    if (first === undefined) throw new Error('nobody is on Telegram')
    await addCoverage(db, telegram.dataset, [{ ...first, first: first.first + 1 }, ...rest])
    const times = { from: day, to: END_OF_TIME, since: day, nextTry: day }
    const failed = { queueClass: 'live', state: 'failed', provider: 'telegram', reason: 'HTTP 500', tries: 1 } as const
    await writeNotes(db, telegram.dataset, [{ entity: first.entity, ...failed, ...times }])
    const entities = telegram.entities(pipeline.registry).filter(({ key }) => key === first.entity)
    const row = {
      dao: first.entity,
      observed_at: new Date(day + DAY_MS).toISOString(),
      total_members: 10,
      active_members: 1,
    }
    const repeat: Collector = { provider: 'telegram', covers: () => true, collect: async () => [row] }
    await runJob(telegram, [repeat], pipeline.context, {
      kind: 'slot',
      slot: day + 2 * DAY_MS,
      entities: entities.map(({ id }) => id),
      again: true,
    })
    await scan(telegram)
    const gaps = await findLedgerGaps(db, telegram, pipeline.registry, {
      range: { from: 0, to: NOW },
      interval: undefined,
      now: NOW,
    })
    expect(gaps.map(({ state, reason }) => [state, reason])).toEqual([
      ['missed', expect.stringMatching(/^HTTP 500; it has no history/)],
    ])
  })

  it('covers rows that were stored after their slot was recorded as missed', async () => {
    const { db } = pipeline.context
    missed = 0
    const day = Date.parse('2024-04-28T00:00:00Z')
    await recordExpected(db, telegram.dataset, [{ entity: ALL_ENTITIES, from: day, interval: '1d' }])
    const [first, ...rest] = stored(telegram, day, day + 8 * DAY_MS, 0)
    if (first === undefined) throw new Error('nobody is on Telegram')
    await addCoverage(db, telegram.dataset, [{ ...first, first: first.first + 1 }, ...rest])
    await scan(telegram)
    const toGaps = () =>
      findLedgerGaps(db, telegram, pipeline.registry, {
        range: { from: 0, to: NOW },
        interval: undefined,
        now: NOW,
      })
    expect((await toGaps()).map(({ entity, state }) => [entity.key, state])).toEqual([[first.entity, 'missed']])
    expect(missed).toBe(1)
    // A worker that stores rows and dies before it records their coverage.
    const row = { dao: first.entity, observed_at: new Date(day).toISOString(), total_members: 10, active_members: 1 }
    const every = { collected_at: new Date(day).toISOString() }
    await db.insert({ table: telegram.dataset.table, rows: [row], every })
    await scan(telegram)
    expect(await toGaps()).toEqual([])
  })
})

describe('gap scan of a dataset with cursors', () => {
  const day = Date.parse('2024-05-03T00:00:00Z')
  const spaces = () => governance.entities(pipeline.registry)
  const slotOf = (at: number, collect: Collector['collect']) => {
    pipeline.clock.now = at + 10_000
    const snapshot: Collector = { provider: 'snapshot', covers: () => true, collect }
    return runJob(governance, [snapshot], pipeline.context, { kind: 'slot', slot: at }).catch(() => undefined)
  }
  const statesOf = async () => {
    const what = { range: { from: 0, to: NOW }, interval: undefined, now: NOW }
    const gaps = await findLedgerGaps(pipeline.context.db, governance, pipeline.registry, what)
    return new Map(gaps.map(({ entity, state, missing }) => [entity.name, [state, missing]]))
  }

  it('covers the wanted range of entities that a slot has read to the end, and no others', async () => {
    const { db } = pipeline.context
    await recordExpected(db, governance.dataset, [{ entity: ALL_ENTITIES, from: day, interval: '1d' }])
    const [read, unfinished, gone, ...rest] = spaces()
    if (read === undefined || unfinished === undefined || gone === undefined) throw new Error('too few DAOs vote')
    await slotOf(NOW - (NOW % HOUR_MS), async ({ noteRead, putOff }) => {
      noteRead([read, ...rest], { to: NOW })
      putOff([unfinished])
      return []
    })
    await scan(governance)
    expect(await statesOf()).toEqual(new Map([[unfinished.name, ['pending', 3]]]))
    const notes = await readNotes(db, governance.dataset, [gone.key], { from: 0, to: END_OF_TIME })
    expect(notes).toMatchObject([{ state: 'unserved', from: day, to: END_OF_TIME }])
  })

  it('counts no missed slot after days without workers', async () => {
    const { db } = pipeline.context
    await recordExpected(db, governance.dataset, [{ entity: ALL_ENTITIES, from: day, interval: '1d' }])
    await slotOf(day, async ({ entities, noteRead }) => {
      noteRead(entities, { to: day })
      return []
    })
    pipeline.clock.now = NOW
    await scan(governance)
    const keys = spaces().map(({ key }) => key)
    expect(await readNotes(db, governance.dataset, keys, { from: 0, to: END_OF_TIME })).toEqual([])
    await slotOf(NOW - (NOW % HOUR_MS), async ({ entities, noteRead }) => {
      noteRead(entities, { to: NOW })
      return []
    })
    expect(await statesOf()).toEqual(new Map())
  })

  it('counts no missed slot of entities that failed for days', async () => {
    const { db } = pipeline.context
    await recordExpected(db, governance.dataset, [{ entity: ALL_ENTITIES, from: day, interval: '1d' }])
    for (const at of [day, day + DAY_MS])
      await slotOf(at, () => Promise.reject(new DataError('provider_unavailable', 'snapshot: 503')))
    expect([...(await statesOf()).values()]).toEqual(spaces().map(() => ['failed', 3]))
    await slotOf(NOW - (NOW % HOUR_MS), async ({ entities, noteRead }) => {
      noteRead(entities, { to: NOW })
      return []
    })
    expect(await statesOf()).toEqual(new Map())
  })
})

it('the first slot after an upgrade wants the range since the upgrade', async () => {
  const { db } = pipeline.context
  const upgraded = Date.parse('2024-05-04T09:00:00Z')
  const before = { from: Date.parse('2024-01-01T00:00:00Z'), to: upgraded }
  await recordExpected(db, treasury.dataset, [{ entity: ALL_ENTITIES, ...before, interval: '7d' }])
  await enqueueDue({ job: treasury, queues: pipeline.queues('treasury') }, scheduler())
  const expected = await readExpected(db, treasury.dataset)
  expect(expected.map(({ from, to }) => ({ from, to }))).toEqual(
    expect.arrayContaining([before, { from: expect.any(Number), to: END_OF_TIME }]),
  )
  expect(expected.find(({ to }) => to === END_OF_TIME)?.from).toBeLessThanOrEqual(upgraded)
})

describe('history chunk', () => {
  const collected: string[] = []
  const provider: Collector = {
    provider: 'coingecko',
    covers: () => true,
    collect: async ({ entities }) => {
      collected.push(...entities.map(({ id }) => id))
      return []
    },
  }
  const range = { kind: 'range', from: YESTERDAY, to: YESTERDAY + HOUR_MS, interval: '5m' } as const

  it('collects its other tokens if one has left the registry', async () => {
    const [token] = prices.entities(pipeline.registry)
    await runJob(prices, [provider], pipeline.context, { ...range, entities: [token?.id ?? '', 'gone'] })
    expect(collected).toEqual([token?.id])
  })

  it('names its ids if none is live', async () => {
    const payload = { ...range, entities: ['gone', 'left'] }
    await expect(runJob(prices, [provider], pipeline.context, payload)).rejects.toThrow(
      'prices: no live entity has any of the ids gone, left',
    )
  })

  it('is retried at its earliest retry time', async () => {
    const tokens = prices.entities(pipeline.registry).slice(0, 3)
    const failures = [
      new DataError('provider_exhausted', 'coinmarketcap: used up', { retryAfterMs: 25 * DAY_MS }),
      new DataError('provider_unavailable', 'coinmarketcap: 503', { retryAfterMs: 2_000 }),
      new DataError('provider_exhausted', 'coinmarketcap: used up today', { retryAfterMs: DAY_MS }),
    ]
    const failing: Collector = {
      provider: 'coinmarketcap',
      covers: () => true,
      collect: async ({ entities, refuse }) => {
        for (const [at, failure] of failures.entries()) {
          const token = entities.find(({ key }) => key === tokens[at]?.key)
          if (token !== undefined) refuse(token, failure)
        }
        return []
      },
    }
    const payload = { ...range, entities: tokens.map(({ id }) => id) }
    await expect(runJob(prices, [failing], pipeline.context, payload)).rejects.toMatchObject({
      code: 'provider_unavailable',
      retryAfterMs: 2_000,
      entities: expect.arrayContaining(payload.entities),
    })
    const notes = await readNotes(
      pipeline.context.db,
      prices.dataset,
      tokens.map(({ key }) => key),
      range,
    )
    const waits = notes.map(({ nextTry }) => nextTry - NOW)
    expect(waits.sort((a, b) => a - b)).toEqual([5 * 60_000, DAY_MS, 25 * DAY_MS])
  })
})
