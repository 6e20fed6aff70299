import type { AbiEvent } from 'viem'
import { type DecodeEventLogReturnType, decodeAbiParameters, toEventSelector } from 'viem/utils'
import type { RpcLog } from './node.ts'

type Hex = `0x${string}`

/** Says which of some events a log is, and with what. */
export interface EventDecoder<Events extends readonly AbiEvent[]> {
  /** The events' first topics. */
  readonly topics: readonly Hex[]
  /** Undefined for a log that is none of the events, whatever its first topic says. */
  decode(log: Pick<RpcLog, 'topics' | 'data'>): DecodeEventLogReturnType<Events> | undefined
  /** Whether a log that is none of the events has all the topics of one: then its data was cut or changed on its way. */
  isCut(log: Pick<RpcLog, 'topics'>): boolean
}

const isIndexed = ({ indexed }: { indexed?: boolean | undefined }) => indexed === true

/** Types of which a topic has the value; of any other it has a hash (Solidity's ABI, "Events"). */
const ONE_WORD = /^(u?int\d*|address|bool|bytes\d+)$/

function requireReadable({ name, inputs }: AbiEvent): void {
  const names = inputs.map((one) => one.name)
  const unnamed = names.some((one) => one === undefined || one === '') || new Set(names).size < names.length
  if (unnamed) throw new Error(`the event ${name} has members without names of their own`)
  const hashed = inputs.find((one) => isIndexed(one) && !ONE_WORD.test(one.type))
  if (hashed) throw new Error(`of ${name} the topic of ${hashed.name} has no ${hashed.type} but its hash`)
}

/**
 * Of events whose members all have names, and are in topics only where they fit into one. Each event's signature is hashed
 * once. The library's decoder does it for every log, up to the one that fits: a vote took four times as long.
 * @throws Error for other events.
 */
export function createEventDecoder<const Events extends readonly AbiEvent[]>(events: Events): EventDecoder<Events> {
  const known = new Map(
    events.map((event) => {
      requireReadable(event)
      const indexed = event.inputs.filter(isIndexed)
      return [toEventSelector(event), { event, indexed, others: event.inputs.filter((one) => !isIndexed(one)) }]
    }),
  )
  return {
    topics: [...known.keys()],
    decode: ({ topics: [selector, ...words], data }) => {
      const found = known.get(selector as Hex)
      if (found === undefined || words.length < found.indexed.length) return undefined
      const { event, indexed, others } = found
      try {
        const values = [
          ...indexed.flatMap((one, at) => decodeAbiParameters([one], words[at] as Hex)),
          ...(others.length === 0 ? [] : decodeAbiParameters(others, data as Hex)),
        ]
        const args = Object.fromEntries([...indexed, ...others].map(({ name }, at) => [name, values[at]]))
        return { eventName: event.name, args } as DecodeEventLogReturnType<Events>
      } catch {
        // The data does not fit.
        return undefined
      }
    },
    isCut: ({ topics: [selector, ...words] }) => known.get(selector as Hex)?.indexed.length === words.length,
  }
}
