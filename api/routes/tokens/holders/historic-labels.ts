import { z } from 'zod'
import { numberOrNull, timeValue } from '../../../../shared/record-values.ts'
import { defineDailySeries } from '../../../series/daily.ts'
import { DAILY_HOLDERS } from '../../../series/daily-holders.ts'

/** Burn addresses without a known private key: tokens sent there are lost. */
const BURNED = `['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']`

/** The first snapshot of each day, with the token's contract and the treasuries of its DAO in the registry. */
const withLabels = (isOwner: string) => `(
  SELECT h.token AS token, h.day AS day, h.observed_at AS observed_at, h.shares AS shares, h.addresses AS addresses,
    [t.contract_address] AS contracts, d.treasury_addresses AS treasuries
  FROM ${DAILY_HOLDERS.rows(isOwner)} AS h
  LEFT JOIN (SELECT key, dao_key, contract_address FROM tokens FINAL WHERE key ${isOwner}) AS t ON t.key = h.token
  LEFT JOIN (SELECT key, treasury_addresses FROM daos FINAL) AS d ON d.key = t.dao_key
)`

const toShare = (owners: string) =>
  `round(arraySum(arrayMap((share, address) -> if(has(${owners}, address), share, 0), shares, addresses)), 10)`

export const holderLabelsHistoricRoute = defineDailySeries({
  ...DAILY_HOLDERS,
  rows: withLabels,
  operation: 'getTokenHolderLabelsHistory',
  path: '/data/tokens/holders/historic-labels',
  summary: 'Supply held by treasuries, token contract and burn addresses over time',
  description:
    'One point per day, newest first: the first snapshot of the day, as in `/data/tokens/holders/historic`. A day without a snapshot is absent. Shares are in percent of the total supply and cover the hundred largest holders, by the labels of addresses in the registry, which has no exchanges. `limit` is in points.',
  point: z
    .strictObject({
      recordedAt: timeValue.describe('The first moment of the day, in UTC.'),
      treasuryShare: numberOrNull.describe(
        "Percent of the total supply that the treasuries of the token's DAO held, of the hundred largest; null if no address of them is known.",
      ),
      contractShare: z
        .number()
        .describe(
          "Percent of the total supply held by the token's own contract, if it is among the hundred largest holders.",
        ),
      burnShare: z
        .number()
        .describe(
          'Percent of the total supply that was sent to the addresses 0x0…0 and 0x0…dead, of the hundred largest.',
        ),
    })
    .meta({ id: 'HolderLabelsPoint', description: 'How much of a token known addresses held on one day.' }),
  values: `if(empty(treasuries), NULL, ${toShare('treasuries')}), ${toShare('contracts')}, ${toShare(BURNED)}`,
})
