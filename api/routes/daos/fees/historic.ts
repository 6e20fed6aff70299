import { feesSeries } from '../../../../shared/datasets/fees.ts'
import { serveSeries } from '../../../series/daily.ts'

export const feesHistoricRoute = serveSeries(feesSeries, {
  operation: 'getDaoFeesHistory',
  path: '/data/daos/fees/historic',
  summary: 'Fees and revenue of a DAO over time',
  description:
    'One point per day, newest first, for each day that is over; a day of which the provider has no value is absent. With `interval=7d` a point is the sum of its days, and null if one of them is unknown. `limit` is in points.',
})
