import { z } from 'zod'
import { daoFees } from '../../../shared/datasets/fees.ts'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { toStaleAt } from '../../../shared/store/store.ts'
import { idValue, numberOrNull, timeValue } from '../../formats/formats.ts'
import { defineList, isCurrentAt, listedDaos } from '../../lists/lists.ts'

const sum = (what: string, over: string) =>
  numberOrNull.describe(`${what} of ${over}, in US dollars; null if a day of it is unknown.`)

const valueChange = (over: string) =>
  numberOrNull.describe(`Change of \`fees24h\` over ${over}, in percent; null if that day has no fees above 0.`)

const feesRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    feesData: z
      .strictObject({
        fees24h: sum('Fees', 'the newest day that is over'),
        fees7d: sum('Fees', 'the 7 days up to it'),
        fees30d: sum('Fees', 'the 30 days up to it'),
        revenue24h: sum('Revenue', 'the newest day that is over'),
        revenue7d: sum('Revenue', 'the 7 days up to it'),
        revenue30d: sum('Revenue', 'the 30 days up to it'),
        percentChange24h: valueChange('24 hours'),
        percentChange7d: valueChange('7 days'),
        percentChange30d: valueChange('30 days'),
        lastUpdated: timeValue.describe('The last moment of the newest day.'),
      })
      .describe("Fees paid by users, and the protocols' revenue."),
  })
  .meta({ id: 'Fees', description: "Fees and revenue of a DAO's protocols." })

const sumOf = (column: string, days: number) =>
  `if(countIf(isNotNull(${column}) AND ago < ${days}) = ${days}, sumIf(${column}, ago < ${days}), NULL)`

/**
 * SQL for the change in percent since exactly `days` days before; null if that day has no positive fees, because a
 * percentage of 0 or of a loss has no meaning.
 */
const changeSince = (days: number) =>
  `100 * (anyIf(fees_usd, ago = 0) / anyIf(fees_usd, ago = ${days} AND fees_usd > 0) - 1)`

const SUMS = ['fees_usd', 'revenue_usd'].flatMap((column) => [1, 7, 30].map((days) => sumOf(column, days)))
const CHANGES = [1, 7, 30].map(changeSince)

/** SQL for the sums and changes of each DAO, up to its newest row that `condition` selects. */
const toFees = (condition: string) => `INNER JOIN
(
  SELECT dao, newest_at, tuple(${[...SUMS, ...CHANGES].join(',\n    ')}, newest_at) AS sums
  FROM
  (
    SELECT dao, newest_at, dateDiff('day', observed_at, newest_at) AS ago, fees_usd, revenue_usd
    FROM (SELECT * FROM dao_fees FINAL) AS row
    INNER JOIN (SELECT dao, max(observed_at) AS newest_at FROM dao_fees WHERE ${condition} GROUP BY dao) AS newest USING dao
    WHERE observed_at <= newest_at AND observed_at > newest_at - INTERVAL 31 DAY
  )
  GROUP BY dao, newest_at
) AS f ON f.dao = d.key`

export const feesRoute = defineList({
  operation: 'listDaoFees',
  path: '/data/daos/fees',
  summary: "Fees and revenue of DAOs' protocols",
  description:
    "For all live DAOs with fees, or those that `id` and `name` select: fees that users paid to their protocols and the protocols' revenue, over the newest complete day and the 7 and 30 days up to it. A sum is null if a day of it is unknown. Changes compare `fees24h` with the day exactly 1, 7 or 30 days before. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  of: listedDaos,
  record: feesRecord,
  datasets: [daoFees, tokenPrices],
  name: 'dao-fees',
  asOf: 'f.newest_at',
  values: 'd.id, d.name, f.sums',
  joins: toFees('true'),
  pastJoins: toFees(isCurrentAt('observed_at', toStaleAt(0, daoFees))),
})
