import { describe, it } from 'vitest'
import { CLAIMS_SEED, expectTrueClaims } from '../support/claim-model.ts'

const ORDERS = 1000

describe('random orders of slots, ranges and faults', () => {
  const seeds = Array.from({ length: 10 }, (_, part) => CLAIMS_SEED + part * ORDERS)
  it.each(seeds)(`cover only hours whose trades were read: ${ORDERS} orders from CLAIMS_SEED=%d`, async (seed) => {
    console.log(`CLAIMS_SEED=${seed} CLAIMS_ORDERS=${ORDERS}`)
    await expectTrueClaims(seed, ORDERS)
  })
})
