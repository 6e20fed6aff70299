import { expect, it } from 'vitest'
import { type Cadence, toBucketStart } from '../../shared/intervals.ts'
import { jobOf } from '../support/answered.ts'
import { countDifferences } from './roll-up-differences.ts'
import { toClock, toSlotTime } from './slot-clock.ts'
import type { Stage } from './stage.ts'

const ROLL_UPS = ['token_price_rollups', 'token_holders_latest', 'dex_trade_days', 'dex_data']

/**
 * After so many slots, whoever was killed: what is computed is what the stored series give. `since` is the moment, in Unix
 * milliseconds, from whose day on there are series of a clock.
 */
export function itIsConsistent(
  stage: () => Stage,
  { slots, since }: { readonly slots: number; readonly since: (clock: Cadence) => number },
): void {
  it('keeps roll-ups that are what the stored series give', async () => {
    const { database, config } = stage()
    const differences = await countDifferences(database.db, config.clickhouse.database, toSlotTime('1h', slots - 1))
    // The DAOs' records are the registry's: what providers propose for them is no roll-up.
    const { daos: _, ...rollUps } = differences
    expect(Object.keys(rollUps)).toEqual(expect.arrayContaining(ROLL_UPS))
    expect(Object.entries(rollUps).filter(([, count]) => count !== 0)).toEqual([])
  })

  // These jobs store only what differs from what is stored, so a slot without rows is no fault.
  it.each(['index', 'market-cap', 'treasury-value'])(
    'keeps %s as a computation from the stored series gives it',
    async (name) => {
      const job = jobOf(name)
      const clock = toClock(job)
      const span = { from: toBucketStart(since(clock), '1d'), to: toSlotTime(clock, slots) }
      const report = await stage().collectAlone(job, { kind: 'range', ...span, interval: job.cadence })
      expect(report).toMatchObject({ rows: 0 })
    },
  )
}
