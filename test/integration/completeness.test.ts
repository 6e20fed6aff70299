import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { telegramMembers } from '../../shared/datasets/telegram.ts'
import { tokenPrices } from '../../shared/datasets/token-prices.ts'
import { DataError } from '../../shared/errors.ts'
import { DAY_MS, END_OF_TIME, HOUR_MS } from '../../shared/intervals.ts'
import { readCompleteness } from '../../shared/ledger/completeness.ts'
import { recordExpected } from '../../shared/ledger/expected.ts'
import { countMissing } from '../../shared/ledger/explain.ts'
import type { Completeness, Note, Report } from '../../shared/ledger/ledger.ts'
import { addCoverage, writeNotes } from '../../shared/ledger/tables.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createMetrics } from '../../shared/telemetry/metrics.ts'
import { createCompletenessWatch } from '../../workers/monitoring/completeness-watch.ts'
import { rememberFailing } from '../../workers/run/runner.ts'
import { createTestConfig, createTestDatabase, type TestDatabase } from '../support/database.ts'

const registry = loadRegistry()
/** A time in the middle of a day: the buckets of telegram are due up to its midnight. */
const NOW = Date.parse('2026-05-20T11:55:00Z')
const TODAY = Date.parse('2026-05-20')
const DAYS = 10
const MINUTE = 60_000
const daos = telegramMembers.entities(registry)
const [first, second, third] = daos as [(typeof daos)[0], (typeof daos)[0], (typeof daos)[0]]

let database: TestDatabase
beforeEach(async () => {
  database = await createTestDatabase(createTestConfig())
})
afterEach(() => database.drop())

const toDay = (days: number) => TODAY / DAY_MS + days

function toReport(entity: number, days: readonly [number, number], more: Partial<Report> = {}): Report {
  const [from, to] = days
  return {
    entity,
    state: 'stored',
    provider: 'telegram',
    seconds: 86_400,
    first: toDay(from),
    last: toDay(to),
    ...more,
  }
}

function toNote(entity: number, more: Partial<Note>): Note {
  const times = { from: TODAY - DAY_MS, to: END_OF_TIME, since: TODAY, nextTry: TODAY }
  const rest = {
    queueClass: 'live',
    state: 'failed',
    provider: 'telegram',
    reason: 'no answer',
    tries: 1,
  } as const
  return { entity, ...times, ...rest, ...more }
}

/** Ten days are wanted of every DAO; all have them, up to today. */
async function storeAll(except: readonly number[] = []): Promise<void> {
  const { db } = database
  await recordExpected(db, telegramMembers, [{ entity: ALL_ENTITIES, from: TODAY - DAYS * DAY_MS, interval: '1d' }])
  const keys = daos.map(({ key }) => key).filter((key) => !except.includes(key))
  await addCoverage(
    db,
    telegramMembers,
    keys.map((key) => toReport(key, [-DAYS, 0])),
  )
}

async function read(now = NOW): Promise<Completeness> {
  const found = (await readCompleteness(database.db, registry, [tokenPrices, telegramMembers], now)).get('telegram')
  if (found === undefined) throw new Error('telegram is not told of')
  return found
}

