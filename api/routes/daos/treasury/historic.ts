import { treasurySeries } from '../../../../shared/datasets/treasury.ts'
import { serveSeries } from '../../../series/daily.ts'

export const treasuryHistoricRoute = serveSeries(treasurySeries, {
  operation: 'getDaoTreasuryHistory',
  path: '/data/daos/treasury/historic',
  summary: 'Value of the treasury of a DAO over time',
  description:
    'One point per day, newest first; days without a reading are absent. The three parts add up to `valueUsd`. Values from different sources are not comparable. `limit` is in points.',
})
