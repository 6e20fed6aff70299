import { expect, it } from 'vitest'
import { type DayFlow, sumFlows } from '../../api/flows/sums.ts'

const DAY = Date.UTC(2026, 4, 1)
const range = { from: DAY, to: DAY + 86_400_000 }

const toFlow = (more: Partial<DayFlow>): DayFlow => ({
  ...{ day: DAY, kind: 'spending', side: 'out', isSwapped: false, units: 1n, transfers: 1, priceUsd: 10 },
  ...more,
})
const ether = (days: readonly DayFlow[]) => ({ chain: 'ethereum', contract: '', symbol: 'ETH', decimals: 0, days })
const wrapped = (days: readonly DayFlow[]) => ({ ...ether(days), contract: '0x1', symbol: 'WETH' })

/** 2 ETH paid; 5 ETH wrapped, whose coin has no price; 7 ETH sent to a pool that answers in a later transaction. */
const ASSETS = [
  ether([
    toFlow({ units: 2n }),
    toFlow({ units: 5n, kind: 'investment', isSwapped: true }),
    toFlow({ units: 7n, kind: 'investment' }),
  ]),
  wrapped([toFlow({ units: 5n, kind: 'investment', isSwapped: true, side: 'in', priceUsd: null })]),
]

it('a wrap in one transaction is no payment: it is not in the total', () => {
  expect(sumFlows(ASSETS, { by: 'total', interval: '1d', range })).toMatchObject([
    { inUsd: 0, outUsd: 90, transfers: 2, transfersWithoutPrice: 0 },
  ])
})

it('a wrap is in the sums of its kind and of both assets', () => {
  expect(sumFlows(ASSETS, { by: 'kind', interval: '1d', range })).toMatchObject([
    { kind: 'investment', outUsd: 120, transfers: 3, transfersWithoutPrice: 1 },
    { kind: 'spending', outUsd: 20, transfers: 1 },
  ])
  expect(sumFlows(ASSETS, { by: 'asset', interval: '1d', range })).toMatchObject([
    { outQuantity: 14, inQuantity: 0 },
    { outQuantity: 0, inQuantity: 5 },
  ])
})
