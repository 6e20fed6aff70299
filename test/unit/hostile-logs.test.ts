import { toEventSelector } from 'viem/utils'
import { expect, it } from 'vitest'
import type { Governor } from '../../shared/registry/entities.ts'
import { GOVERNOR_FAMILIES } from '../../shared/registry/schema.ts'
import { familyOf } from '../../workers/providers/evm/governors/families.ts'
import { toRows } from '../../workers/providers/evm/governors/rows.ts'
import { countCases, SEED } from '../support/cases.ts'
import { createRandom } from '../support/random.ts'

const CASES = countCases(40)

/** Its event has no meaning for a proposal, so it has neither a row nor a fault. */
const WITHOUT_MEANING = toEventSelector('ProposalTypeUpdated(uint256,uint8)')

it.each(GOVERNOR_FAMILIES)(`logs of %s with any topics and data have rows or a fault (seed ${SEED})`, (family) => {
  const random = createRandom(SEED).below
  // Small words look like lengths and offsets.
  const word = () =>
    random(2) === 0
      ? (32 * random(12)).toString(16).padStart(64, '0')
      : Array.from({ length: 64 }, () => random(16).toString(16)).join('')
  const { topics, decode, faultOf } = familyOf({ family })
  const governor = {
    ...{ dao: 1, chain: 'ethereum', address: `0x${'1'.repeat(40)}`, family, fromBlock: 0, decimals: 18 },
    ...{ space: 'eip155:1:0x1', proposalSpace: 'eip155:1:0x1' },
  } satisfies Governor & { dao: number }
  for (const topic of topics) {
    for (let at = 0; at < CASES; at += 1) {
      const words = Array.from({ length: random(5) }, () => `0x${word()}`)
      const data = `0x${Array.from({ length: random(20) }, word).join('')}`
      const log = {
        ...{ address: governor.address, topics: [topic, ...words], data, blockNumber: 1, logIndex: at },
        ...{ transactionHash: `0x${'2'.repeat(64)}`, blockTimestamp: undefined, removed: false },
      }
      const event = decode(log)
      if (event !== undefined) {
        expect(faultOf(log)).toBeUndefined()
        if (event.kind !== 'timelock')
          expect(() => toRows([{ governor, event, log, time: 1_700_000_000 }])).not.toThrow()
      } else if (words.length > 3) expect(faultOf(log)).toMatch(/topics/)
      else if (topic !== WITHOUT_MEANING) expect(faultOf(log)).toMatch(/topics|data of/)
    }
  }
})
