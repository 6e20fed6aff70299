import { describe, it } from 'vitest'
import { countCases } from '../support/cases.ts'
import { delegationClaims, voteClaims } from '../support/claim-events.ts'
import { CLAIMS_SEED, expectTrueClaims } from '../support/claim-model.ts'
import { tradeClaims } from '../support/claim-trades.ts'

const ORDERS = Number(process.env.CLAIMS_ORDERS ?? countCases(10))

describe(`${ORDERS} random orders from CLAIMS_SEED=${CLAIMS_SEED}`, () => {
  it('dex-trades: cover only hours whose trades were read', async () => {
    await expectTrueClaims(tradeClaims, CLAIMS_SEED, { orders: ORDERS, leastClaims: 24 })
  })

  it.each([
    ['delegations', delegationClaims],
    ['governors', voteClaims],
  ])('%s: claim only readings whose events were read', async (_, subject) => {
    await expectTrueClaims(subject, CLAIMS_SEED, { orders: ORDERS, leastClaims: 2 })
  })
})

it('covers no hours that were not read after the state was lost while the node lagged behind its cursors', async () => {
  await expectTrueClaims(tradeClaims, 206001712, { orders: 1, leastClaims: 0 })
})
