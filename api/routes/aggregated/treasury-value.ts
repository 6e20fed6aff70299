import { toTreasuryValues, treasuryValue } from '../../../shared/datasets/treasury-value.ts'
import { defineDailySums } from '../../series/daily-sums.ts'

export const treasuryValueRoute = defineDailySums({
  operation: 'getTotalTreasuryValueHistory',
  path: '/data/aggregated/treasury-value',
  summary: 'The value of all DAO treasuries together, by day',
  description:
    'One point per UTC day, oldest first, from `limit` days ago on; never cut, so there are no further pages. `value` is the sum over the DAOs that were live that day of their treasuries, `daosIncluded` their number: a DAO without data that day is left out. Like for like, a treasury that another source tells of is another one: two sources do not count the same things.',
  dataset: treasuryValue,
  members: toTreasuryValues,
  all: ({ daos }) => daos,
  sum: { name: 'treasuryValueUsd', series: 'TreasuryValuePoint', of: 'Sum of the treasuries of all DAOs together' },
  count: { name: 'daosIncluded', noun: 'DAOs' },
})