describe('readCompleteness', () => {
  it('returns no expected buckets for an empty database, and 1 if every due bucket is stored', async () => {
    expect(await read()).toEqual({ expected: 0, stored: 0, complete: 0, lacking: [], overdue: [], isUnserved: false })
    await storeAll()
    const expected = daos.length * DAYS
    expect(await read()).toEqual({
      expected,
      stored: expected,
      complete: 1,
      lacking: [],
      overdue: [],
      isUnserved: false,
    })
  })

  it('counts entities without any coverage, but not buckets known to be empty', async () => {
    await storeAll([first.key, second.key])
    await addCoverage(database.db, telegramMembers, [
      toReport(first.key, [-DAYS, -5], { state: 'nothing' }),
      toReport(first.key, [-4, 0]),
      // Two providers returned the same days, one with longer steps: each bucket counts once.
      toReport(first.key, [-4, -2], { provider: 'other', seconds: 7 * 86_400 }),
      // No range includes these buckets.
      toReport(first.key, [-40, -30]),
    ])
    const { expected, stored, complete, lacking } = await read()
    expect([expected, stored]).toEqual([daos.length * DAYS - 6, (daos.length - 1) * DAYS - 6])
    expect(complete).toBeCloseTo(stored / expected, 12)
    expect(lacking.map(({ entities }) => entities.map(({ id }) => id))).toEqual([[second.id]])
  })

  it('counts the range that is wanted of a single entity', async () => {
    await storeAll()
    const range = { from: TODAY - 20 * DAY_MS, to: TODAY - 15 * DAY_MS }
    await recordExpected(database.db, telegramMembers, [{ entity: second.key, ...range, interval: '1d' }])
    await addCoverage(database.db, telegramMembers, [toReport(second.key, [-20, -19])])
    expect(await read()).toMatchObject({ expected: daos.length * DAYS + 5, stored: daos.length * DAYS + 2 })
  })

  it('returns overdue entities with their reasons, except unserved ones', async () => {
    await storeAll([first.key, second.key, third.key])
    await addCoverage(database.db, telegramMembers, [
      toReport(first.key, [-DAYS, -2]),
      toReport(third.key, [-DAYS, -1]),
    ])
    await writeNotes(database.db, telegramMembers, [
      toNote(first.key, {}),
      toNote(second.key, { state: 'unserved', reason: 'no page' }),
    ])
    const { overdue, lacking } = await read()
    expect(overdue).toEqual([{ entity: first, reason: 'no answer' }])
    const counts = await countMissing(database.db, telegramMembers, lacking, NOW)
    expect(counts).toEqual({ failed: 1, unserved: 1, pending: DAYS - 1 })
  })

  it('uses the slot as the time of rows that have their own time', async () => {
    const token = tokenPrices.entities(registry)[0]
    const at = Date.parse('2026-05-20T12:00:00Z')
    await recordExpected(database.db, tokenPrices, [{ entity: ALL_ENTITIES, from: at - HOUR_MS, interval: '5m' }])
    const newest = (at - 5 * MINUTE) / (5 * MINUTE)
    await addCoverage(database.db, tokenPrices, [
      { entity: token?.key ?? 0, state: 'stored', provider: 'a', seconds: 300, first: newest - 5, last: newest },
    ])
    const isLost = async (now: number) => {
      const found = (await readCompleteness(database.db, registry, [tokenPrices], now)).get('prices')
      return found?.overdue.some(({ entity }) => entity === token)
    }
    expect([await isLost(at + 7 * MINUTE), await isLost(at + 8 * MINUTE)]).toEqual([false, true])
  })
})

describe('completeness watch', () => {
  it('logs each change of the overdue entities once, and exports all of it as metrics', async () => {
    const lines: { msg: string; overdue?: number; entities?: string[]; reasons?: string[] }[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const metrics = createMetrics('test')
    const clock = { now: NOW }
    const now = () => clock.now
    const { db } = database
    const watch = createCompletenessWatch({
      db,
      datasets: [telegramMembers],
      records: registry,
      registry: metrics,
      log,
      now,
    })
    const check = async () => {
      clock.now += MINUTE
      await watch.check()
      return lines.splice(0).map(({ msg, overdue, entities, reasons }) => ({ msg, overdue, entities, reasons }))
    }
    const value = async (name: string) => new RegExp(`^${name}.* (\\S+)$`, 'm').exec(await metrics.metrics())?.[1]
    const keys = daos.slice(0, 12).map(({ key }) => key)
    await storeAll(keys)
    await addCoverage(
      db,
      telegramMembers,
      keys.map((key) => toReport(key, [-DAYS, -3])),
    )
    await writeNotes(db, telegramMembers, [toNote(first.key, {})])
    const slot = { slot: TODAY, batch: undefined, isComplete: true, answered: [] }
    const unavailable = { provider: 'telegram', reason: new DataError('provider_unavailable', 'away') }
    await rememberFailing({ db, now }, 'telegram', { ...slot, failures: [unavailable] })
    const names = daos.slice(0, 10).map(({ name }) => name)
    const fields = { overdue: 12, entities: names, reasons: ['no answer', 'unknown reason'] }
    expect(await check()).toEqual([{ msg: 'entities are overdue: their newest slots are not stored', ...fields }])
    expect(await check()).toEqual([])
    expect(watch.countOverdue('telegram')).toBe(12)
    expect(await value('dataset_lost_entities\\{dataset="telegram"')).toBe('12')
    expect(await value('dataset_missing_buckets\\{dataset="telegram",state="pending"')).toBe('23')
    expect(await value('dataset_missing_buckets\\{dataset="telegram",state="failed"')).toBe('1')
    expect(Number(await value('dataset_complete'))).toBeCloseTo(1 - 24 / (daos.length * DAYS), 9)
    expect(Number(await value('dataset_provider_failing_seconds'))).toBe((clock.now - TODAY) / 1000)
    await rememberFailing({ db, now }, 'telegram', { ...slot, failures: [] })
    await addCoverage(
      db,
      telegramMembers,
      keys.map((key) => toReport(key, [-3, 0])),
    )
    expect(await check()).toMatchObject([{ msg: 'no entities are overdue any more' }])
    expect([await value('dataset_complete'), await value('dataset_provider_failing_seconds')]).toEqual(['1', undefined])
  })
})
