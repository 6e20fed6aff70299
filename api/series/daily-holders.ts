import { tokenHolders } from '../../shared/datasets/holders.ts'
import { TOKEN } from './daily.ts'

/** The first snapshot of each day of tokens. */
const firstOfDays = (isOwner: string) => `(
  SELECT token, toDateTime64(toStartOfDay(observed_at, 'UTC'), 3, 'UTC') AS day, observed_at, total_holders, top100_share,
    holders.share AS shares, holders.address AS addresses
  FROM token_holders FINAL
  WHERE token ${isOwner}
  ORDER BY token, observed_at
  LIMIT 1 BY token, day
)`

/** Common properties of all daily series about token holders. */
export const DAILY_HOLDERS = {
  of: TOKEN,
  intervals: ['1d'],
  // Snapshots are hourly if a plan allows it; the daily series has one new point per day.
  dataset: { ...tokenHolders, cadence: '1d' },
  rows: firstOfDays,
} as const
