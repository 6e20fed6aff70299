import { z } from 'zod'
import { DataError } from '../../../../shared/errors.ts'
import { BodyTooLarge } from '../../../http/body.ts'
import { checkAnswer } from '../../answer.ts'
import {
  isThrottled,
  type JsonRpc,
  type RpcError,
  type RpcReply,
  type SendOptions,
  toRpcError,
} from '../rpc/json-rpc.ts'
import { createPager, type Pager, TooWide } from './log-pages.ts'
import { readRefusal } from './refusal.ts'

const quantity = z.string().regex(/^0x[0-9a-f]+$/i, 'must be a hex quantity')
const wholeNumber = quantity.transform(Number)
const lowerCase = z.string().transform((text) => text.toLowerCase())

const block = z.object({ number: wholeNumber, timestamp: wholeNumber })
const logs = z.array(
  z
    .object({
      address: lowerCase,
      topics: z.array(lowerCase),
      data: z.string(),
      blockNumber: wholeNumber,
      transactionHash: lowerCase,
      logIndex: wholeNumber,
      blockTimestamp: wholeNumber.nullish(),
      removed: z.boolean().nullish(),
    })
    .transform(
      ({ blockTimestamp, removed, ...log }): RpcLog => ({
        ...log,
        blockTimestamp: blockTimestamp ?? undefined,
        removed: removed ?? false,
      }),
    ),
)
const transaction = z.object({ hash: lowerCase, from: lowerCase })

/** A log as a node sends it; the members that every node has. */
export interface RpcLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly blockNumber: number
  readonly transactionHash: string
  readonly logIndex: number
  /** Unix seconds, where the node tells it. */
  readonly blockTimestamp: number | undefined
  readonly removed: boolean
}

/** Whose logs are wanted, by their addresses in lower case, and of which events, by their first topics. */
export interface LogFilter {
  readonly addresses: readonly string[]
  readonly topics: readonly string[]
}

/** A block's number and its time in Unix seconds. */
export type Block = z.infer<typeof block>

/**
 * What is asked of a node about the logs of contracts. Every call throws DataError: `provider_unavailable` when the node has no
 * capacity, or does not have a block or transaction yet that it named itself; `provider_rejected` when it refuses;
 * `provider_malformed` for an answer of another shape.
 */
