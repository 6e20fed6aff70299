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
  /** Returns why a log of one of these events cannot be decoded; undefined for any other log. */
  faultOf(log: Pick<RpcLog, 'topics' | 'data'>): string | undefined
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
  const find = (selector: string | undefined, words: number) =>
    byTopic.get(selector as Hex)?.find(({ indexed }) => indexed.length === words)
  const decode: EventDecoder<Events>['decode'] = ({ topics: [selector, ...words], data }) => {
    const found = find(selector, words.length)
    if (found === undefined) return undefined
    const { event, indexed, unindexed } = found
    try {
      const values = [
        ...indexed.flatMap((one, at) => decodeAbiParameters([one], words[at] as Hex)),
        ...(unindexed.length === 0 ? [] : decodeAbiParameters(unindexed, data as Hex)),
      ]
      const members = [...indexed, ...unindexed]
      if (!members.every(({ type }, at) => fitsType(type, values[at]))) return undefined
      const args = Object.fromEntries(members.map(({ name }, at) => [name, values[at]]))
      return { eventName: event.name, args } as DecodeEventLogReturnType<Events>
    } catch {
      // The data does not fit.
      return undefined
    }
  }
  return {
    topics: [...byTopic.keys()],
    decode,
    faultOf: (log) => {
      const [selector, ...words] = log.topics
      const versions = byTopic.get(selector as Hex)
      const [version] = versions ?? []
      if (versions === undefined || version === undefined || decode(log) !== undefined) return undefined
      const { name } = version.event
      const counts = [...new Set(versions.map(({ indexed }) => indexed.length + 1))]
      if (!counts.includes(words.length + 1))
        return `${name} has ${words.length + 1} topics, known versions have ${counts.join(' or ')}`
      return `the data of ${name} is cut or does not fit`
    },
  }
}

/** Returns whether a number is one of its type: the library reads all 32 bytes of a small integer. */
function fitsType(type: string, value: unknown): boolean {
  const [, sign, bits] = /^(u?)int(\d+)$/.exec(type) ?? []
  if (bits === undefined || (typeof value !== 'bigint' && typeof value !== 'number')) return true
  const number = BigInt(value)
  return (sign === 'u' ? BigInt.asUintN(Number(bits), number) : BigInt.asIntN(Number(bits), number)) === number
}
