import { toTreasuryValues, treasuryValue } from '../../../shared/datasets/treasury-value.ts'
import { defineDailySums } from '../../series/daily-sums.ts'

export const treasuryValueRoute = defineDailySums({
  operation: 'getTotalTreasuryValueHistory',
  path: '/data/aggregated/treasury-value',
  summary: 'The value of all DAO treasuries together, by day',
  description:
    'One point per UTC day, oldest first, since `limit` days ago, in one page. `value` is the sum of the treasuries of DAOs that were live on that day, `daosIncluded` their number. DAOs without data on that day are not included. For like-for-like changes, a treasury from another source is a different treasury, because sources count different assets.',
  dataset: treasuryValue,
  members: toTreasuryValues,
  all: ({ daos }) => daos,
  sum: { name: 'treasuryValueUsd', series: 'TreasuryValuePoint', of: 'Sum of the treasuries of all DAOs together' },
  count: { name: 'daosIncluded', noun: 'DAOs' },
})
