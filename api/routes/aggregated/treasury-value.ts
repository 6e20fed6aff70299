import { z } from 'zod'
import { treasuryValue } from '../../../shared/datasets/treasury-value.ts'
import { SERIES_HEADERS } from '../../http/headers.ts'
import { timeValue, uint32 } from '../../records/values.ts'
import { defineRoute } from '../../route/define-route.ts'
import { answerDailySums, dailySumParameters } from '../../series/daily-sums.ts'
import { toPoints } from '../../series/filled.ts'

const metadata = z.strictObject({ daosIncluded: uint32.describe('DAOs that have a part in the sum.') })

const point = z
  .strictObject({
    recordedAt: timeValue.describe('The day: its first moment.'),
    treasuryValueUsd: z
      .strictObject({
        value: z.number().describe('The sum in US dollars.'),
        metadata: metadata.describe('What the sum is made of.'),
      })
      .describe('Sum of the treasuries of all DAOs together.'),
  })
  .meta({ id: 'TreasuryValuePoint', description: 'Sum of the treasuries of all DAOs together on one day.' })

export const treasuryValueRoute = defineRoute({
  operation: 'getTotalTreasuryValueHistory',
  path: '/data/aggregated/treasury-value',
  tag: 'Aggregated',
  summary: 'The value of all DAO treasuries together, by day',
  description:
    'One point per UTC day, oldest first, from `limit` days ago on; never cut, so there are no further pages. `value` is the sum over the DAOs that were live that day of their treasuries, `daosIncluded` their number: a DAO without data that day is left out.',
  query: dailySumParameters,
  record: point,
  response: toPoints({ record: point, time: 'recordedAt' }),
  datasets: [treasuryValue],
  headers: SERIES_HEADERS,
  handle: (call) => answerDailySums(call, treasuryValue, call.query),
})
