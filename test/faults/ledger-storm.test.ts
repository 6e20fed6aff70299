import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toBucket, toBuckets, toDueEnd, toTimes } from '../../shared/buckets.ts'
import { DAY_MS, END_OF_TIME, HOUR_MS } from '../../shared/intervals.ts'
import { readExpected, recordExpected, toExpectedRuns } from '../../shared/ledger/expected.ts'
import { explain } from '../../shared/ledger/explain.ts'
import { readCoverage, readDueUnits, readNotes } from '../../shared/ledger/tables.ts'
import { createRedis } from '../../shared/queue/redis.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import prices from '../../workers/jobs/prices.ts'
import { silent } from '../support/silent.ts'
import { toNoiseKey, unit } from '../upstream/noise.ts'
import { itIsConsistent } from './consistent.ts'
import { toClock, toClockTime, toSlotTime } from './slot-clock.ts'
import { loadSmallRegistry } from './small-registry.ts'
import { createStage, type Stage } from './stage.ts'
import { readSlotNumbers } from './stored-slots.ts'

/** `npm run test:long` sets more slots. */
const SLOTS = Number(process.env.STORM_SLOTS ?? 10)
const LAST = SLOTS - 1
/** In this share of the slots a process is killed, and in this share Redis loses all data, while jobs run. */
const KILL_SHARE = 0.6
const FLUSH_SHARE = 0.4
const LONGEST_WAIT_MS = 600
/** A slot ends when the queues are empty, or after this time; its unfinished jobs then stay open. */
const LONGEST_SLOT_MS = 4_000
const LONGEST_SETTLING_MS = 400_000

const seed = Number(process.env.FAULTS_SEED ?? 1)
const key = toNoiseKey(seed, 'storm')
const registry = loadSmallRegistry()
const counted = z.object({ entity: z.number(), bucket: z.number() })
const fields = { kills: 0, flushes: 0 }
let stage: Stage

/** Two overlapping ranges, from before the first slot. */
const begin = toSlotTime('5m', 0)
const BACKFILLS = [
  { from: begin - DAY_MS, to: begin - 6 * HOUR_MS },
  { from: begin - 12 * HOUR_MS, to: begin },
]

beforeAll(async () => {
  stage = await createStage()
  const startedAt = performance.now()
  await stage.company.startAll()
  await liveThroughSlots()
  await settle(LAST)
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.log(`${fields.kills} kills, ${fields.flushes} flushes in ${SLOTS} slots, ${seconds} s; FAULTS_SEED=${seed}`)
}, 900_000)
afterAll(() => stage?.close())

async function liveThroughSlots(): Promise<void> {
  const replacements: Promise<void>[] = []
  for (let slot = 0; slot < LAST; slot += 1) {
    await stage.moveTo(slot)
    if (slot === 2) {
      const expected = BACKFILLS.map((range) => ({ entity: ALL_ENTITIES, ...range, interval: '5m' as const }))
      await recordExpected(stage.database.db, prices.dataset, expected)
    }
    if (slot === 3 || unit(key, 6 * slot) < KILL_SHARE) replacements.push(strike(slot))
    if (slot === 4 || unit(key, 6 * slot + 3) < FLUSH_SHARE) await flush(slot)
    await untilQuiet()
  }
  await Promise.all(replacements)
  // The last slot has no kills: of two overlapping computations of a token's trades the one that read more trades is kept, and
  // only the next slot is certain to move its windows.
  await settle(LAST - 1)
}

async function strike(slot: number): Promise<void> {
  const { names, replace } = stage.company
  await wait(unit(key, 6 * slot + 1) * LONGEST_WAIT_MS)
  fields.kills += 1
  await replace(names[Math.floor(unit(key, 6 * slot + 2) * names.length)] ?? '')
}

/** Deletes all keys of Redis: queues, limits, everything. The schedulers scan for gaps again, as they do regularly. */
async function flush(slot: number): Promise<void> {
  await wait(unit(key, 6 * slot + 4) * LONGEST_WAIT_MS)
  const { url, prefix } = stage.config.redis
  const redis = createRedis(url, silent)
  const script = `for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end`
  await redis.eval(script, 0, `${prefix}:*`)
  redis.disconnect()
  fields.flushes += 1
  await stage.moveTo(slot)
}

async function untilQuiet(): Promise<void> {
  const end = performance.now() + LONGEST_SLOT_MS
  while ((await stage.countOpen()) > 0 && performance.now() < end) await wait(50)
}

/**
 * No process is killed any more; the schedulers scan until they find no gap that is due in the slot.
 * @throws Error with what is left if that takes too long.
 */
async function settle(slot: number): Promise<void> {
  await stage.company.startAll()
  const end = performance.now() + LONGEST_SETTLING_MS
  for (let quiet = 0; quiet < 2; ) {
    await stage.moveTo(slot)
    const left = { jobs: await stage.countOpen(), due: await countDue(), pending: await findPending(slot) }
    const isQuiet = left.jobs === 0 && left.due === 0 && left.pending.length === 0
    quiet = isQuiet ? quiet + 1 : 0
    if (!isQuiet && performance.now() > end) throw new Error(`slot ${slot} does not settle: ${JSON.stringify(left)}`)
    await wait(500)
  }
}

