import { createHash } from 'node:crypto'
import { keccak256, toHex } from 'viem/utils'
import type { ChainLog } from './chain.ts'
import { encodeEvent } from './governor-logs.ts'

type Hex = `0x${string}`
type Encoded = Pick<ChainLog, 'topics' | 'data'>

/** A call as a proposal has it. */
export interface QueuedCall {
  readonly target: string
  readonly value: bigint
  readonly signature: string
  readonly data: Hex
}

const toWord = (value: bigint | number) => value.toString(16).padStart(64, '0')
const toBytesWords = (data: string) => {
  const digits = data.slice(2)
  return `${toWord(digits.length / 2)}${digits.padEnd(Math.ceil(digits.length / 64) * 64, '0')}`
}
const toBytesList = (list: readonly string[]) => {
  const tails = list.map(toBytesWords)
  let at = 32 * list.length
  const heads = tails.map((tail) => {
    const head = toWord(at)
    at += tail.length / 2
    return head
  })
  return [toWord(list.length), ...heads, ...tails].join('')
}
const toWords = (list: readonly (bigint | number)[]) => [toWord(list.length), ...list.map(toWord)].join('')

/**
 * The id of a batch as OpenZeppelin's TimelockController computes it, encoded word by word:
 * `keccak256(abi.encode(targets, values, payloads, predecessor, salt))`.
 */
export function hashOperationBatch(calls: readonly QueuedCall[], salt: bigint): Hex {
  const lists = [
    toWords(calls.map(({ target }) => BigInt(target))),
    toWords(calls.map(({ value }) => value)),
    toBytesList(calls.map(({ data }) => data)),
  ]
  let at = 5 * 32
  const heads = lists.map((list) => {
    const head = toWord(at)
    at += list.length / 2
    return head
  })
  return keccak256(`0x${[...heads, toWord(0), toWord(salt), ...lists].join('')}`)
}

/** The salt of a governor: the hash of the description, from version 5 on XOR its address in the first 20 bytes. */
export function toSalt(description: string | Buffer, governor?: string): bigint {
  const hash = BigInt(keccak256(typeof description === 'string' ? Buffer.from(description) : description))
  return governor === undefined ? hash : hash ^ BigInt(`${governor}${'0'.repeat(24)}`)
}

const ZERO: Hex = `0x${'0'.repeat(64)}`

export const encodeTimelockChange = (timelock: string): Encoded =>
  encodeEvent('event TimelockChange(address oldTimelock, address newTimelock)', [`0x${'0'.repeat(40)}`, timelock])

export const encodeScheduled = (id: Hex, { target, value, data }: QueuedCall, delay: bigint): Encoded =>
  encodeEvent(
    'event CallScheduled(bytes32 indexed id, uint256 indexed index, address target, uint256 value, bytes data, bytes32 predecessor, uint256 delay)',
    [id, 0n, target, value, data, ZERO, delay],
  )

export const encodeCallExecuted = (id: Hex, { target, value, data }: QueuedCall): Encoded =>
  encodeEvent(
    'event CallExecuted(bytes32 indexed id, uint256 indexed index, address target, uint256 value, bytes data)',
    [...[id, 0n, target, value, data]],
  )

export const encodeCancelled = (id: Hex): Encoded => encodeEvent('event Cancelled(bytes32 indexed id)', [id])

/** An event of Compound's timelock about a call; the id is no keccak hash, because nothing reads it. */
export const encodeTransaction = (
  kind: 'QueueTransaction' | 'CancelTransaction' | 'ExecuteTransaction',
  { target, value, signature, data }: QueuedCall,
  eta: bigint,
): Encoded =>
  encodeEvent(
    `event ${kind}(bytes32 indexed txHash, address indexed target, uint256 value, string signature, bytes data, uint256 eta)`,
    [toHex(createHash('sha256').update(`${target}${data}${eta}`).digest()), target, value, signature, data, eta],
  )

export const encodeQueued = (id: bigint, eta: bigint): Encoded =>
  encodeEvent('event ProposalQueued(uint256 id, uint256 eta)', [id, eta])
