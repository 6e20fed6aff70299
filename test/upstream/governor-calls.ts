import { encodeAbiParameters, toFunctionSelector } from 'viem/utils'
import type { Governor } from '../../shared/registry/entities.ts'
import { type ContractCall, toWord } from './chain.ts'
import { RpcRefusal } from './providers/rpc-refusal.ts'

/** A governor as its views state it. Powers are in base units. */
export interface StatedGovernor extends Pick<Governor, 'family'> {
  /** The text of `COUNTING_MODE()`; it has no such view if absent. */
  readonly mode?: string
  /** The quorum of a proposal, by its id; `at` is the block's time in Unix milliseconds. */
  quorumOf(id: bigint, at: number): bigint | undefined
  /** The snapshot of a proposal, in the governor's clock; undefined for an unknown one. */
  snapshotOf(id: bigint): bigint | undefined
}

const selectorOf = (name: string) => toFunctionSelector(`function ${name}`)
const SNAPSHOT = selectorOf('proposalSnapshot(uint256)')
const QUORUM = selectorOf('quorum(uint256)')
const QUORUM_VOTES = selectorOf('quorumVotes()')
const QUORUM_VOTES_OF = selectorOf('quorumVotes(uint256)')
const GET_VOTE = selectorOf('getVote(uint256)')
const TORNADO_VOTES = selectorOf('QUORUM_VOTES()')
const MODE = selectorOf('COUNTING_MODE()')

const reverted = () => new RpcRefusal(3, 'execution reverted')

function stated(value: bigint | undefined): string {
  if (value === undefined) throw reverted()
  return `0x${toWord(value)}`
}

/** The views with a quorum, by family (docs/providers.md, section 10). */
const VIEWS: Readonly<Partial<Record<Governor['family'], readonly string[]>>> = {
  ...{ alpha: [QUORUM_VOTES], bravo: [QUORUM_VOTES], venus: [QUORUM_VOTES], tornado: [TORNADO_VOTES] },
  ...{ openzeppelin: [QUORUM], agora: [QUORUM], nouns: [QUORUM_VOTES_OF], aragon: [GET_VOTE] },
}

/** The answer of a governor to a call of one of its views. */
export function callGovernor(governor: StatedGovernor, { selector, words, at }: ContractCall): string {
  const argument = BigInt(`0x${words[0] ?? '0'}`)
  const { family, mode } = governor
  if (family === 'openzeppelin' && selector === SNAPSHOT) return stated(governor.snapshotOf(argument))
  if (selector === MODE && mode !== undefined) return encodeAbiParameters([{ type: 'string' }], [mode])
  if (VIEWS[family]?.includes(selector) !== true) throw reverted()
  const quorum = governor.quorumOf(argument, at)
  if (family !== 'aragon' || quorum === undefined) return stated(quorum)
  // A share of all power: the power is twice the quorum, and half of it is needed.
  const vote = [1n, 0n, 0n, 0n, 5n * 10n ** 17n, 5n * 10n ** 17n, 0n, 0n, 2n * quorum, 320n, 0n]
  return `0x${vote.map(toWord).join('')}`
}
