import { z } from 'zod'
import { DataError } from '../../../../shared/errors.ts'
import { isThrottled, type JsonRpc, type RpcError, type RpcReply } from '../rpc/json-rpc.ts'
import { createPager, type Pager, TooWide } from './log-pages.ts'
import { type PageRange, requestLogs, toHex, toResult } from './log-request.ts'

const quantity = z.string().regex(/^0x[0-9a-f]+$/i, 'must be a hex quantity')
const integer = quantity.transform(Number).refine(Number.isSafeInteger, 'must be a number of at most 53 bits')
const lowerCase = z.string().transform((text) => text.toLowerCase())
const address = lowerCase.pipe(z.string().regex(/^0x[0-9a-f]{40}$/, 'must be an address'))
const word = lowerCase.pipe(z.string().regex(/^0x[0-9a-f]{64}$/, 'must be 32 bytes'))

const block = z.object({ number: integer, timestamp: integer })
const rpcLog = z.object({
  address,
  topics: z.array(word),
  data: z.string().regex(/^0x(?:[0-9a-f]{64})*$/i, 'must be words of 32 bytes'),
  blockNumber: integer,
  transactionHash: word,
  logIndex: integer,
  // Optional members count as absent if they are invalid.
  transactionIndex: integer.optional().catch(undefined),
  blockTimestamp: integer.optional().catch(undefined),
  removed: z.boolean().catch(false),
})
/** Readable facts of an unreadable log: its contract and block. */
const logPlace = z.object({
  address: address.optional().catch(undefined),
  blockNumber: integer.optional().catch(undefined),
})
const transaction = z.object({ hash: word, from: address })

/** A log from a node, with the members that every node sends. */
export interface RpcLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly blockNumber: number
  readonly transactionHash: string
  readonly logIndex: number
  /** Index of its transaction in the block, if the node sends it. */
  readonly transactionIndex?: number | undefined
  /** Unix seconds, if the node sends it. */
  readonly blockTimestamp: number | undefined
  readonly removed: boolean
  /**
   * Why the log cannot be read. If set, only its contract is known, and that its block is at or after `blockNumber`.
   */
  readonly fault?: string
}

/** Filter of logs: contract addresses in lower case, and the first topics of the events. */
export interface LogFilter {
  readonly addresses: readonly string[]
  readonly topics: readonly string[]
}

/** A block's number and its time in Unix seconds. */
export type Block = z.infer<typeof block>

/** Results by key, or the error for that key. */
export type Found<K, T> = ReadonlyMap<K, T | DataError>

/**
 * Reads of contract logs from a node. Every call throws a DataError: `provider_unavailable` if the node has no
 * capacity; `provider_rejected` if it refuses; `provider_unconfigured` for logs that it no longer has;
 * `provider_malformed` for an unexpected response. A missing or unreadable block, sender or log affects only itself:
 * the result contains the error in its place.
 */
export interface Node {
  readonly rpc: JsonRpc
  /** Tracks how many blocks the node accepts per page. */
  readonly pager: Pager
  /** Returns the newest final block. */
  finalized(signal: AbortSignal): Promise<Block>
  /** The blocks of these numbers. */
  blocks(numbers: readonly number[], signal: AbortSignal): Promise<Found<number, Block>>
  /**
   * Returns logs of these contracts between two blocks, both inclusive; `last` marks a single block, as in `ReadPage`.
   */
  logs(
    filter: LogFilter,
    range: { readonly from: number; readonly to: number; readonly last: boolean },
    signal: AbortSignal,
  ): Promise<readonly RpcLog[] | TooWide>
  /** Returns the senders of the logs' transactions, by transaction hash. */
  senders(logs: readonly RpcLog[], signal: AbortSignal): Promise<Found<string, string>>
}

/** If a node does not support the `finalized` tag, blocks this far behind its newest one are treated as final. */
const UNFINALIZED_BLOCKS = 12
/** Errors of nodes that do not support the tag: invalid number, unknown block, or unsupported chain. */
const UNKNOWN_TAG_CODES: ReadonlySet<number> = new Set([-32602, -39001])
const UNKNOWN_TAG = /finalized|\btag\b|invalid (?:argument|params?|block)|hex string|not supported|unsupported/i
const isUnknownTag = ({ code, message }: RpcError) => UNKNOWN_TAG_CODES.has(code) || UNKNOWN_TAG.test(message)

/**
 * Blocks become final after a quarter of an hour. If a node's newest block is older than this, its data is not up to
 * date with the slot.
 */
const LONGEST_LAG_MS = 3_600_000

/** No EVM chain has an earlier block, except Ethereum's first one, which has no time. */
const EARLIEST_SECONDS = Date.parse('2015-07-30T00:00:00Z') / 1000
/** Tolerance for a node's clock running ahead. */
const MOST_AHEAD_MS = 10 * 60_000

