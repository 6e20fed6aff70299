import { z } from 'zod'
import { daoTreasury, type HoldingKind } from '../../../../shared/datasets/treasury.ts'
import { numberOrNull, timeValue, uint32 } from '../../../../shared/record-values.ts'
import { defineDailySeries } from '../../../series/daily.ts'
import { IS_PARTIAL, isPartialMember } from '../treasury.ts'

/**
 * SQL for the value of the holdings of one kind: null if a row has no holdings, or no price for any of the kind; 0 if
 * there are none of the kind.
 */
const worthOf = (kind: HoldingKind) => {
  const values = `arrayMap(one -> one.value_usd, arrayFilter(one -> one.kind = '${kind}', holdings))`
  const sum = `arraySum(arrayMap(value -> ifNull(value, 0), ${values}))`
  return `if(empty(holdings) OR (notEmpty(${values}) AND arrayAll(value -> isNull(value), ${values})), NULL, ${sum})`
}

/** SQL for the value of each kind of holdings, from a stored row. */
export const TREASURY_VALUES = { own: worthOf('own'), stable: worthOf('stable'), other: worthOf('other') } as const

const part = (of: string) =>
  numberOrNull.describe(`Value of ${of} in US dollars; null if holdings were not stored, or none of these has a price.`)

export const treasuryHistoricRoute = defineDailySeries({
  operation: 'getDaoTreasuryHistory',
  path: '/data/daos/treasury/historic',
  summary: 'Value of the treasury of a DAO over time',
  description:
    'One point per day, newest first; days without a reading are absent. The three parts add up to `valueUsd`. Values from different sources are not comparable. `limit` is in points.',
  dataset: daoTreasury,
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      valueUsd: z.number().describe('Value of everything that had a price, in US dollars.'),
      ownTokenUsd: part("the DAO's own tokens"),
      stablecoinUsd: part("stablecoins, by this service's list of them,"),
      otherUsd: part('everything else'),
      assets: uint32.describe('How many assets were held, with a price or without.'),
      isPartial: isPartialMember,
    })
    .meta({ id: 'TreasuryPoint', description: 'The treasury of a DAO on one day.' }),
  values: `value_usd, ${TREASURY_VALUES.own}, ${TREASURY_VALUES.stable}, ${TREASURY_VALUES.other}, length(tokens), ${IS_PARTIAL}`,
})
