import { tokenHolders } from '../../shared/datasets/holders.ts'
import type { DatasetFacts } from '../../shared/datasets/list.ts'

/** Snapshots come hourly where a plan allows it; a daily series of them has a new point a day. */
export const DAILY_HOLDERS: DatasetFacts = { ...tokenHolders, cadence: '1d' }

/** Of the token `{entity: UInt64}` the first snapshot of each day, for a daily series. */
export const FIRST_HOLDERS_OF_DAYS = `(
  SELECT token, toDateTime64(toStartOfDay(observed_at, 'UTC'), 3, 'UTC') AS day, observed_at, total_holders, top100_share,
    holders.share AS shares, holders.address AS addresses
  FROM token_holders FINAL
  WHERE token = {entity: UInt64}
  ORDER BY observed_at
  LIMIT 1 BY day
)`
