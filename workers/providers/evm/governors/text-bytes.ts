import type { AbiEvent } from 'viem'
import { decodeAbiParameters, keccak256, toBytes, toEventSelector } from 'viem/utils'
import type { RpcLog } from '../logs/node.ts'

type Hex = `0x${string}`

/** The bytes of the texts that contracts hash; a member is undefined if the event does not have it. */
interface TextBytes {
  readonly signatures?: readonly Hex[]
  readonly description?: Hex
}
type TextReader = (log: Pick<RpcLog, 'topics' | 'data'>) => TextBytes

/** Texts and bytes have the same encoding. */
const AS_BYTES: Readonly<Record<string, string>> = { signatures: 'bytes[]', description: 'bytes' }

/**
 * Creates a reader of the bytes of the signatures and the description in an event, because contracts hash the bytes. The
 * library's texts lack leading zero bytes and byte order marks, and have replacements for bytes that are no UTF-8.
 */
export function createTextReader(events: readonly AbiEvent[]): TextReader {
  const versions = events
    .filter(({ inputs }) => inputs.some(({ name }) => name !== undefined && name in AS_BYTES))
    .map((event) => {
      const unindexed = event.inputs.filter(({ indexed }) => indexed !== true)
      return {
        topic: toEventSelector(event),
        words: event.inputs.length - unindexed.length,
        inputs: unindexed.map((input) => ({ ...input, type: AS_BYTES[input.name ?? ''] ?? input.type })),
      }
    })
  return ({ topics: [selector, ...words], data }) => {
    const version = versions.find(({ topic, words: count }) => topic === selector && count === words.length)
    if (version === undefined) return {}
    const values = decodeAbiParameters(version.inputs, data as Hex)
    return Object.fromEntries(
      version.inputs.flatMap(({ name }, at) => (name !== undefined && name in AS_BYTES ? [[name, values[at]]] : [])),
    )
  }
}

const toText = (bytes: Hex) => Buffer.from(bytes.slice(2), 'hex').toString('utf8')

/** Sets the signature of an action from its bytes. */
export function withSignature(action: GovernorAction, bytes: Hex | undefined): GovernorAction {
  if (bytes === undefined) return action
  const signature = toText(bytes)
  return { ...action, signature, ...(isText(signature, bytes) ? {} : { signatureBytes: bytes }) }
}

/** Returns whether the bytes are those of the text. */
export const isText = (text: string, bytes: Hex): boolean =>
  Buffer.from(text, 'utf8').equals(Buffer.from(bytes.slice(2), 'hex'))

/** A call that a proposal makes when it is executed. */
export interface GovernorAction {
  readonly target: string
  /** In wei. */
  readonly value: bigint
  /** The function, such as `transfer(address,uint256)`; empty if the calldata begins with its selector. */
  readonly signature: string
  /** The bytes of a signature that are no UTF-8, so that its text has another hash. */
  readonly signatureBytes?: Hex
  readonly calldata: string
}

export const toSignatureBytes = ({ signature, signatureBytes }: GovernorAction): Uint8Array =>
  signatureBytes === undefined ? Buffer.from(signature, 'utf8') : toBytes(signatureBytes)

/** Returns the calldata as it is executed: after a signature, contracts put its selector before the calldata. */
export function toExecuted(action: GovernorAction): Hex {
  const calldata = action.calldata as Hex
  const signature = toSignatureBytes(action)
  return signature.length === 0 ? calldata : `${toSelector(signature)}${calldata.slice(2)}`
}

const toSelector = (signature: Uint8Array) => keccak256(signature).slice(0, 10) as Hex
