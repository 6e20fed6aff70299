import { z } from 'zod'
import { timeValue, usdOrNull } from '../record-values.ts'
import { DEFILLAMA, defineDataset } from './define-dataset.ts'
import { defineSeries } from './define-series.ts'

/** Bound on a day's USD of one protocol: about a hundred times the sum of all protocols. */
const MOST_USD = 1e10

/** Adapters of DefiLlama may report a negative day, such as a yield after a loss (`allowNegativeValue`). */
const dayUsd = z.number().min(-MOST_USD).max(MOST_USD).nullable()

/**
 * The fees paid by users of a DAO's protocols in one day and the protocols' revenue from them, in US dollars.
 * `observed_at` is the last millisecond of the day. Null if the source does not know one of the two.
 */
export const daoFeesRow = z
  .strictObject({
    dao: z.int().nonnegative(),
    observed_at: z.iso.datetime(),
    fees_usd: dayUsd,
    revenue_usd: dayUsd,
  })
  .refine(({ fees_usd, revenue_usd }) => fees_usd !== null || revenue_usd !== null, 'neither fees nor revenue')

export type DaoFeesRow = z.infer<typeof daoFeesRow>

/** Fees and revenue of DAOs: a row per DAO and day that is over. */
export const daoFees = defineDataset({
  name: 'fees',
  title: 'Fees and revenue',
  cadence: '1d',
  table: 'dao_fees',
  row: daoFeesRow,
  entities: ({ daos }) => daos.filter(({ live, defillama }) => live && defillama !== null),
  needsDaos: true,
  entity: 'dao',
  dispensable: ['fees_usd', 'revenue_usd'],
  isCollected: true,
  hasOwnTimes: true,
  hasHistory: true,
  series: { table: 'dao_fees', entity: 'dao', time: 'observed_at', provider: DEFILLAMA },
})

const DAYS_OF_WEEK = 7

/** Fees and revenue by day. A week is the sum of its days, null if one of them is unknown. */
export const feesSeries = defineSeries(daoFees, {
  about: 'dao',
  record: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day or week, in UTC.'),
      feesUsd: usdOrNull.describe("Fees that users paid to the DAO's protocols, in US dollars; null if unknown."),
      revenueUsd: usdOrNull.describe(
        'Revenue of the protocols: the part of the fees that they retain, in US dollars; null if unknown.',
      ),
    })
    .meta({ id: 'FeesPoint', description: 'Fees and revenue of a DAO in one day or week.' }),
  values: { fees_usd: 'fees_usd', revenue_usd: 'revenue_usd' },
  combineWeek: (column) => `if(count(${column}) = ${DAYS_OF_WEEK}, sum(${column}), NULL)`,
})
