import { tokenHolders } from '../../shared/datasets/holders.ts'
import { TOKEN } from './daily.ts'

/** Of the token `{entity: UInt64}` the first snapshot of each day. */
const FIRST_OF_DAYS = `(
  SELECT token, toDateTime64(toStartOfDay(observed_at, 'UTC'), 3, 'UTC') AS day, observed_at, total_holders, top100_share,
    holders.share AS shares, holders.address AS addresses
  FROM token_holders FINAL
  WHERE token = {entity: UInt64}
  ORDER BY observed_at
  LIMIT 1 BY day
)`

/** What every daily series about who held a token has in common. */
export const DAILY_HOLDERS = {
  of: TOKEN,
  intervals: ['1d'],
  // Snapshots come hourly where a plan allows it; a daily series of them has a new point a day.
  dataset: { ...tokenHolders, cadence: '1d' },
  rows: FIRST_OF_DAYS,
} as const