const toBlockCall = (tag: string, isFull = false) => ({ method: 'eth_getBlockByNumber', params: [tag, isFull] })

/** `now` is the wall clock in Unix milliseconds. */
export function createNode(rpc: JsonRpc, now: () => number = Date.now): Node {
  /** Returns whether a block time in Unix seconds is plausible. All block times are validated here. */
  const isTime = (seconds: number) => seconds >= EARLIEST_SECONDS && seconds * 1000 <= now() + MOST_AHEAD_MS
  return {
    rpc,
    pager: createPager(),
    finalized: (signal) => fetchFinalized(rpc, isTime, signal),
    blocks: (numbers, signal) => fetchBlocks(rpc, numbers, isTime, signal),
    logs: (filter, range, signal) => fetchLogs(rpc, filter, range, isTime, signal),
    senders: (logs, signal) => fetchSenders(rpc, logs, signal),
  }
}

type IsTime = (seconds: number) => boolean

/**
 * Returns an error if a node's newest block (Unix seconds) lags behind the slot (Unix milliseconds), or undefined if it
 * is up to date.
 */
export function toLag({ name }: JsonRpc, timestamp: number, slot: number): DataError | undefined {
  if (slot - timestamp * 1000 <= LONGEST_LAG_MS) return undefined
  return new DataError('provider_unavailable', `${name}: the node lags behind`)
}

/** Returns the result of `read`, or the DataError that it throws. */
function attempt<T>(read: () => T): T | DataError {
  try {
    return read()
  } catch (error) {
    if (error instanceof DataError) return error
    throw error
  }
}

/**
 * Rejects a null for something the node itself reported. Several nodes may share one address, and some of them may lag.
 */
function toPresent<T>(rpc: JsonRpc, value: T | null, what: string): T {
  if (value !== null) return value
  throw new DataError('provider_unavailable', `${rpc.name}: the node does not have ${what} yet`)
}

/** Returns the block if its time is plausible. @throws DataError `provider_malformed` otherwise. */
function checkTime({ name }: JsonRpc, one: Block, isTime: IsTime): Block {
  if (isTime(one.timestamp)) return one
  throw new DataError(
    'provider_malformed',
    `${name}: block ${one.number} has the time ${one.timestamp}, which cannot be`,
  )
}

async function fetchFinalized(rpc: JsonRpc, isTime: IsTime, signal: AbortSignal): Promise<Block> {
  const reply = await rpc.call(toBlockCall('finalized'), signal)
  const isUnknown = 'error' in reply && !isThrottled(reply.error) && isUnknownTag(reply.error)
  const final = isUnknown ? null : toResult(rpc, block.nullable(), 'finalized', reply)
  if (final !== null) return checkTime(rpc, final, isTime)
  const headReply = await rpc.call({ method: 'eth_blockNumber', params: [] }, signal)
  const head = toResult(rpc, integer, 'eth_blockNumber', headReply)
  const number = Math.max(0, head - UNFINALIZED_BLOCKS)
  const assumed = (await fetchBlocks(rpc, [number], isTime, signal)).get(number)
  if (assumed instanceof DataError) throw assumed
  return toPresent(rpc, assumed ?? null, 'its newest block')
}

async function fetchBlocks(
  rpc: JsonRpc,
  numbers: readonly number[],
  isTime: IsTime,
  signal: AbortSignal,
): Promise<Found<number, Block>> {
  const replies = await rpc.batch(
    numbers.map((number) => toBlockCall(toHex(number))),
    signal,
  )
  const read = (reply: RpcReply, number: number) => {
    const found = toResult(rpc, block.nullable(), 'eth_getBlockByNumber', reply)
    const present = toPresent(rpc, found, `block ${number}`)
    if (present.number === number) return checkTime(rpc, present, isTime)
    throw new DataError('provider_malformed', `${rpc.name}: block ${present.number} in place of block ${number}`)
  }
  return new Map(numbers.map((number, at) => [number, attempt(() => read(replies[at] ?? NOTHING, number))]))
}

const NOTHING: RpcReply = { result: null }

/**
 * Reads transactions by hash. If a node has no index of them, or not yet, they are read by block and position, and then
 * from the whole block.
 */
