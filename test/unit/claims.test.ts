import { expect, it } from 'vitest'
import { runRandomOrder } from '../support/claim-model.ts'

/** Different each day; CLAIMS_SEED repeats a run. */
const SEED = Number(process.env.CLAIMS_SEED ?? Math.floor(Date.now() / 86_400_000) * 1000)
const ORDERS = Number(process.env.CLAIMS_ORDERS ?? 40)

it(`covers only hours whose trades were read, in ${ORDERS} random orders from CLAIMS_SEED=${SEED}`, async () => {
  console.log(`claims: CLAIMS_SEED=${SEED} CLAIMS_ORDERS=${ORDERS}`)
  let covered = 0
  for (let seed = SEED; seed < SEED + ORDERS; seed += 1) {
    const result = await runRandomOrder(seed)
    expect(result.falseClaims, `CLAIMS_SEED=${seed} CLAIMS_ORDERS=1:\n${result.events.join('\n')}`).toEqual([])
    expect(result.uncovered, `CLAIMS_SEED=${seed} CLAIMS_ORDERS=1:\n${result.events.join('\n')}`).toBe(0)
    covered += result.covered
  }
  expect(covered).toBeGreaterThan(ORDERS * 24)
})
