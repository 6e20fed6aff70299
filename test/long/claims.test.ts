import { describe, it } from 'vitest'
import { delegationClaims, voteClaims } from '../support/claim-events.ts'
import { CLAIMS_SEED, expectTrueClaims } from '../support/claim-model.ts'
import { tradeClaims } from '../support/claim-trades.ts'

const ORDERS = 1000

describe('random orders of slots, ranges and faults', () => {
  const seeds = Array.from({ length: 10 }, (_, part) => CLAIMS_SEED + part * ORDERS)
  it.each(seeds)(`cover only hours whose trades were read: ${ORDERS} orders from CLAIMS_SEED=%d`, async (seed) => {
    console.log(`CLAIMS_SEED=${seed} CLAIMS_ORDERS=${ORDERS}`)
    await expectTrueClaims(tradeClaims, seed, { orders: ORDERS, leastClaims: 24 })
  })

  it.each([
    ['delegations', delegationClaims],
    ['governors', voteClaims],
  ])('%s: claim only readings whose events were read', async (_, subject) => {
    console.log(`CLAIMS_SEED=${CLAIMS_SEED} CLAIMS_ORDERS=${ORDERS}`)
    await expectTrueClaims(subject, CLAIMS_SEED, { orders: ORDERS, leastClaims: 2 })
  })
})
