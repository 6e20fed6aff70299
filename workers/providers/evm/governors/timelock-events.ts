import { decodeAbiParameters, parseAbi } from 'viem/utils'
import { createEventDecoder } from '../logs/events.ts'
import type { LogDecoder } from '../logs/follow.ts'
import type { RpcLog } from '../logs/node.ts'
import { toCallKey } from './operations.ts'

type Hex = `0x${string}`

/**
 * An event of an operation in a timelock. An operation of OpenZeppelin's TimelockController is a batch with an id and
 * has a delay (seconds) when it is scheduled. One of Compound's timelock is a call, which can be executed from `eta`
 * (Unix seconds) on.
 */
export interface TimelockEvent {
  readonly step: 'scheduled' | 'canceled' | 'executed'
  /** The id of a batch, or the key of a call (`toCallKey`). */
  readonly operation: string
  readonly delay?: bigint
  readonly eta?: bigint
}

const CALL_MEMBERS =
  '(bytes32 indexed txHash, address indexed target, uint256 value, string signature, bytes data, uint256 eta)'

const decoder = createEventDecoder(
  parseAbi([
    'event CallScheduled(bytes32 indexed id, uint256 indexed index, address target, uint256 value, bytes data, bytes32 predecessor, uint256 delay)',
    'event CallExecuted(bytes32 indexed id, uint256 indexed index, address target, uint256 value, bytes data)',
    'event Cancelled(bytes32 indexed id)',
    `event QueueTransaction${CALL_MEMBERS}`,
    `event ExecuteTransaction${CALL_MEMBERS}`,
    `event CancelTransaction${CALL_MEMBERS}`,
  ]),
)

const STEPS = {
  QueueTransaction: 'scheduled',
  ExecuteTransaction: 'executed',
  CancelTransaction: 'canceled',
} as const

/** The signature as bytes, because a text lacks bytes that are no UTF-8. */
const CALL_DATA = [{ type: 'uint256' }, { type: 'bytes' }, { type: 'bytes' }, { type: 'uint256' }] as const

export const TIMELOCK_TOPICS: readonly string[] = decoder.topics

/** Both kinds of timelocks have different events, so one decoder reads both. */
export const timelockDecoder: LogDecoder<TimelockEvent> = {
  faultOf: decoder.faultOf,
  decode: (log: RpcLog) => {
    const event = decoder.decode(log)
    if (event === undefined) return undefined
    switch (event.eventName) {
      case 'CallScheduled':
        return { step: 'scheduled', operation: event.args.id, delay: event.args.delay }
      case 'CallExecuted':
        return { step: 'executed', operation: event.args.id }
      case 'Cancelled':
        return { step: 'canceled', operation: event.args.id }
      default: {
        const [value, signature, data, eta] = decodeAbiParameters(CALL_DATA, log.data as Hex)
        const operation = toCallKey({ target: event.args.target, value, signature, data })
        return { step: STEPS[event.eventName], operation, eta }
      }
    }
  },
}
