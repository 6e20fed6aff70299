import { encodeAbiParameters, keccak256, toBytes, toHex } from 'viem/utils'
import type { ProposalEvent } from './family.ts'
import { type GovernorAction, toExecuted, toSignatureBytes } from './text-bytes.ts'

type Hex = `0x${string}`
type Created = Extract<ProposalEvent, { kind: 'created' }>

const BATCH = [
  { type: 'address[]' },
  { type: 'uint256[]' },
  { type: 'bytes[]' },
  { type: 'bytes32' },
  { type: 'bytes32' },
] as const
const CALL = [{ type: 'address' }, { type: 'uint256' }, { type: 'bytes' }, { type: 'bytes' }] as const

const NO_PREDECESSOR: Hex = `0x${'0'.repeat(64)}`

/**
 * Returns the ids under which OpenZeppelin's TimelockController may have the calls of a proposal: `hashOperationBatch`
 * with the hash of the description as salt, and from version 5 on with that hash XOR the governor's address. Empty for a
 * proposal without calls.
 */
export function toOperationIds(governor: string, { actions, description, descriptionBytes }: Created): Hex[] {
  if (actions.length === 0) return []
  const salt = keccak256(descriptionBytes === undefined ? Buffer.from(description, 'utf8') : toBytes(descriptionBytes))
  // The address is in the first 20 of the 32 bytes.
  const ownSalt = toHex(BigInt(salt) ^ (BigInt(governor) << 96n), { size: 32 })
  const calls = [
    actions.map(({ target }) => target as Hex),
    actions.map(({ value }) => value),
    actions.map(toExecuted),
  ] as const
  return [salt, ownSalt].map((one) => keccak256(encodeAbiParameters(BATCH, [...calls, NO_PREDECESSOR, one])))
}

/** A call as Compound's timelock has it. */
interface TimelockCall {
  readonly target: string
  readonly value: bigint
  readonly signature: Hex
  readonly data: Hex
}

/**
 * Returns a hash of a call in Compound's timelock. The id of the contract also depends on the time at which the call can
 * be executed, which a proposal gets when it is queued.
 */
export const toCallKey = ({ target, value, signature, data }: TimelockCall): Hex =>
  keccak256(encodeAbiParameters(CALL, [target as Hex, value, signature, data]))

/** Returns the keys of the calls of a proposal, each once. */
export const toCallKeys = (actions: readonly GovernorAction[]): Hex[] => [
  ...new Set(
    actions.map((action) =>
      toCallKey({
        ...{ target: action.target, value: action.value, data: action.calldata as Hex },
        signature: toHex(toSignatureBytes(action)),
      }),
    ),
  ),
]
