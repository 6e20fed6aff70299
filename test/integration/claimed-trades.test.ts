import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type Buckets, toTimes, union } from '../../shared/buckets.ts'
import { END_OF_TIME } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { addCoverage, readCoverage } from '../../shared/ledger/tables.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import { findLedgerGaps } from '../../workers/backfill/ledger-gaps.ts'
import dexTrades from '../../workers/jobs/dex-trades.ts'
import { createDexPipeline, readTrades } from '../support/dex-pipeline.ts'
import { nowAt, START, swapAt, toChain } from '../upstream/small-chain.ts'

const HOUR = 3_600_000
const MIGRATIONS = join(import.meta.dirname, '../../clickhouse/migrations')
const BLOCKS_PER_HOUR = 300
const DAY = 24
const FIRST = START * 1000
/** A trade in each half hour of five days. */
const SWAPS = Array.from({ length: 5 * DAY * 2 }, (_, n) => swapAt(n * 150 + 10))

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(hour: number) {
  const run = await createDexPipeline({
    now: nowAt(hour * BLOCKS_PER_HOUR),
    chains: { ethereum: toChain(SWAPS) },
    settings: { DEX_FIRST_RUN_HOURS: '2' },
  })
  closers.push(run.close)
  const { db } = run.database
  const uni = run.registry.tokens.find(({ symbol }) => symbol === 'UNI')
  if (uni === undefined) throw new Error('UNI is not in the registry')
  const ledger = openLedger(db, dexTrades.dataset)
  const toHours = (first: number, last: number) => {
    const { from, to } = toTimes({ first, last }, '1h')
    return [(from - FIRST) / HOUR, (to - FIRST) / HOUR]
  }
  return {
    ...{ ...run, ledger, uni },
    moveTo: (to: number) => {
      run.clock.now = nowAt(to * BLOCKS_PER_HOUR)
    },
    /** The covered hours after the first block, as [from, to). */
    covered: async () => {
      const all = { first: 0, last: 1_000_000 }
      const reports = await readCoverage(db, dexTrades.dataset, [uni.key], all)
      return union(reports).map(({ first, last }) => toHours(first, last))
    },
    /** The hours with a stored trade. */
    traded: async () => {
      const hours = (await readTrades(run)).map(({ traded_at }) => {
        return Math.floor((Date.parse(`${traded_at.replace(' ', 'T')}Z`.replace('ZZ', 'Z')) - FIRST) / HOUR)
      })
      return union(hours.map((hour) => ({ first: hour, last: hour }))).map(({ first, last }) => [first, last + 1])
    },
    gaps: async () => {
      const asked = { range: { from: FIRST, to: run.clock.now }, interval: undefined, now: run.clock.now }
      const gaps = await findLedgerGaps(db, dexTrades, run.registry, asked)
      const own = gaps.filter(({ entity }) => entity.key === uni.key)
      return own.map(({ from, to }) => [(from - FIRST) / HOUR, (to - FIRST) / HOUR])
    },
    forget: (like: string) =>
      db.command({
        name: 'forget',
        sql: "ALTER TABLE job_state DELETE WHERE job = 'dex-trades' AND name LIKE {like: String}",
        params: { like },
        settings: { mutations_sync: 2 },
      }),
  }
}

const hoursOf = (from: number, to: number) => [FIRST + from * HOUR, FIRST + to * HOUR] as const

describe('recount of trades', () => {
  it('finds hours that an earlier version did not read, once, and collects them again', async () => {
    const run = await start(2 * DAY + 10)
    const { db } = run.database
    const reports = (buckets: Buckets) => [
      { entity: run.uni.key, state: 'stored' as const, provider: 'ethereum', seconds: 3600, ...buckets },
    ]
    await run.runRange(...hoursOf(0, DAY), ['UNI'])
    await run.runSlot()
    const first = FIRST / HOUR
    await addCoverage(db, dexTrades.dataset, reports({ first: first + DAY, last: first + 2 * DAY + 10 }))
    expect(await run.ledger.findUnfounded()).toEqual([])
    const sql = readFileSync(join(MIGRATIONS, '050_unproven_trades.sql'), 'utf8').replaceAll(/--.*$/gm, '')
    await db.command({ name: 'mark', sql: sql.replace(';', '') })

    const unfounded = await run.ledger.findUnfounded()
    expect(unfounded.filter(({ entity }) => entity === run.uni.key)).toEqual(
      reports({ first: first + DAY - 1, last: first + 2 * DAY + 11 }),
    )
    await run.ledger.removeUnfounded(unfounded)
    expect(await run.ledger.findUnfounded()).toEqual([])
    expect(await run.covered()).toEqual([[0, DAY - 1]])
    expect(await run.gaps()).toEqual([[DAY - 1, 2 * DAY + 8]])
    await run.runRange(...hoursOf(DAY - 1, 2 * DAY + 8), ['UNI'])
    expect(await run.gaps()).toEqual([])
    expect(await run.traded()).toEqual([[0, 2 * DAY + 10]])
  })
})

describe('coverage of trades', () => {
  it('begins where the cursor of the slot began, not at the newest hour of a back-fill', async () => {
    const run = await start(2 * DAY + 10)
    await run.ledger.expect([{ entity: ALL_ENTITIES, from: FIRST, to: END_OF_TIME, interval: '1h' }])
    await run.runRange(...hoursOf(0, DAY), ['UNI'])
    await run.runSlot()
    // The newest final block is 64 blocks old, so the hour before the slot is not over.
    expect(await run.covered()).toEqual([
      [0, DAY],
      [2 * DAY + 8, 2 * DAY + 9],
    ])
    expect(await run.gaps()).toEqual([[DAY, 2 * DAY + 8]])

    await run.runRange(...hoursOf(DAY, 2 * DAY + 8), ['UNI'])
    expect(await run.gaps()).toEqual([])
    expect(await run.traded()).toEqual([[0, 2 * DAY + 10]])
  })

  it('has no gap between slots of one cursor, also after an outage', async () => {
    const run = await start(10)
    await run.runSlot()
    for (const hour of [11, 12, 40]) {
      run.moveTo(hour)
      await run.runSlot()
      expect(await run.covered()).toEqual([[8, hour - 1]])
    }
    expect(await run.traded()).toEqual([[8, 40]])
  })

  it.each(['%', 'cursors.%', 'since.%'])('begins again after the state is lost: %s', async (like) => {
    const run = await start(10)
    await run.runSlot()
    await run.forget(like)
    run.moveTo(30)
    await run.runSlot()
    run.moveTo(32)
    await run.runSlot()
    const begin = like === 'since.%' ? 30 : 28
    expect(await run.covered()).toEqual([
      [8, 9],
      [begin, 31],
    ])
  })

  it('has only the part of a range that the node has', async () => {
    const run = await start(10)
    await run.runRange(...hoursOf(4, 10), ['UNI'])
    expect(await run.covered()).toEqual([[4, 9]])
  })
})
