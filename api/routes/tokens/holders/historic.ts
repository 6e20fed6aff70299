import { z } from 'zod'
import { timeValue, uint64 } from '../../../../shared/record-values.ts'
import { defineDailySeries } from '../../../series/daily.ts'
import { DAILY_HOLDERS } from '../../../series/daily-holders.ts'

/** Rounded like the stored share of the hundred largest, so that no rounding error is visible. */
export const TOP_10 = 'round(arraySum(arraySlice(shares, 1, 10)), 10)'

export const holdersHistoricRoute = defineDailySeries({
  ...DAILY_HOLDERS,
  operation: 'getTokenHoldersHistory',
  path: '/data/tokens/holders/historic',
  summary: 'Number of holders of a token, and the holdings of the largest ones, over time',
  description:
    'One point per day, newest first: the first snapshot of the day. A day without a snapshot is absent. Shares are in percent of the total supply. `limit` is in points.',
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      totalHolders: uint64.describe('Addresses that held the token.'),
      top10Share: z.number().describe('Percent of the total supply that the ten largest held together.'),
      top100Share: z.number().describe('Percent of the total supply that the hundred largest held together.'),
    })
    .meta({ id: 'HoldersPoint', description: 'Holders of a token on one day.' }),
  values: `total_holders, ${TOP_10}, top100_share`,
})