export interface Node {
  readonly rpc: JsonRpc
  /** How many blocks at once it answers for, as far as that was learnt. */
  readonly pager: Pager
  /** The newest block that cannot be taken back. */
  finalized(signal: AbortSignal): Promise<Block>
  /** The blocks of these numbers, in their order. */
  blocks(numbers: readonly number[], signal: AbortSignal): Promise<Block[]>
  /** Logs of these contracts from one block to another, both inclusive; `last` as of a page. */
  logs(
    filter: LogFilter,
    range: { readonly from: number; readonly to: number; readonly last: boolean },
    signal: AbortSignal,
  ): Promise<readonly RpcLog[] | TooWide>
  /** Who sent each transaction, by its hash. */
  senders(hashes: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, string>>
}

/** A node that does not know which block is final is trusted up to so many blocks before its newest one. */
const UNFINALIZED_BLOCKS = 12
/**
 * HTTP statuses with which nodes refuse a page that is too wide. For a page of a single block they are errors like any
 * other.
 */
const TOO_WIDE_STATUSES = [400, 413]

/** How nodes say that they do not know the tag: it is no number, no such block, or of no chain like theirs. */
const UNKNOWN_TAG_CODES: ReadonlySet<number> = new Set([-32602, -39001])
const UNKNOWN_TAG = /finalized|\btag\b|invalid (?:argument|params?|block)|hex string|not supported|unsupported/i
const isUnknownTag = ({ code, message }: RpcError) => UNKNOWN_TAG_CODES.has(code) || UNKNOWN_TAG.test(message)

/**
 * Blocks are final after a quarter of an hour. When the block that is read of a node is older than this, what it tells is not
 * up to date with the slot.
 */
const LONGEST_LAG_MS = 3_600_000

const toHex = (value: number) => `0x${value.toString(16)}`
const toBlockCall = (tag: string) => ({ method: 'eth_getBlockByNumber', params: [tag, false] })

export function createNode(rpc: JsonRpc): Node {
  return {
    rpc,
    pager: createPager(),
    finalized: (signal) => fetchFinalized(rpc, signal),
    blocks: (numbers, signal) => fetchBlocks(rpc, numbers, signal),
    logs: (filter, range, signal) => fetchLogs(rpc, filter, range, signal),
    senders: (hashes, signal) => fetchSenders(rpc, hashes, signal),
  }
}

/**
 * What it means for a slot (Unix milliseconds) that the newest block that is read of a node has this time (Unix seconds);
 * undefined where it is up to date.
 */
export function toLag({ name }: JsonRpc, timestamp: number, slot: number): DataError | undefined {
  if (slot - timestamp * 1000 <= LONGEST_LAG_MS) return undefined
  return new DataError('provider_unavailable', `${name}: the node lags behind`)
}

/** The result of a reply. @throws DataError for an error in its place, and for a result of another shape. */
function toResult<T>(rpc: JsonRpc, schema: z.ZodType<T>, method: string, reply: RpcReply): T {
  if ('error' in reply) throw toRpcError(rpc.name, method, reply.error)
  return checkAnswer(schema, reply.result, { provider: rpc.name, path: method })
}

/**
 * What the node named itself and does not have yet: behind one address there may be several nodes, some of which lag.
 */
function toPresent<T>(rpc: JsonRpc, value: T | null, what: string): T {
  if (value !== null) return value
  throw new DataError('provider_unavailable', `${rpc.name}: the node does not have ${what} yet`)
}

async function fetchFinalized(rpc: JsonRpc, signal: AbortSignal): Promise<Block> {
  const reply = await rpc.call(toBlockCall('finalized'), signal)
  const isUnknown = 'error' in reply && !isThrottled(reply.error) && isUnknownTag(reply.error)
  const final = isUnknown ? null : toResult(rpc, block.nullable(), 'finalized', reply)
  if (final !== null) return final
  const headReply = await rpc.call({ method: 'eth_blockNumber', params: [] }, signal)
  const head = toResult(rpc, wholeNumber, 'eth_blockNumber', headReply)
  const [assumed] = await fetchBlocks(rpc, [Math.max(0, head - UNFINALIZED_BLOCKS)], signal)
  return toPresent(rpc, assumed ?? null, 'its newest block')
}

async function fetchBlocks(rpc: JsonRpc, numbers: readonly number[], signal: AbortSignal): Promise<Block[]> {
  const calls = numbers.map((number) => toBlockCall(toHex(number)))
  const replies = await rpc.batch(calls, signal)
  return replies.map((reply, at) => {
    const found = toResult(rpc, block.nullable(), 'eth_getBlockByNumber', reply)
    return toPresent(rpc, found, `block ${numbers[at]}`)
  })
}

async function fetchSenders(rpc: JsonRpc, hashes: readonly string[], signal: AbortSignal) {
  const method = 'eth_getTransactionByHash'
  const calls = hashes.map((hash) => ({ method, params: [hash] }))
  const replies = await rpc.batch(calls, signal)
  const found = replies.map((reply, at) => {
    return toPresent(rpc, toResult(rpc, transaction.nullable(), method, reply), `transaction ${hashes[at]}`)
  })
  return new Map(found.map(({ hash, from }) => [hash, from]))
}

async function fetchLogs(
  rpc: JsonRpc,
  { addresses, topics }: LogFilter,
  { from, to, last }: { from: number; to: number; last: boolean },
  signal: AbortSignal,
): Promise<readonly RpcLog[] | TooWide> {
  const range = { fromBlock: toHex(from), toBlock: toHex(to) }
  const call = { method: 'eth_getLogs', params: [{ address: addresses, topics: [topics], ...range }] }
  const reply = await sendForPage(rpc, call, last, signal)
  if (reply instanceof TooWide) return reply
  // Who is asked too often would be asked for smaller pages all the more often.
  const isRefused = 'error' in reply && !isThrottled(reply.error)
  return isRefused && !last ? readRefusal(reply.error.message) : toResult(rpc, logs, 'eth_getLogs', reply)
}

/**
 * Asks for one page of logs. A page that times out, or whose answer is over the cap, is made smaller without a retry; a single
 * block gets all retries.
 */
async function sendForPage(
  rpc: JsonRpc,
  call: { method: string; params: readonly unknown[] },
  last: boolean,
  signal: AbortSignal,
): Promise<RpcReply | TooWide> {
  if (last) return rpc.call(call, signal)
  const send = async (options: SendOptions) => {
    try {
      return await rpc.call(call, signal, { ...options, answers: TOO_WIDE_STATUSES })
    } catch (error) {
      if (isTooMuch(error)) return new TooWide()
      throw error
    }
  }
  try {
    return await send({ retries: 0 })
  } catch (error) {
    if (!(error instanceof DataError) || error.code !== 'provider_unavailable') throw error
    return await send({})
  }
}

/** The HTTP client aborts what takes too long or is too large, and says so in the cause. */
function isTooMuch(error: unknown): boolean {
  if (!(error instanceof DataError) || !(error.cause instanceof Error)) return false
  return error.cause.name === 'AbortError' || error.cause instanceof BodyTooLarge
}
