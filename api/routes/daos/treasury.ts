import { z } from 'zod'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { daoTreasury, IS_WHOLE, isPartialMember } from '../../../shared/datasets/treasury.ts'
import { idValue, numberOrNull, timeValue } from '../../../shared/record-values.ts'
import { toStaleAt } from '../../../shared/store/store.ts'
import { defineList, isCurrentAt, listedDaos } from '../../lists/lists.ts'

const holding = z
  .strictObject({
    token: z.string().describe('Symbol of the asset.'),
    quantity: z.number().describe('How many tokens.'),
    valueUsd: numberOrNull.describe('Their value in US dollars; null if no source has a price.'),
  })
  .meta({ id: 'TreasuryHolding', description: 'One asset in a treasury.' })

const valueChange = (over: string) =>
  numberOrNull.describe(
    `Change of \`valueUsd\` over ${over}, in percent; null if that day has no value, or if either value is that of a part of the treasury.`,
  )

const treasuryRecord = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    treasuryData: z
      .strictObject({
        lastUpdated: timeValue.describe('When the treasury was read.'),
        tokens: z.array(holding).describe("All assets, including the DAO's own tokens, largest value first."),
        valueUsd: z.number().describe('Value of everything that has a price, in US dollars.'),
        percentChange24h: valueChange('24 hours'),
        percentChange7d: valueChange('7 days'),
        percentChange30d: valueChange('30 days'),
        isPartial: isPartialMember,
      })
      .describe('What the treasury holds.'),
  })
  .meta({ id: 'Treasury', description: 'The treasury of a DAO.' })

/**
 * Change in percent since exactly `days` days before, from the same source, because sources count different assets.
 * Null if there is no such value (an absent one reads as 0), if it is 0, or if one of the two is that of a part.
 */
const changeSince = (days: number) => `100 * (if(t.newest.5, t.newest.3, NULL) / nullIf(
    arrayFirst(past -> past.1 = t.newest.1 - INTERVAL ${days} DAY AND past.2 = t.newest.4 AND past.4, t.history).3, 0) - 1)`

/**
 * For each DAO the newest row that fulfils `condition`, and the rows that it is compared with. Only the rows of the
 * answer are read completely, however long the history is.
 */
const toTreasuries = (condition: string) => `INNER JOIN
(
  SELECT dao, argMax(tuple(observed_at, tokens, value_usd, source, ${IS_WHOLE}), observed_at) AS newest,
    groupArray(tuple(observed_at, source, value_usd, ${IS_WHOLE})) AS history
  FROM dao_treasuries FINAL
  WHERE (dao, observed_at) IN
  (
    SELECT dao, max(observed_at) - INTERVAL arrayJoin([0, 1, 7, 30]) DAY FROM dao_treasuries WHERE ${condition} GROUP BY dao
  )
  GROUP BY dao
) AS t ON t.dao = d.key`

export const treasuryRoute = defineList({
  operation: 'listDaoTreasuries',
  path: '/data/daos/treasury',
  summary: 'Assets in the treasuries of DAOs',
  description:
    "For all live DAOs with treasury data, or those that `id` and `name` select: all assets, including the DAO's own tokens, by value, largest first, and the total value. `valueUsd` of a token is null if it has no price; such tokens come last. Changes compare with the value of the same source exactly 1, 7 or 30 days before, and are null if there is none. If holdings could not be read, `isPartial` is true and the changes are null. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  of: listedDaos,
  record: treasuryRecord,
  datasets: [daoTreasury, tokenPrices],
  name: 'dao-treasuries',
  asOf: 't.newest.1',
  values: `d.id, d.name, tuple(t.newest.1, arrayMap(token -> tuple(token.1, token.2, token.3), t.newest.2), t.newest.3,
    ${changeSince(1)}, ${changeSince(7)}, ${changeSince(30)}, if(t.newest.5, NULL, true))`,
  joins: toTreasuries('true'),
  pastJoins: toTreasuries(isCurrentAt('observed_at', toStaleAt(0, daoTreasury))),
})
