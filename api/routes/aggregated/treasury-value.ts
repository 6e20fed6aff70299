import { treasuryValueSeries } from '../../../shared/datasets/treasury-value.ts'
import { serveSums } from '../../series/daily-sums.ts'

export const treasuryValueRoute = serveSums(treasuryValueSeries, {
  operation: 'getTotalTreasuryValueHistory',
  path: '/data/aggregated/treasury-value',
  summary: 'The value of all DAO treasuries together, by day',
  description:
    'One point per UTC day, oldest first, since `limit` days ago, in one page. `value` is the sum of the treasuries of DAOs that were live on that day, `daosIncluded` their number. DAOs without data on that day are not included. For like-for-like changes, a treasury from another source is a different treasury, because sources count different assets.',
})
