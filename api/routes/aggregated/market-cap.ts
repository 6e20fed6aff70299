import { marketCap, toMarketCaps } from '../../../shared/datasets/market-cap.ts'
import { defineDailySums } from '../../series/daily-sums.ts'

export const marketCapRoute = defineDailySums({
  operation: 'getTotalMarketCapHistory',
  path: '/data/aggregated/market-cap',
  summary: 'The market capitalization of all tokens together, by day',
  description:
    'One point per UTC day, oldest first, from `limit` days ago on; never cut, so there are no further pages. `value` is the sum over the tokens that were live that day of the first market cap known of it, `tokensIncluded` their number: a token without data that day is left out.',
  dataset: marketCap,
  members: toMarketCaps,
  all: ({ tokens }) => tokens,
  sum: { name: 'marketCapUsd', series: 'MarketCapPoint', of: 'Sum of the market caps of all tokens together' },
  count: { name: 'tokensIncluded', noun: 'Tokens' },
})
