import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem/utils'
import { z } from 'zod'
import type { GOVERNOR_COUNTED } from '../../../../shared/registry/schema.ts'
import { type JobState, recall } from '../../../job/state.ts'
import type { Node } from '../logs/node.ts'
import { callContracts, isTransient } from './contract-calls.ts'
import type { OwnedGovernor } from './rows.ts'

const abi = parseAbi(['function COUNTING_MODE() pure returns (string)'])
const DATA = encodeFunctionData({ abi })

const modes = z.record(z.string(), z.string())

/** Longest text of a mode; a contract may return any. */
const MOST_CHARACTERS = 500

/** The text of the mode; empty if the contract has none. */
function decodeMode(data: unknown): string {
  if (typeof data !== 'string' || data.length > 10_000) return ''
  try {
    return decodeFunctionResult({ abi, data: data as `0x${string}` }).slice(0, MOST_CHARACTERS)
  } catch {
    // Any data that is not a text: the contract has no such view.
    return ''
  }
}

/** The votes that count towards the quorum, as a mode states; undefined if the mode has another form. */
export function toQuorumCounts(mode: string): (typeof GOVERNOR_COUNTED)[number] | undefined {
  const quorums = new URLSearchParams(mode).getAll('quorum').sort().join(' ')
  if (quorums === 'bravo') return 'for'
  if (quorums === 'for,abstain') return 'for+abstain'
  return quorums === 'against,abstain for,abstain' ? 'larger+abstain' : undefined
}

/** Whether the parameters of a vote divide its power. */
export const isFractional = (mode: string): boolean => new URLSearchParams(mode).get('params') === 'fractional'

/**
 * Reads how governors count if the registry does not state it: `COUNTING_MODE()`, once for each contract, because it is a
 * constant of its code. Returns the governors with the mode of their votes, and the votes of their quorums by address.
 */
export async function readCountingModes<G extends OwnedGovernor>(
  node: Node,
  governors: readonly G[],
  { chain, state }: { readonly chain: string; readonly state: JobState },
  signal: AbortSignal,
) {
  const key = `modes.${chain}`
  const known = new Map(Object.entries((await recall(state, key, modes)) ?? {}))
  const isOpen = ({ family, counted }: G) => family === 'openzeppelin' && counted === undefined
  const asked = governors.filter((one) => isOpen(one) && !known.has(one.address))
  const replies = await callContracts(
    node,
    asked.map(({ address }) => ({ to: address, data: DATA })),
    signal,
  )
  for (const [at, { address }] of asked.entries()) {
    const reply = replies[at]
    if (reply !== undefined && !isTransient(reply)) known.set(address, 'data' in reply ? decodeMode(reply.data) : '')
  }
  if (asked.length > 0) state.set(key, JSON.stringify(Object.fromEntries(known)))
  const modeOf = (one: G) => (isOpen(one) ? (known.get(one.address) ?? '') : '')
  return {
    governors: governors.map((one): G => {
      return one.counting === undefined && isFractional(modeOf(one)) ? { ...one, counting: 'fractional' } : one
    }),
    counts: new Map(
      governors.flatMap((one) => {
        const counts = toQuorumCounts(modeOf(one))
        return counts === undefined ? [] : [[one.address, counts] as const]
      }),
    ),
  }
}
