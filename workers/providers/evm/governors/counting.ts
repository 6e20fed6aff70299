import type { Governor } from '../../../../shared/registry/entities.ts'
import type { ProposalEvent } from './family.ts'

type CastVote = Extract<ProposalEvent, { kind: 'vote' }>

const FOR = 1
const AGAINST = 2
const ABSTAIN = 3
/** Choice numbers by the contracts' support value. Parameters have their parts in the same order. */
const NUMBERS: readonly number[] = [AGAINST, FOR, ABSTAIN]

/** How a logged vote counts. The powers together are at most its weight. */
export interface CountedVote {
  /** The power for each choice; empty if no choice is known. */
  readonly powers: readonly (readonly [choice: number, power: bigint])[]
  /** Whether its parameters divide its power. */
  readonly isSplit: boolean
  /** Why its parameters or its support value were not counted. */
  readonly fault?: string
}

/** Three 128-bit numbers: the parts for against, for and abstain. */
const PARTS = /^0x([0-9a-f]{32})([0-9a-f]{32})([0-9a-f]{32})$/i

const NOT_PARTS = 'params: not three parts of 16 bytes, so the vote counts for its support value'
const TOO_MUCH = 'params: the parts exceed the weight of the vote, so it counts for its support value'
const NO_CHOICE = 'support: not a choice of the contract, so the vote counts for none'

/**
 * Counts a vote on a governor with this number of choices. The voter writes the parameters, and a contract with plain
 * counting logs them without reading them. So they count only on a fractional governor, and only up to the weight.
 */
export function countVote(vote: CastVote, { counting }: Pick<Governor, 'counting'>, choices: number): CountedVote {
  if (counting !== 'fractional' || vote.params === '0x') return countWhole(vote, choices)
  const [, ...parts] = PARTS.exec(vote.params) ?? []
  if (parts.length === 0) return { ...countWhole(vote, choices), fault: NOT_PARTS }
  const powers = parts.map((part) => BigInt(`0x${part}`))
  if (powers.reduce((sum, power) => sum + power, 0n) > vote.weight)
    return { ...countWhole(vote, choices), fault: TOO_MUCH }
  const byChoice = powers.map((power, at) => [NUMBERS[at] ?? ABSTAIN, power] as const)
  return { powers: byChoice.filter(([, power]) => power > 0n), isSplit: true }
}

function countWhole({ support, weight }: CastVote, choices: number): CountedVote {
  const number = NUMBERS[support]
  if (number === undefined || number > choices) return { powers: [], isSplit: false, fault: NO_CHOICE }
  return { powers: [[number, weight]], isSplit: false }
}
