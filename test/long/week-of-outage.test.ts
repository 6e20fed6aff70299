import { describe, expect, it, onTestFinished } from 'vitest'
import { toBucketTime, toDueEnd } from '../../shared/buckets.ts'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { readExpected, toExpectedRuns } from '../../shared/ledger/expected.ts'
import { readMissing } from '../../shared/ledger/tables.ts'
import { toSlotJobId } from '../../shared/queue/queues.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { enqueueMissing } from '../../workers/schedule/scan-for-gaps.ts'
import { createPipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000
const OUTAGE_MS = 7 * DAY_MS
/** The clock moves this far with every backfill job: if live slots waited for the backfill, each would be late. */
const CHUNK_MS = 4 * 60_000

/** A pipeline for prices with its scheduler, a live worker, and a backfill worker that is started by hand. */
async function startPrices() {
  const pipeline = await createPipeline({ registry: loadRegistry() })
  const { context, config, registry, clock } = pipeline
  const { db, redis } = context
  const scheduler = { db, redis, prefix: config.redis.prefix, registry, log: silent, now: () => clock.now }
  const queues = pipeline.queues('prices')
  const runners = [createRunner(prices, context)]
  /** Rows that each live slot stored, by job id. */
  const storedRows = new Map<string, number>()
  const waiting = new Map<string, () => void>()
  runners[0]?.on('completed', (job, { rows }) => {
    storedRows.set(String(job.id), rows)
    waiting.get(String(job.id))?.()
  })
  onTestFinished(async () => {
    await Promise.all(runners.map((runner) => runner.close()))
    await pipeline.close()
  })
  return {
    clock,
    db,
    queues,
    /** The tokens that are quoted at the time of the clock. */
    quotedTokens: () => prices.entities(registry).filter((token) => isThereAt(token, clock.now)),
    rowsOf: (slot: number) => storedRows.get(toSlotJobId('prices', slot)),
    currentSlot: () => toBucketStart(clock.now, '5m'),
    schedule: async () => {
      await enqueueDue({ job: prices, queues }, scheduler)
      await enqueueMissing(prices, queues.history, scheduler)
    },
    untilStored: (slot: number) =>
      new Promise<void>((resolve) => {
        const id = toSlotJobId('prices', slot)
        if (storedRows.has(id)) resolve()
        else waiting.set(id, resolve)
      }),
    /** Runs the backfill queue until it is empty. Calls `afterEach` after every job. */
    backfill: (afterEach: () => Promise<void>) =>
      new Promise<void>((resolve, reject) => {
        const runner = createRunner(prices, context, 'history')
        runners.push(runner)
        const after = async () => {
          await afterEach()
          const counts = await queues.history.getJobCounts('waiting', 'prioritized', 'delayed', 'active')
          if (Object.values(counts).every((count) => count === 0)) resolve()
        }
        let turn = Promise.resolve()
        runner.on('completed', () => {
          turn = turn.then(after)
          turn.catch(reject)
        })
        runner.on('failed', (_job, error) => reject(error))
      }),
  }
}

describe('the price queues after a week without workers', () => {
  it('collects each live slot in time beside the backfill, which stores the whole week', async () => {
    const { clock, db, queues, ...prices5m } = await startPrices()
    await prices5m.schedule()
    await prices5m.untilStored(prices5m.currentSlot())

    clock.now += OUTAGE_MS
    const first = prices5m.currentSlot()
    await prices5m.schedule()
    const planned = await queues.history.getPrioritizedCount()
    expect(planned).toBeGreaterThan(5)

    let done = 0
    await prices5m.backfill(async () => {
      done += 1
      // The current slot has to be stored before the clock leaves it.
      await prices5m.untilStored(prices5m.currentSlot())
      // Slots that the moving clock adds to the backfill are collected while the clock stands.
      if (done <= planned) clock.now += CHUNK_MS
      await prices5m.schedule()
    })
    await prices5m.untilStored(prices5m.currentSlot())

    const last = prices5m.currentSlot()
    expect(last - first).toBeGreaterThan(4 * SLOT_MS)
    const slots = Array.from({ length: (last - first) / SLOT_MS + 1 }, (_, at) => first + at * SLOT_MS)
    const tokens = prices5m.quotedTokens()
    for (const slot of slots) expect([slot, prices5m.rowsOf(slot)]).toEqual([slot, tokens.length])

    const until = toDueEnd(prices.dataset, clock.now)
    const expected = toExpectedRuns(await readExpected(db, prices.dataset), { key: 0 }, prices.dataset, until)
    const begin = toBucketTime(expected[0]?.first ?? 0, '5m')
    expect(until - begin).toBeGreaterThan(OUTAGE_MS)
    const keys = tokens.map(({ key }) => key)
    expect([...(await readMissing(db, prices.dataset, keys, { expected: expected, seconds: DAY_MS }))]).toEqual([])
  })
})
