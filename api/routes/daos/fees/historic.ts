import { z } from 'zod'
import { daoFees } from '../../../../shared/datasets/fees.ts'
import { numberOrNull, timeValue } from '../../../../shared/record-values.ts'
import { defineDailySeries } from '../../../series/daily.ts'

const DAYS_OF_WEEK = 7

/** The sum of a column over a week, null if one of its days is unknown. */
const sumOfWeek = (column: string) => `if(count(${column}) = ${DAYS_OF_WEEK}, sum(${column}), NULL)`

export const feesHistoricRoute = defineDailySeries({
  operation: 'getDaoFeesHistory',
  path: '/data/daos/fees/historic',
  summary: 'Fees and revenue of a DAO over time',
  description:
    'One point per day, newest first, for each day that is over; a day of which the provider has no value is absent. With `interval=7d` a point is the sum of its days, and null if one of them is unknown. `limit` is in points.',
  dataset: daoFees,
  rows: (isOwner) => `(
  SELECT dao, toDateTime64(toStartOfDay(observed_at, 'UTC'), 3, 'UTC') AS day, observed_at, fees_usd, revenue_usd
  FROM dao_fees FINAL
  WHERE dao ${isOwner}
)`,
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day or week, in UTC.'),
      feesUsd: numberOrNull.describe("Fees that users paid to the DAO's protocols, in US dollars; null if unknown."),
      revenueUsd: numberOrNull.describe(
        'Revenue of the protocols: the part of the fees that they retain, in US dollars; null if unknown.',
      ),
    })
    .meta({ id: 'FeesPoint', description: 'Fees and revenue of a DAO in one day or week.' }),
  values: 'fees_usd, revenue_usd',
  weekValues: `${sumOfWeek('fees_usd')}, ${sumOfWeek('revenue_usd')}`,
})
