import { z } from 'zod'
import { tokenHolders } from '../../../../shared/datasets/holders.ts'
import { numberOrNull, timeValue, uint64 } from '../../../records/values.ts'
import { defineDailySeries, ONLY_DAYS, TOKEN } from '../../../series/daily.ts'

/** The first snapshot of each day. */
const FIRST_OF_DAYS = `(
  SELECT token, toDateTime64(toStartOfDay(observed_at, 'UTC'), 3, 'UTC') AS day, observed_at, total_holders, top100_share,
    holders.share AS shares, holders.address AS addresses
  FROM token_holders FINAL
  WHERE token = {entity: UInt64}
  ORDER BY observed_at
  LIMIT 1 BY day
)`

/** Rounded as the share of the hundred is stored, so that no rounding error shows. */
const TOP_10 = 'round(arraySum(arraySlice(shares, 1, 10)), 10)'

/** The treasuries of the token's DAO; none where the registry knows no address. */
const TREASURIES = `(
  SELECT groupArrayArray(treasury_addresses) FROM daos FINAL
  WHERE key = (SELECT any(dao_key) FROM tokens FINAL WHERE key = {entity: UInt64})
)`

/** Nobody has the keys of these: what is sent there is out of the world. */
const BURNED = `['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']`

const OWN_CONTRACT = '(SELECT groupArray(contract_address) FROM tokens FINAL WHERE key = {entity: UInt64})'

const toShare = (owners: string) =>
  `round(arraySum(arrayMap((share, address) -> if(has(${owners}, address), share, 0), shares, addresses)), 10)`

export const holdersHistoricRoute = defineDailySeries({
  operation: 'getTokenHoldersHistory',
  path: '/data/tokens/holders/historic',
  summary: 'How many held a token, and how much the largest of them, over time',
  description:
    'One point per day, newest first: the first snapshot of the day. A day without a snapshot is absent. Shares are in percent of the total supply. Those by label are of the hundred largest: what the registry knows of their addresses, of which exchanges are none. `limit` is in points.',
  of: TOKEN,
  intervals: ONLY_DAYS,
  // Snapshots come hourly where a plan allows it; this series has a new point a day.
  dataset: { ...tokenHolders, cadence: '1d' },
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The day: its first moment.'),
      totalHolders: uint64.describe('Addresses that held the token.'),
      top10Share: z.number().describe('Percent of the total supply that the ten largest held together.'),
      top100Share: z.number().describe('Percent of the total supply that the hundred largest held together.'),
      treasuryShare: numberOrNull.describe(
        "What the treasuries of the token's DAO held of it, of the hundred largest; null where no address of them is known.",
      ),
      contractShare: z.number().describe("What the token's own contract held of it, of the hundred largest."),
      burnShare: z.number().describe('What was sent to the addresses 0x0…0 and 0x0…dead, of the hundred largest.'),
    })
    .meta({ id: 'HoldersPoint', description: 'Who held a token on one day.' }),
  rows: FIRST_OF_DAYS,
  values: `total_holders, ${TOP_10}, top100_share, if(empty(${TREASURIES}), NULL, ${toShare(TREASURIES)}),
    ${toShare(OWN_CONTRACT)}, ${toShare(BURNED)}`,
})
