import type { z } from 'zod'
import { DataError } from '../../../../shared/errors.ts'
import { isTooLarge } from '../../../http/client.ts'
import { checkAnswer } from '../../answer.ts'
import {
  isThrottled,
  type JsonRpc,
  type RpcError,
  type RpcReply,
  type SendOptions,
  toRpcError,
} from '../rpc/json-rpc.ts'
import { TooWide } from './log-pages.ts'
import { readRefusal } from './refusal.ts'

export const toHex = (value: number) => `0x${value.toString(16)}`

/** Returns the result of a reply. @throws DataError for an error reply or an unexpected result. */
export function toResult<T>(rpc: JsonRpc, schema: z.ZodType<T>, method: string, reply: RpcReply): T {
  if ('error' in reply) throw toRpcError(rpc.name, method, reply.error)
  return checkAnswer(schema, reply.result, { provider: rpc.name, path: method })
}

/** Blocks of a page, both inclusive; `last` marks a single block, as in `ReadPage`. */
export interface PageRange {
  readonly from: number
  readonly to: number
  readonly last: boolean
}

/**
 * Requests one page of logs. A refused page that can be split is `TooWide`.
 * @throws DataError `provider_unconfigured` for logs that the node no longer has
 */
export async function requestLogs(
  rpc: JsonRpc,
  filter: object,
  range: PageRange,
  signal: AbortSignal,
): Promise<RpcReply | TooWide> {
  const blocks = { fromBlock: toHex(range.from), toBlock: toHex(range.to) }
  const reply = await sendForPage(
    rpc,
    { method: 'eth_getLogs', params: [{ ...filter, ...blocks }] },
    range.last,
    signal,
  )
  if (reply instanceof TooWide) return reply
  if ('error' in reply && isPruned(reply.error)) throw toPruned(rpc, range.from, reply.error)
  // Throttling is not a refusal of the page: smaller pages would only increase the number of requests.
  const isRefused = 'error' in reply && !isThrottled(reply.error)
  return isRefused && !range.last ? readRefusal(reply.error.message) : reply
}

/** HTTP statuses with which nodes refuse a page that is too wide. For a single block, they are ordinary errors. */
const TOO_WIDE_STATUSES = [400, 413]

/** Errors of nodes that have pruned old blocks (EIP-4444), by the proposal's code or by text. */
const isPruned = ({ code, message }: RpcError): boolean =>
  code === 4444 || /\bpruned\b|history (?:is )?(?:unavailable|not available)/i.test(message)

function toPruned({ name }: JsonRpc, block: number, { code, message }: RpcError): DataError {
  const says = `error ${code}: ${message.slice(0, 200)}`
  const next = `RPC_URLS needs a node that has the logs from block ${block} on`
  return new DataError('provider_unconfigured', `${name} has no logs of block ${block} any more (${says}): ${next}`)
}

/**
 * Requests one page of logs. A page that times out or exceeds the size limit is made smaller without a retry; a single
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

/** The HTTP client aborts slow or oversized responses and names the reason in the cause. */
function isTooMuch(error: unknown): boolean {
  const isAborted = error instanceof DataError && error.cause instanceof Error && error.cause.name === 'AbortError'
  return isAborted || isTooLarge(error)
}
