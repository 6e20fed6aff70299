import type { Worker } from 'bullmq'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toBucketTime } from '../../shared/coverage/grid.ts'
import { readMissing } from '../../shared/coverage/ledger.ts'
import { readWanted, toDueEnd, toWantedRuns } from '../../shared/coverage/wanted.ts'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { type DatasetQueues, toSlotJobId } from '../../shared/queue/queues.ts'
import { isThereAt } from '../../shared/registry/ends.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import prices from '../../workers/jobs/prices.ts'
import { createRunner } from '../../workers/run/runner.ts'
import { enqueueDue, type SchedulerContext } from '../../workers/schedule/due-slots.ts'
import { enqueueMissing } from '../../workers/schedule/look.ts'
import { createPipeline, type Pipeline } from '../support/pipeline.ts'
import { silent } from '../support/silent.ts'

const SLOT_MS = INTERVAL_SECONDS['5m'] * 1000
const OUTAGE_MS = 7 * DAY_MS
/** Every job of the catch-up takes this long by the clock: with one place for everything each slot would come too late. */
const CHUNK_MS = 4 * 60_000

let pipeline: Pipeline
let queues: DatasetQueues
let scheduler: SchedulerContext
const runners: Worker[] = []
/** The live slots after the outage, each with what it stored. */
const live = new Map<string, number>()
/** The first slot after the outage; how many jobs the week is, and how many are done with what came on top. */
let planned = 0
let first = 0
let chunks = 0

/** What a scheduler does again and again. */
async function tick(): Promise<void> {
  await enqueueDue({ job: prices, queues }, scheduler)
  await enqueueMissing(prices, queues.history, scheduler)
}

/** Those that are quoted at that time. */
const collected = () => prices.entities(pipeline.registry).filter((token) => isThereAt(token, pipeline.clock.now))
const current = () => toBucketStart(pipeline.clock.now, '5m')
const waiting = new Map<string, () => void>()
const untilDone = (slot: number) =>
  new Promise<void>((resolve) => {
    const id = toSlotJobId('prices', slot)
    if (live.has(id)) resolve()
    else waiting.set(id, resolve)
  })

beforeAll(async () => {
  pipeline = await createPipeline({ registry: loadRegistry() })
  const { context, config, registry, clock } = pipeline
  const { db, redis } = context
  scheduler = { db, redis, prefix: config.redis.prefix, registry, log: silent, now: () => clock.now }
  queues = pipeline.queues('prices')
  const now = createRunner(prices, context)
  runners.push(now)
  now.on('completed', (job, { rows }) => {
    live.set(String(job.id), rows)
    waiting.get(String(job.id))?.()
  })
  await tick()
  await untilDone(current())
  live.clear()
  clock.now += OUTAGE_MS
  first = current()
  await tick()
  planned = await queues.history.getPrioritizedCount()
  const history = createRunner(prices, context, 'history')
  runners.push(history)
  await new Promise<void>((resolve, reject) => {
    const after = async () => {
      chunks += 1
      // Time passes while the catch-up goes on: the slot of now has to be done when the clock leaves it.
      await untilDone(current())
      // What the passing time itself leaves out is collected while the clock stands.
      if (chunks <= planned) clock.now += CHUNK_MS
      await tick()
      const counts = await queues.history.getJobCounts('waiting', 'prioritized', 'delayed', 'active')
      if (Object.values(counts).every((count) => count === 0)) resolve()
    }
    let turn = Promise.resolve()
    history.on('completed', () => {
      turn = turn.then(after)
      turn.catch(reject)
    })
    history.on('failed', (_job, error) => reject(error))
  })
  await untilDone(current())
})
afterAll(async () => {
  await Promise.all(runners.map((runner) => runner.close()))
  await pipeline?.close()
})

describe('a week without anybody', () => {
  it('makes no slot late afterwards: each is collected in its time, beside the catch-up', () => {
    expect(planned).toBeGreaterThan(5)
    const last = current()
    expect(last - first).toBeGreaterThan(4 * SLOT_MS)
    const slots = Array.from({ length: (last - first) / SLOT_MS + 1 }, (_, at) => first + at * SLOT_MS)
    const tokens = collected().length
    for (const slot of slots) expect([slot, live.get(toSlotJobId('prices', slot))]).toEqual([slot, tokens])
  })

  it('has all of its history in the end, at the finest step that each token has', async () => {
    const { db } = pipeline.context
    const entities = collected().map(({ key }) => key)
    const until = toDueEnd(prices.dataset, pipeline.clock.now)
    const wanted = toWantedRuns(await readWanted(db, prices.dataset), { key: 0 }, prices.dataset, until)
    const [run] = wanted
    const begin = toBucketTime(run?.first ?? 0, '5m')
    expect(until - begin).toBeGreaterThan(OUTAGE_MS)
    expect([...(await readMissing(db, prices.dataset, entities, { wanted, seconds: DAY_MS }))]).toEqual([])
  })
})
