import { z } from 'zod'
import { tokenHolders } from '../../../../shared/datasets/holders.ts'
import { timeValue, uint64 } from '../../../records/values.ts'
import { defineDailySeries, ONLY_DAYS, TOKEN } from '../../../series/daily.ts'

/** The first snapshot of each day. */
const FIRST_OF_DAYS = `(
  SELECT token, toDateTime64(toStartOfDay(observed_at, 'UTC'), 3, 'UTC') AS day, observed_at, total_holders, top100_share,
    holders.share AS shares
  FROM token_holders FINAL
  WHERE token = {entity: UInt64}
  ORDER BY observed_at
  LIMIT 1 BY day
)`

/** Rounded as the share of the hundred is stored, so that no rounding error shows. */
const TOP_10 = 'round(arraySum(arraySlice(shares, 1, 10)), 10)'

export const holdersHistoricRoute = defineDailySeries({
  operation: 'getTokenHoldersHistory',
  path: '/data/tokens/holders/historic',
  summary: 'How many held a token, and how much the largest of them, over time',
  description:
    'One point per day, newest first: the first snapshot of the day. A day without a snapshot is absent. Shares are in percent of the total supply. `limit` is in points.',
  of: TOKEN,
  intervals: ONLY_DAYS,
  // Snapshots come hourly where a plan allows it; this series has a new point a day.
  dataset: { ...tokenHolders, cadence: '1d' },
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The day: its first moment.'),
      totalHolders: uint64.describe('Addresses that held the token.'),
      top10Share: z.number().describe('Percent of the total supply that the ten largest held together.'),
      top100Share: z.number().describe('Percent of the total supply that the hundred largest held together.'),
    })
    .meta({ id: 'HoldersPoint', description: 'Who held a token on one day.' }),
  rows: FIRST_OF_DAYS,
  values: `total_holders, ${TOP_10}, top100_share`,
})
