import { expect, it } from 'vitest'
import { type Cadence, toBucketStart } from '../../shared/intervals.ts'
import { jobOf } from '../support/answered.ts'
import { findDifferences } from './roll-up-differences.ts'
import { toClock, toSlotTime } from './slot-clock.ts'
import type { Stage } from './stage.ts'

const ROLL_UPS = ['token_price_rollups', 'token_holders_latest', 'dex_trade_days', 'dex_data']

/**
 * Checks that all computed values match the stored series after a number of slots, whichever processes were killed. `since` is
 * the time, in Unix milliseconds, from whose day on a clock has series.
 */
export function itIsConsistent(
  stage: () => Stage,
  { slots, since }: { readonly slots: number; readonly since: (clock: Cadence) => number },
): void {
  it('stores roll-ups that match the stored series', async () => {
    const { database, config } = stage()
    const differences = await findDifferences(database.db, config.clickhouse.database, toSlotTime('1h', slots - 1))
    // DAO records come from the registry: the links that providers propose for them are not a roll-up.
    const { daos: _, ...rollUps } = differences
    expect(Object.keys(rollUps)).toEqual(expect.arrayContaining(ROLL_UPS))
    expect(Object.entries(rollUps).filter(([, rows]) => rows.length > 0)).toEqual([])
  })

  // These jobs store only values that differ from the stored ones, so a slot without rows is correct.
  it.each(['index', 'market-cap', 'treasury-value'])(
    'stores the same values of %s as a computation from the stored series',
    async (name) => {
      const job = jobOf(name)
      const clock = toClock(job)
      const span = { from: toBucketStart(since(clock), '1d'), to: toSlotTime(clock, slots) }
      const report = await stage().collectAlone(job, { kind: 'range', ...span, interval: job.cadence })
      expect(report).toMatchObject({ rows: 0 })
    },
  )
}
