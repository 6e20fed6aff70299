import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toBucketStart } from '../../shared/intervals.ts'
import type { Job } from '../../workers/job/define-job.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { toNoiseKey, unit } from '../upstream/noise.ts'
import { itIsConsistent } from './consistent.ts'
import { toClock, toSlotId, toSlotTime } from './slot-clock.ts'
import { createStage, type Stage } from './stage.ts'
import { countUnlike, readSlotNumbers, readSlots } from './stored-slots.ts'

/** A slot lasts as long as its work, kills included. `npm run test:long` sets more slots. */
const SLOTS = Number(process.env.FAULTS_SLOTS ?? 30)
/** In this slot all processes are killed while they work, and none runs until three slots later. */
const OUTAGE = Math.floor(SLOTS / 2)
const OUTAGE_SLOTS = 3
/** In this share of the other slots a process is killed, at most this many milliseconds after the start of the slot. */
const KILL_SHARE = 0.35
const LONGEST_WAIT_MS = 400
const LAST = SLOTS - 1

const seed = Number(process.env.FAULTS_SEED ?? 1)
const key = toNoiseKey(seed, 'kills')
const victims: string[] = []
let stage: Stage

beforeAll(async () => {
  stage = await createStage()
  const startedAt = performance.now()
  await stage.company.startAll()
  await liveThroughSlots()
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.log(
    `${victims.length} kills in ${SLOTS} slots, ${seconds} s; FAULTS_SEED=${seed}; another number kills others, FAULTS_SLOTS more of them`,
  )
}, 900_000)
afterAll(() => stage?.close())

const untilSlotKilled = (slot: number) => wait(unit(key, 3 * slot + 1) * LONGEST_WAIT_MS)

/** Kills the process that the seed selects, some time into the slot, and starts a replacement. */
async function strike(slot: number): Promise<void> {
  const { names, replace } = stage.company
  await untilSlotKilled(slot)
  const victim = names[Math.floor(unit(key, 3 * slot + 2) * names.length)] ?? ''
  victims.push(victim)
  await replace(victim)
}

/** Kills all processes in a slot, and starts them again later. */
async function strikeAll(slot: number): Promise<void> {
  await untilSlotKilled(slot)
  victims.push(...stage.company.names)
  await stage.company.stop()
  await stage.moveTo(slot + OUTAGE_SLOTS)
  await stage.company.startAll()
}

async function liveThroughSlots(): Promise<void> {
  const replacements: Promise<void>[] = []
  for (let slot = 0; slot < SLOTS; slot += 1) {
    await stage.moveTo(slot)
    if (slot === OUTAGE) {
      await Promise.all(replacements)
      await strikeAll(slot)
      slot += OUTAGE_SLOTS
    } else if (unit(key, 3 * slot) < KILL_SHARE) replacements.push(strike(slot))
    await stage.events.untilComplete(jobs.map((job) => toSlotId(job, slot)))
  }
  await Promise.all(replacements)
  // Empty queues emit no event: computations from stored rows are delayed on purpose.
  while ((await stage.countOpen()) > 0) await wait(250)
}

function find(name: string): Job {
  const job = jobs.find((one) => one.name === name)
  if (job === undefined) throw new Error(`there is no job ${name}`)
  return job
}

const readNumbers = (name: string) => readSlotNumbers(stage.database.db, find(name), SLOTS)

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)

/** Slots that datasets without history lose in an outage: the slot that ran may or may not be stored, later ones are not. */
const isLost = (slot: number) => slot > OUTAGE && slot < OUTAGE + OUTAGE_SLOTS
const isUnderWay = (slot: number) => slot === OUTAGE

