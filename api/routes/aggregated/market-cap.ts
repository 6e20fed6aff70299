import { z } from 'zod'
import { marketCap } from '../../../shared/datasets/market-cap.ts'
import { SERIES_HEADERS } from '../../http/headers.ts'
import { defineRoute } from '../../route/define.ts'
import { timeValue } from '../../route/values.ts'
import { answerDailySums, daysBack } from '../../series/daily-sums.ts'

const point = z.strictObject({
  recordedAt: timeValue,
  marketCapUsd: z.strictObject({ value: z.number(), metadata: z.strictObject({ tokensIncluded: z.int() }) }),
})

export const marketCapRoute = defineRoute({
  path: '/data/aggregated/market-cap',
  tag: 'Aggregated',
  summary: 'The market capitalization of all tokens together, by day',
  description:
    'One point per UTC day, oldest first, from `limit` days ago on; never cut, so there are no further pages. `value` is the sum over the live tokens of the first market cap known that day, `tokensIncluded` their number: a token without data that day is left out.',
  query: daysBack,
  record: point,
  datasets: [marketCap],
  headers: SERIES_HEADERS,
  handle: (call) =>
    answerDailySums(call, { ...marketCap, value: 'marketCapUsd', members: 'tokensIncluded' }, call.query.limit),
})
