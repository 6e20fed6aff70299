import { z } from 'zod'
import { toBatches } from '../../../../shared/batches.ts'
import { DataError } from '../../../../shared/errors.ts'
import type { HttpClient } from '../../../http/client.ts'
import { sleep, toBackoffMs } from '../../../http/retry.ts'
import { checkAnswer } from '../../answer.ts'

export interface RpcCall {
  readonly method: string
  readonly params: readonly unknown[]
}

export interface RpcError {
  readonly code: number
  readonly message: string
}

/** What a node says to one call: errors arrive with status 200 (providers document, section 6). */
export type RpcReply = { readonly result: unknown } | { readonly error: RpcError }

/**
 * A JSON-RPC node. Both calls throw DataError as the HTTP client does, and `provider_malformed` when a reply is missing
 * or belongs to no call. A call for which the node has no capacity is sent again a few times, and is
 * `provider_unavailable` after that.
 */
export interface JsonRpc {
  /** How messages call the node; its URL may hold a key and is never told. */
  readonly name: string
  call(call: RpcCall, signal: AbortSignal, options?: SendOptions): Promise<RpcReply>
  /** The replies in the order of the calls, whatever order the node answers in. */
  batch(calls: readonly RpcCall[], signal: AbortSignal): Promise<RpcReply[]>
}

export interface SendOptions {
  /** As in the HTTP client. */
  readonly retries?: number
  /** Error statuses that are a refusal of the call, whether they come with an error of the node's or a page. */
  readonly answers?: readonly number[]
}

/** Too many requests, by two names, and a fault inside the node. */
const PASSING_CODES: ReadonlySet<number> = new Set([429, -32005, -32603])

const RETRIES = 3
const BACKOFF_MS = 500

const rpcError = z.object({ code: z.number(), message: z.string().default('') })
const reply = z.union([
  z.object({ id: z.number(), error: rpcError }),
  z.object({ id: z.number(), result: z.unknown() }).transform(({ id, result }) => ({ id, result: result ?? null })),
])
/** A batch that is refused as a whole is answered by one error without the id of any call. */
const batchReply = z.union([z.array(reply), z.object({ error: rpcError })])

const callReply = z.union([z.object({ error: rpcError }), reply])

const isCallReply = (body: unknown) => callReply.safeParse(body).success

/**
 * How nodes say that they were asked too often, whatever the code: -32005 is also what some refuse a range with that has too
 * much in it.
 */
const TOO_OFTEN = /rate.?limit|too many requests|requests? (?:rate|count|per second)|compute units per second/i

/** Whether the node was asked too often. */
export const isThrottled = ({ code, message }: RpcError): boolean => code === 429 || TOO_OFTEN.test(message)

/** Whether another try may succeed. */
const isPassing = (error: RpcError): boolean => PASSING_CODES.has(error.code) || isThrottled(error)

/** A node's refusal as the error that callers decide by. */
export function toRpcError(name: string, method: string, error: RpcError): DataError {
  const kind = isPassing(error) ? 'provider_unavailable' : 'provider_rejected'
  return new DataError(kind, `${name} ${method}: error ${error.code}: ${error.message.slice(0, 200)}`)
}

/** What `Provider.cost` says of whatever is read from nodes. */
export const NODE_COST = 'as the node bills: each call of a batch counts'

/** Nodes bill each call of a batch. */
const toCost = (body: unknown) => (Array.isArray(body) ? body.length : 1)

/** Speaks JSON-RPC 2.0 over an HTTP client that is open to the node's URL. */
export function createJsonRpc(name: string, client: HttpClient, batchSize: number): JsonRpc {
  /**
   * The URL's fragment names the call in messages and is never sent. The path stays empty, so that no slash is added to
   * the node's URL.
   */
  const send = (body: unknown, method: string, signal: AbortSignal, options: SendOptions = {}) => {
    const asked = { path: `#${method}`, route: method, method: 'POST', body, cost: toCost(body), signal } as const
    return client.json({ ...asked, ...options, isAnswer: isCallReply })
  }

  async function sendBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<RpcReply[]> {
    const method = calls[0]?.method ?? ''
    const body = calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))
    const answer = checkAnswer(batchReply, await send(body, method, signal), { provider: name, path: method })
    if (!Array.isArray(answer)) return calls.map(() => answer)
    const byId = new Map(answer.map((each) => [each.id, each]))
    return calls.map((_, id) => {
      const found = byId.get(id)
      if (found !== undefined) return found
      throw new DataError('provider_malformed', `${name} ${method}: no reply to call ${id} of a batch`)
    })
  }

  async function batchWithRetries(calls: readonly RpcCall[], signal: AbortSignal): Promise<RpcReply[]> {
    const replies = await sendBatch(calls, signal)
    for (let retry = 0; retry < RETRIES; retry += 1) {
      const refused = replies.flatMap((each, index) => ('error' in each && isPassing(each.error) ? [index] : []))
      if (refused.length === 0) break
      await sleep(toBackoffMs(BACKOFF_MS, retry, Math.random()), signal)
      const again = await sendBatch(
        refused.flatMap((index) => calls[index] ?? []),
        signal,
      )
      for (const [at, index] of refused.entries()) replies[index] = again[at] ?? { result: null }
    }
    return replies
  }

  return {
    name,
    call: async (call, signal, options) => {
      const answer = await send({ jsonrpc: '2.0', id: 0, ...call }, call.method, signal, options)
      // One of the refusing statuses with something else than a node's reply.
      if (answer === undefined) return { error: { code: 413, message: 'the answer would be too large' } }
      return checkAnswer(callReply, answer, { provider: name, path: call.method })
    },
    batch: async (calls, signal) => {
      const replies: RpcReply[] = []
      for (const batch of toBatches(calls, batchSize)) replies.push(...(await batchWithRetries(batch, signal)))
      return replies
    },
  }
}
