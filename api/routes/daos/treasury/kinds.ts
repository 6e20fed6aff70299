import { z } from 'zod'
import { tokenPrices } from '../../../../shared/datasets/token-prices.ts'
import { daoTreasury, IS_WHOLE, isPartialMember, KIND_VALUES, kindValue } from '../../../../shared/datasets/treasury.ts'
import { idValue, numberOrNull, timeValue, uint32 } from '../../../../shared/record-values.ts'
import { toStaleAt } from '../../../../shared/store/store.ts'
import { defineList, isCurrentAt, listedDaos } from '../../../lists/lists.ts'

const change = (member: string) =>
  numberOrNull.describe(
    `Change of \`${member}\` over 30 days, in percent; null if that day has no value of the same source, or if either value is that of a part of the treasury.`,
  )

const record = z
  .strictObject({
    _id: idValue.describe('Id of the DAO.'),
    name: z.string().describe('Name of the DAO.'),
    lastUpdated: timeValue.describe('When the treasury was last read.'),
    valueUsd: z.number().describe('Value of everything that has a price, in US dollars.'),
    ownTokenUsd: kindValue("the DAO's own tokens"),
    stablecoinUsd: kindValue("stablecoins, by this service's list of them,"),
    otherUsd: kindValue('everything else'),
    withoutOwnTokenUsd: kindValue("everything except the DAO's own tokens"),
    assets: uint32.describe('How many assets were held, with a price or without.'),
    percentChange30d: change('valueUsd'),
    withoutOwnTokenPercentChange30d: change('withoutOwnTokenUsd'),
    isPartial: isPartialMember,
  })
  .meta({ id: 'TreasuryKinds', description: 'The treasury of a DAO by kind of asset.' })

/** Change in percent of a value of the newest row since the row of the same source 30 days before, if there is one. */
const changeOf = (place: number) => `100 * (if(t.newest.9, t.newest.${place}, NULL) / nullIf(
    arrayFirst(past -> past.1 = t.newest.1 - INTERVAL 30 DAY AND past.8 = t.newest.8 AND past.9, t.history).${place}, 0) - 1)`

/** For each DAO the newest row that fulfils `isKnown`, and the one 30 days before. */
const toKinds = (isKnown: string) => `INNER JOIN
(
  SELECT dao, argMax(one, one.1) AS newest, groupArray(one) AS history
  FROM
  (
    SELECT dao, tuple(observed_at, value_usd, own, stable, other,
      if(isNull(stable) AND isNull(other), NULL, ifNull(stable, 0) + ifNull(other, 0)), assets, source, is_whole) AS one
    FROM
    (
      SELECT dao, observed_at, value_usd, source, length(tokens) AS assets, ${IS_WHOLE} AS is_whole,
        ${KIND_VALUES.own_token_usd} AS own, ${KIND_VALUES.stablecoin_usd} AS stable, ${KIND_VALUES.other_usd} AS other
      FROM dao_treasuries FINAL
      WHERE (dao, observed_at) IN
      (
        SELECT dao, max(observed_at) - INTERVAL arrayJoin([0, 30]) DAY FROM dao_treasuries WHERE ${isKnown} GROUP BY dao
      )
    )
  )
  GROUP BY dao
) AS t ON t.dao = d.key`

export const treasuryKindsRoute = defineList({
  operation: 'listDaoTreasuryKinds',
  path: '/data/daos/treasury/kinds',
  summary: 'The treasuries of DAOs by kind of asset',
  description:
    "For all live DAOs with treasury data, or those that `id` and `name` select: the value of the DAO's own tokens, of stablecoins and of everything else, and the value without the own tokens. The kinds add up to `valueUsd`. Sort by `-withoutOwnTokenUsd` for the largest treasuries that do not depend on their own token. Exact name matches come first, then by the token's market cap, largest first, then by name.",
  of: listedDaos,
  record,
  datasets: [daoTreasury, tokenPrices],
  name: 'dao-treasury-kinds',
  asOf: 't.newest.1',
  values: `d.id, d.name, t.newest.1, t.newest.2, t.newest.3, t.newest.4, t.newest.5, t.newest.6, t.newest.7, ${changeOf(2)}, ${changeOf(6)}, if(t.newest.9, NULL, true)`,
  joins: toKinds('true'),
  pastJoins: toKinds(isCurrentAt('observed_at', toStaleAt(0, daoTreasury))),
})
