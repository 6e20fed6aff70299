import type { AbiEvent } from 'viem'
import { decodeAbiParameters, keccak256, toEventSelector } from 'viem/utils'
import type { RpcLog } from '../logs/node.ts'

type Hex = `0x${string}`
type SignatureReader = (log: Pick<RpcLog, 'topics' | 'data'>) => readonly Hex[]

const NAME = 'signatures'

/**
 * Creates a reader of the bytes of the signatures in an event, because contracts hash the bytes. The library's texts lack
 * leading zero bytes and byte order marks, and have replacements for bytes that are no UTF-8. The reader returns an empty
 * list for an event without signatures.
 */
export function createSignatureReader(events: readonly AbiEvent[]): SignatureReader {
  const versions = events
    .filter(({ inputs }) => inputs.some(({ name }) => name === NAME))
    .map((event) => {
      const unindexed = event.inputs.filter(({ indexed }) => indexed !== true)
      return {
        topic: toEventSelector(event),
        words: event.inputs.length - unindexed.length,
        place: unindexed.findIndex(({ name }) => name === NAME),
        // Texts and bytes have the same encoding.
        inputs: unindexed.map((input) => (input.name === NAME ? { ...input, type: 'bytes[]' } : input)),
      }
    })
  return ({ topics: [selector, ...words], data }) => {
    const version = versions.find(({ topic, words: count }) => topic === selector && count === words.length)
    if (version === undefined) return []
    return decodeAbiParameters(version.inputs, data as Hex)[version.place] as readonly Hex[]
  }
}

/** Sets the signature of an action from its bytes. */
export function withSignature(action: GovernorAction, hex: Hex | undefined): GovernorAction {
  if (hex === undefined) return action
  const bytes = Buffer.from(hex.slice(2), 'hex')
  const signature = bytes.toString('utf8')
  if (Buffer.from(signature, 'utf8').equals(bytes)) return { ...action, signature }
  return { ...action, signature, selector: keccak256(bytes).slice(0, 10) }
}

/** A call that a proposal makes when it is executed. */
export interface GovernorAction {
  readonly target: string
  /** In wei. */
  readonly value: bigint
  /** The function, such as `transfer(address,uint256)`; empty if the calldata begins with its selector. */
  readonly signature: string
  /** The selector of a signature whose bytes are no UTF-8, so that its text has another hash. */
  readonly selector?: string
  readonly calldata: string
}
