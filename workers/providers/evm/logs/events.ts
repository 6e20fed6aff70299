import type { AbiEvent } from 'viem'
import { type DecodeEventLogReturnType, decodeAbiParameters, toEventSelector } from 'viem/utils'
import { groupBy } from '../../../../shared/group-by.ts'
import type { RpcLog } from './node.ts'

type Hex = `0x${string}`

/** Decodes logs of a fixed set of events. */
export interface EventDecoder<Events extends readonly AbiEvent[]> {
  /** The events' first topics. */
  readonly topics: readonly Hex[]
  /** Returns undefined for any other log, even if its first topic matches. */
  decode(log: Pick<RpcLog, 'topics' | 'data'>): DecodeEventLogReturnType<Events> | undefined
  /** Returns whether an undecodable log has all topics of an event, so its data was truncated or changed. */
  isCut(log: Pick<RpcLog, 'topics'>): boolean
}

const isIndexed = ({ indexed }: { indexed?: boolean | undefined }) => indexed === true

/** Types whose value is stored in the topic; for other types, the topic is a hash (Solidity's ABI, "Events"). */
const ONE_WORD = /^(u?int\d*|address|bool|bytes\d+)$/

function requireReadable({ name, inputs }: AbiEvent): void {
  const names = inputs.map((one) => one.name)
  const unnamed = names.some((one) => one === undefined || one === '') || new Set(names).size < names.length
  if (unnamed) throw new Error(`the event ${name} has members without names of their own`)
  const hashed = inputs.find((one) => isIndexed(one) && !ONE_WORD.test(one.type))
  if (hashed) throw new Error(`of ${name} the topic of ${hashed.name} has no ${hashed.type} but its hash`)
}

/**
 * Creates a decoder for events whose members are all named, with only one-word types in topics. Each event's signature
 * is hashed once. The library's decoder hashes signatures for every log until one matches, which took four times as
 * long for a vote.
 * @throws Error for other events.
 */
export function createEventDecoder<const Events extends readonly AbiEvent[]>(events: Events): EventDecoder<Events> {
  const byTopic = groupBy(
    events.map((event) => {
      requireReadable(event)
      const indexed = event.inputs.filter(isIndexed)
      return { event, indexed, unindexed: event.inputs.filter((one) => !isIndexed(one)) }
    }),
    ({ event }) => toEventSelector(event),
  )
  // Versions of a contract may index other members of an event, which does not change its first topic.
  const find = (selector: string | undefined, words: number) => {
    const versions = byTopic.get(selector as Hex) ?? []
    return (
      versions.find(({ indexed }) => indexed.length === words) ?? versions.find(({ indexed }) => indexed.length < words)
    )
  }
  return {
    topics: [...byTopic.keys()],
    decode: ({ topics: [selector, ...words], data }) => {
      const found = find(selector, words.length)
      if (found === undefined) return undefined
      const { event, indexed, unindexed } = found
      try {
        const values = [
          ...indexed.flatMap((one, at) => decodeAbiParameters([one], words[at] as Hex)),
          ...(unindexed.length === 0 ? [] : decodeAbiParameters(unindexed, data as Hex)),
        ]
        const args = Object.fromEntries([...indexed, ...unindexed].map(({ name }, at) => [name, values[at]]))
        return { eventName: event.name, args } as DecodeEventLogReturnType<Events>
      } catch {
        // The data does not fit.
        return undefined
      }
    },
    isCut: ({ topics: [selector, ...words] }) => find(selector, words.length)?.indexed.length === words.length,
  }
}