describe('pipeline with workers and schedulers that are killed and replaced at random', () => {
  it('produces no dead letter', async () => {
    expect(stage.events.deadLetters).toEqual([])
    expect(victims.length).toBeGreaterThan(stage.company.names.length)
  })

  it('stores one observation of every token in every slot', async () => {
    const found = await readNumbers('prices')
    expect(found).toHaveLength(3)
    // An observation at the start of a slot is a minute old: it belongs to the slot before. History, which repairs an outage
    // hour by hour, adds observations with their own times.
    const isMended = (slot: number) => slot >= OUTAGE - 12 && slot <= OUTAGE + OUTAGE_SLOTS
    for (const slots of found) {
      expect([...new Set(slots)]).toEqual(range(-1, LAST))
      expect(slots.filter((slot) => !isMended(slot))).toEqual(range(-1, LAST).filter((slot) => !isMended(slot)))
    }
  })

  it.each(['index', 'treasury', 'treasury-value'])('stores every slot of %s once', async (name) => {
    const found = await readNumbers(name)
    expect(found.length).toBeGreaterThan(0)
    const expected = name === 'index' ? range(-1, LAST) : range(-1, SLOTS)
    for (const slots of found) expect(slots).toEqual(expected)
  })

  it.each(['tvl', 'holders', 'ratings', 'twitter', 'discord', 'telegram', 'twitter-sentiment', 'index-token'])(
    'stores every slot of %s once, except the slots without workers',
    async (name) => {
      const found = await readNumbers(name)
      expect(found.length).toBeGreaterThan(0)
      // A reading of the Index Token has the time of its block, shortly before the slot.
      const shift = name === 'index-token' ? 1 : 0
      for (const numbers of found) {
        const slots = numbers.map((slot) => slot + shift).filter((slot) => slot >= 0 && !isUnderWay(slot))
        // TVL has a history of days, which may restore the first hour of a day.
        const cached = name === 'tvl' ? slots.filter((slot) => !isLost(slot)) : slots
        expect(cached).toEqual(range(0, SLOTS).filter((slot) => !isLost(slot) && !isUnderWay(slot)))
      }
    },
  )

  it('stores market caps of both days', async () => {
    const clock = toClock(find('market-cap'))
    const days = { from: toBucketStart(toSlotTime(clock, 0), '1d'), to: toSlotTime(clock, SLOTS) }
    const [found = []] = (await readSlots(stage.database.db, find('market-cap').dataset, days)).values()
    expect(found).toEqual([days.from, days.from + 86_400_000])
  })

  it.each(['tvl', 'holders', 'treasury', 'twitter', 'discord', 'telegram', 'dex-trades'])(
    'stores the run and its answers for every stored row of %s',
    async (name) => {
      const { dataset } = find(name)
      const sql = `SELECT toUInt32(countIf(s.collected_at NOT IN (
  SELECT collected_at FROM raw_runs WHERE dataset = {dataset: String}
    AND arrayAll((status, hash) -> status = 0 OR hash IN (SELECT hash FROM raw_answers), answers.status, answers.hash)
))) AS without, toUInt32(count()) AS rows FROM ${dataset.series.table} AS s FINAL`
      const schema = z.object({ without: z.number(), rows: z.number() })
      const [found] = await stage.database.db.rows({ name: 'answers', sql, params: { dataset: dataset.name }, schema })
      expect(found?.without).toBe(0)
      expect(found?.rows).toBeGreaterThan(0)
    },
  )

  itIsConsistent(() => stage, { slots: SLOTS, since: (clock) => toSlotTime(clock, 0) })
})

describe('stored rows after the kills', () => {
  const names = ['tvl', 'holders', 'treasury', 'ratings', 'twitter', 'discord', 'telegram', 'twitter-sentiment']
  // Trades are stored by block and votes by creation, not by slot: one read without kills must give the same rows.
  const full = {
    'dex-trades': ['dex_trades'],
    governance: [
      ...['dao_votes', 'dao_cast_votes', 'dao_proposals', 'dao_proposal_details', 'dao_proposal_texts'],
      'governance_readings',
    ],
    daos: ['dao_links'],
  }
  let alone: string

  beforeAll(async () => {
    alone = await stage.openSecond()
    for (const name of [...names, ...Object.keys(full)]) {
      const job = find(name)
      const slot = toSlotTime(toClock(job), LAST)
      await stage.collectAlone(job, { kind: 'slot', slot }, { database: alone, firstRunHours: SLOTS })
    }
  })
  const compare = async (table: string, where?: string) => {
    const { unlike, of } = await countUnlike(stage.database.db, [stage.config.clickhouse.database, alone], table, where)
    expect(of).toBeGreaterThan(0)
    expect(unlike).toBe(0)
  }

  it.each(names)('match an undisturbed run in the last slot of %s', async (name) => {
    const { series } = find(name).dataset
    const at = toSlotTime(toClock(find(name)), LAST)
    await compare(series.table, `${series.time} = fromUnixTimestamp64Milli(${at})`)
  })

  it.each(Object.values(full).flat())('match an undisturbed run in %s', (table) => compare(table))
})
