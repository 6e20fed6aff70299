import { z } from 'zod'
import { marketCap } from '../../../shared/datasets/market-cap.ts'
import { SERIES_HEADERS } from '../../http/headers.ts'
import { timeValue, uint32 } from '../../records/values.ts'
import { defineRoute } from '../../route/define-route.ts'
import { answerDailySums, dailySumParameters } from '../../series/daily-sums.ts'
import { toPoints } from '../../series/filled.ts'

const metadata = z.strictObject({ tokensIncluded: uint32.describe('Tokens that have a part in the sum.') })

const point = z
  .strictObject({
    recordedAt: timeValue.describe('The day: its first moment.'),
    marketCapUsd: z
      .strictObject({
        value: z.number().describe('The sum in US dollars.'),
        metadata: metadata.describe('What the sum is made of.'),
      })
      .describe('Sum of the market caps of all tokens together.'),
  })
  .meta({ id: 'MarketCapPoint', description: 'Sum of the market caps of all tokens together on one day.' })

export const marketCapRoute = defineRoute({
  operation: 'getTotalMarketCapHistory',
  path: '/data/aggregated/market-cap',
  tag: 'Aggregated',
  summary: 'The market capitalization of all tokens together, by day',
  description:
    'One point per UTC day, oldest first, from `limit` days ago on; never cut, so there are no further pages. `value` is the sum over the tokens that were live that day of the first market cap known of it, `tokensIncluded` their number: a token without data that day is left out.',
  query: dailySumParameters,
  record: point,
  response: toPoints({ record: point, time: 'recordedAt' }),
  datasets: [marketCap],
  headers: SERIES_HEADERS,
  handle: (call) => answerDailySums(call, marketCap, call.query),
})