async function countDue(): Promise<number> {
  const computed = jobs.filter(({ computedFrom }) => computedFrom.length > 0)
  const due = await Promise.all(computed.map(({ dataset }) => readDueUnits(stage.database.db, dataset, 0)))
  return due.flat().length
}

/** The wanted buckets of a dataset that are due in a slot, by state. */
async function standOf(job: Job, slot = LAST) {
  const { db } = stage.database
  const { dataset } = job
  const expected = await readExpected(db, dataset)
  const until = toDueEnd(dataset, toClockTime(toClock(job), slot))
  const stretches = []
  for (const { key: entity, name, ...more } of job.entities(registry)) {
    const runs = toExpectedRuns(expected, { ...more, key: entity }, dataset, until)
    const [first, last] = [runs[0], runs.at(-1)]
    if (first === undefined || last === undefined) continue
    const within = { first: first.first, last: last.last }
    const existing = {
      expected: runs,
      reports: await readCoverage(db, dataset, [entity], within),
      notes: await readNotes(db, dataset, [entity], { from: 0, to: END_OF_TIME }),
    }
    for (const stretch of explain(dataset, existing, within, toBucket(until, dataset.cadence)))
      stretches.push({ name, ...stretch })
  }
  return stretches
}

/** The Index Token's reading needs current prices, which the kills delay, and has the time of its block. */
const collected = jobs.filter(({ name, computedFrom }) => computedFrom.length === 0 && name !== 'index-token')

async function findPending(slot: number) {
  const stretches = await Promise.all(collected.map((job) => standOf(job, slot)))
  return stretches.flat().filter(({ state }) => state === 'pending')
}

describe('coverage after kills, emptied queues and overlapping backfills', () => {
  it('has seen at least one kill and one emptied Redis', () => {
    expect(fields.kills).toBeGreaterThan(0)
    expect(fields.flushes).toBeGreaterThan(0)
  })

  it.each(collected.map(({ name }) => name))('has no pending or failed bucket of %s', async (name) => {
    const job = collected.find((one) => one.name === name)
    const open = (await standOf(job as Job)).filter(({ state }) => state === 'pending' || state === 'failed')
    expect(open).toEqual([])
  })

  it('has every expected price exactly once', async () => {
    const found = await readSlotNumbers(stage.database.db, prices, SLOTS)
    expect(found.length).toBe(prices.entities(registry).length)
    for (const slots of found)
      expect([...new Set(slots)].sort((a, b) => a - b)).toEqual(Array.from({ length: SLOTS }, (_, at) => at - 1))
    const stretches = (await standOf(prices)).filter(({ state }) => state !== 'covered' && state !== 'nothing')
    expect(stretches).toEqual([])
  })

  it.each(collected.map(({ name }) => name))('agrees with the stored rows of %s', async (name) => {
    const { dataset, resumes, entities } = collected.find((one) => one.name === name) as Job
    // Cursor-based datasets have rows only for events, and of links only the newest are stored.
    if (resumes || name === 'daos') return
    const { db } = stage.database
    const within = toBuckets({ from: 0, to: END_OF_TIME }, dataset.cadence)
    if (within === undefined) throw new Error('no buckets')
    const keys = entities(registry).map((entity) => entity.key)
    const reports = await readCoverage(db, dataset, keys, within)
    const { table, entity, time } = dataset.series
    const step = toTimes({ first: 0, last: 0 }, dataset.cadence).to
    const rows = await db.rows({
      name: 'recount',
      sql: `SELECT DISTINCT ${entity} AS entity, intDiv(toUnixTimestamp64Milli(toDateTime64(${time}, 3)), ${step}) AS bucket FROM ${table} FINAL WHERE ${entity} IN {keys: Array(UInt64)}`,
      params: { keys },
      schema: counted,
    })
    const isReported = (one: { entity: number; bucket: number }) =>
      reports.some((report) => {
        return (
          report.entity === one.entity &&
          report.state === 'stored' &&
          report.first <= one.bucket &&
          one.bucket <= report.last
        )
      })
    expect(rows.filter((row) => !isReported(row))).toEqual([])
    const fine = reports.filter(({ state, seconds }) => state === 'stored' && seconds * 1000 === step)
    const stored = new Set(rows.map((row) => `${row.entity} ${row.bucket}`))
    const untrue = fine.flatMap(({ entity: of, first, last }) =>
      Array.from({ length: last - first + 1 }, (_, at) => `${of} ${first + at}`).filter((text) => !stored.has(text)),
    )
    expect(untrue).toEqual([])
  })

  itIsConsistent(() => stage, { slots: SLOTS, since: () => begin - DAY_MS })
})
