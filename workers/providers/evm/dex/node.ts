import { z } from 'zod'
import { DataError } from '../../../../shared/errors.ts'
import { checkAnswer } from '../../answer.ts'
import { isPassing, type JsonRpc, type RpcReply, toRpcError } from '../rpc/json-rpc.ts'
import { TOO_WIDE } from './log-pages.ts'
import { type RpcLog, SWAP_TOPICS } from './swaps.ts'

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

/** A block's number and its time in Unix seconds. */
export type Block = z.infer<typeof block>

/**
 * What is asked of a node about swaps. Every call throws DataError: `provider_unavailable` for a node that has no capacity
 * or not yet the block or transaction that it named itself, `provider_rejected` for one that refuses,
 * `provider_malformed` for an answer of another shape.
 */
export interface Node {
  readonly rpc: JsonRpc
  /** The newest block that cannot be taken back. */
  finalized(signal: AbortSignal): Promise<Block>
  /** The blocks of these numbers, in their order. */
  blocks(numbers: readonly number[], signal: AbortSignal): Promise<Block[]>
  /** Swap logs of these pools from one block to another, both inclusive. */
  swapLogs(
    pools: readonly string[],
    from: number,
    to: number,
    last: boolean,
    signal: AbortSignal,
  ): Promise<readonly RpcLog[] | typeof TOO_WIDE>
  /** Who sent each transaction, by its hash. */
  senders(hashes: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, string>>
}

/** How far behind the newest block nodes are trusted that do not know which one is final. */
const UNFINALIZED_BLOCKS = 12
/** Refusals of a page that say the same as an error inside an answer; at one block they are errors like any other. */
const TOO_WIDE_STATUSES = [400, 413]
const TOO_MANY_REQUESTS = 429

const toHex = (value: number) => `0x${value.toString(16)}`
const toBlockCall = (tag: string) => ({ method: 'eth_getBlockByNumber', params: [tag, false] })

export function createNode(rpc: JsonRpc): Node {
  const read = <T>(schema: z.ZodType<T>, method: string, reply: RpcReply): T => {
    if ('error' in reply) throw toRpcError(rpc.name, method, reply.error)
    return checkAnswer(schema, reply.result, { provider: rpc.name, path: method })
  }
  const present = <T>(value: T | null, what: string): T => {
    if (value !== null) return value
    throw new DataError('provider_unavailable', `${rpc.name}: the node does not have ${what} yet`)
  }

  async function blocks(numbers: readonly number[], signal: AbortSignal): Promise<Block[]> {
    const calls = numbers.map((number) => toBlockCall(toHex(number)))
    const replies = await rpc.batch(calls, signal)
    return replies.map((reply, at) =>
      present(read(block.nullable(), 'eth_getBlockByNumber', reply), `block ${numbers[at]}`),
    )
  }

  async function swapLogs(pools: readonly string[], from: number, to: number, last: boolean, signal: AbortSignal) {
    const range = { fromBlock: toHex(from), toBlock: toHex(to) }
    const call = { method: 'eth_getLogs', params: [{ address: pools, topics: [SWAP_TOPICS], ...range }] }
    const reply = await sendForPage(rpc, call, last, signal)
    if (reply === TOO_WIDE) return TOO_WIDE
    const isRefused = 'error' in reply && reply.error.code !== TOO_MANY_REQUESTS
    return isRefused && !last ? TOO_WIDE : read(logs, 'eth_getLogs', reply)
  }

  return {
    rpc,
    blocks,
    swapLogs,
    finalized: async (signal) => {
      const reply = await rpc.call(toBlockCall('finalized'), signal)
      const known = 'error' in reply && !isPassing(reply.error) ? null : read(block.nullable(), 'finalized', reply)
      if (known !== null) return known
      const head = read(
        wholeNumber,
        'eth_blockNumber',
        await rpc.call({ method: 'eth_blockNumber', params: [] }, signal),
      )
      const [final] = await blocks([Math.max(0, head - UNFINALIZED_BLOCKS)], signal)
      return present(final ?? null, 'its newest block')
    },
    senders: async (hashes, signal) => {
      const method = 'eth_getTransactionByHash'
      const replies = await rpc.batch(
        hashes.map((hash) => ({ method, params: [hash] })),
        signal,
      )
      const found = replies.map((reply, at) =>
        present(read(transaction.nullable(), method, reply), `transaction ${hashes[at]}`),
      )
      return new Map(found.map(({ hash, from }) => [hash, from]))
    },
  }
}

/** Asks for one page of logs. A page that takes too long is made smaller at once; the last one gets every try. */
async function sendForPage(
  rpc: JsonRpc,
  call: { method: string; params: readonly unknown[] },
  last: boolean,
  signal: AbortSignal,
): Promise<RpcReply | typeof TOO_WIDE> {
  if (last) return rpc.call(call, signal)
  try {
    return await rpc.call(call, signal, { retries: 0, absent: TOO_WIDE_STATUSES })
  } catch (error) {
    if (isTimeout(error)) return TOO_WIDE
    if (!(error instanceof DataError) || error.code !== 'provider_unavailable') throw error
    return await rpc.call(call, signal, { absent: TOO_WIDE_STATUSES })
  }
}

/** The HTTP client aborts what takes too long and says so in the cause. */
function isTimeout(error: unknown): boolean {
  return error instanceof DataError && error.cause instanceof Error && error.cause.name === 'AbortError'
}

/**
 * The first block at or after a time in Unix seconds, found by its header: the guess follows the line between the known
 * ends, and every other one is the middle, so that a crooked chain costs a few calls more and not all of them.
 * The block after `head` when the time is later than it.
 */
export async function findBlockAt(node: Node, seconds: number, head: Block, signal: AbortSignal): Promise<number> {
  if (seconds > head.timestamp) return head.number + 1
  let low: Block = { number: 0, timestamp: 0 }
  let high = head
  for (let turn = 0; high.number - low.number > 1; turn += 1) {
    const width = high.number - low.number
    const share = (seconds - low.timestamp) / Math.max(1, high.timestamp - low.timestamp)
    const offset = turn % 2 === 1 || low.timestamp === 0 ? width / 2 : width * share
    const guess = low.number + Math.min(width - 1, Math.max(1, Math.round(offset)))
    const [found] = await node.blocks([guess], signal)
    if (found === undefined) break
    if (found.timestamp >= seconds) high = found
    else low = found
  }
  return high.number
}