async function fetchSenders(
  rpc: JsonRpc,
  logs: readonly RpcLog[],
  signal: AbortSignal,
): Promise<Found<string, string>> {
  const places = new Map(logs.map((log) => [log.transactionHash, log]))
  const found = new Map<string, string | DataError>()
  // A throttled node gets no further requests.
  const throttled = new Set<string>()
  for (const [method, toCall] of SENDER_SOURCES) {
    const open = [...places.values()].flatMap((log) => {
      const { transactionHash } = log
      const isOpen = typeof found.get(transactionHash) !== 'string' && !throttled.has(transactionHash)
      const call = isOpen ? toCall(log) : undefined
      return call === undefined ? [] : [{ log, call: { method, params: call } }]
    })
    if (open.length === 0) continue
    const replies = await rpc.batch(
      open.map(({ call }) => call),
      signal,
    )
    for (const [at, { log }] of open.entries()) {
      const reply = replies[at] ?? NOTHING
      if ('error' in reply && isThrottled(reply.error)) throttled.add(log.transactionHash)
      const sender = attempt(() => readSender(rpc, method, reply, log))
      // The first refusal has the most specific reason.
      if (typeof sender === 'string' || !found.has(log.transactionHash)) found.set(log.transactionHash, sender)
    }
  }
  return found
}

/** Methods to find a sender, in this order; undefined parameters if the log lacks the needed members. */
const SENDER_SOURCES: readonly [method: string, toCall: (log: RpcLog) => readonly unknown[] | undefined][] = [
  ['eth_getTransactionByHash', ({ transactionHash }) => [transactionHash]],
  [
    'eth_getTransactionByBlockNumberAndIndex',
    ({ blockNumber, transactionIndex }) =>
      transactionIndex === undefined ? undefined : [toHex(blockNumber), toHex(transactionIndex)],
  ],
  ['eth_getBlockByNumber', ({ blockNumber }) => toBlockCall(toHex(blockNumber), true).params],
]

const fullBlock = z.object({ transactions: z.array(z.unknown()) })

function readSender(rpc: JsonRpc, method: string, reply: RpcReply, { transactionHash, blockNumber }: RpcLog): string {
  const what = `transaction ${transactionHash} of block ${blockNumber}`
  const found = toPresent(rpc, toResult(rpc, z.unknown(), method, reply) ?? null, what)
  const all = fullBlock.safeParse(found).data?.transactions ?? [found]
  const own = all.find((one) => transactionHashOf(one) === transactionHash) ?? null
  return toResult(rpc, transaction, method, { result: toPresent(rpc, own, what) }).from
}

const transactionHashOf = (one: unknown) => z.object({ hash: lowerCase }).safeParse(one).data?.hash

async function fetchLogs(
  rpc: JsonRpc,
  filter: LogFilter,
  range: PageRange,
  isTime: IsTime,
  signal: AbortSignal,
): Promise<readonly RpcLog[] | TooWide> {
  const { addresses, topics } = filter
  const reply = await requestLogs(rpc, { address: addresses, topics: [topics] }, range, signal)
  if (reply instanceof TooWide) return reply
  const elements = toResult(rpc, z.array(z.unknown()), 'eth_getLogs', reply)
  const found = elements.map((element) => readLog(element, filter, range, isTime))
  if (found.some((log) => log === undefined)) return fetchHalves(rpc, filter, range, isTime, signal)
  const own = new Set(addresses)
  return found.flatMap((log) => (log !== undefined && own.has(log.address) ? [log] : []))
}

/** Splits the contracts to identify the contract of an unreadable log. */
async function fetchHalves(
  rpc: JsonRpc,
  { addresses, topics }: LogFilter,
  range: PageRange,
  isTime: IsTime,
  signal: AbortSignal,
): Promise<readonly RpcLog[] | TooWide> {
  const middle = addresses.length >> 1
  const found: RpcLog[] = []
  for (const half of [addresses.slice(0, middle), addresses.slice(middle)]) {
    const page = await fetchLogs(rpc, { addresses: half, topics }, range, isTime, signal)
    if (page instanceof TooWide) return page
    for (const log of page) found.push(log)
  }
  return found
}

const OUT_OF_RANGE = { path: ['blockNumber'], message: 'not a block of the requested range' }

/** Parses one log. An unreadable log has a fault; undefined if its contract is unknown. */
function readLog(
  element: unknown,
  { addresses }: LogFilter,
  { from, to }: PageRange,
  isTime: IsTime,
): RpcLog | undefined {
  const { data: log, error } = rpcLog.safeParse(element)
  const isInRange = log !== undefined && log.blockNumber >= from && log.blockNumber <= to
  if (isInRange) {
    const { blockTimestamp: time } = log
    return { ...log, blockTimestamp: time !== undefined && isTime(time) ? time : undefined }
  }
  const place = logPlace.safeParse(element).data ?? {}
  const owner = place.address ?? (addresses.length === 1 ? addresses[0] : undefined)
  if (owner === undefined) return undefined
  const { blockNumber = from } = place
  const [issue] = error?.issues ?? [OUT_OF_RANGE]
  return {
    address: owner,
    blockNumber: blockNumber >= from && blockNumber <= to ? blockNumber : from,
    ...{ topics: [], data: '0x', transactionHash: '', logIndex: 0, blockTimestamp: undefined, removed: false },
    fault: `${issue?.path.join('.') || 'log'}: ${issue?.message}`,
  }
}
