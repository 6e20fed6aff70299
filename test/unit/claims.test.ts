import { it } from 'vitest'
import { countCases } from '../support/cases.ts'
import { CLAIMS_SEED, expectTrueClaims } from '../support/claim-model.ts'

const ORDERS = Number(process.env.CLAIMS_ORDERS ?? countCases(30))

it(`covers only hours whose trades were read, in ${ORDERS} random orders from CLAIMS_SEED=${CLAIMS_SEED}`, async () => {
  console.log(`CLAIMS_SEED=${CLAIMS_SEED} CLAIMS_ORDERS=${ORDERS}`)
  await expectTrueClaims(CLAIMS_SEED, ORDERS)
})

it('covers no hours that were not read after the state was lost while the node lagged behind its cursors', async () => {
  await expectTrueClaims(206001712, 1, 0)
})
