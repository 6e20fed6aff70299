import { marketCapSeries } from '../../../shared/datasets/market-cap.ts'
import { serveSums } from '../../series/daily-sums.ts'

export const marketCapRoute = serveSums(marketCapSeries, {
  operation: 'getTotalMarketCapHistory',
  path: '/data/aggregated/market-cap',
  summary: 'The market capitalization of all tokens together, by day',
  description:
    'One point per UTC day, oldest first, since `limit` days ago, in one page. `value` is the sum of the first market cap of the day over the tokens that were live, `tokensIncluded` their number. Tokens without data on that day are not included.',
})
