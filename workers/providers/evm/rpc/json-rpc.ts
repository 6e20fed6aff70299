import { z } from 'zod'
import { DataError } from '../../../../shared/errors.ts'
import { backOff, type HttpClient, isTooLarge } from '../../../http/client.ts'

export interface RpcCall {
  readonly method: string
  readonly params: readonly unknown[]
}

export interface RpcError {
  readonly code: number
  readonly message: string
  /** Set if the node sent no reply to the call, or an unreadable one. */
  readonly isUnreadable?: true
}

/** A node's reply to one call. Errors arrive with status 200 (docs/providers.md, section 6). */
export type RpcReply = { readonly result: unknown } | { readonly error: RpcError }

/**
 * A JSON-RPC node. Both methods throw a DataError like the HTTP client. A call that the node throttles or does not
 * answer readably is retried a few times; after that, its reply is the error. The other calls of the batch keep their
 * replies.
 */
export interface JsonRpc {
  /** Name in messages. The URL may contain a key and is never logged. */
  readonly name: string
  call(call: RpcCall, signal: AbortSignal, options?: SendOptions): Promise<RpcReply>
  /** Returns the replies in the order of the calls, whatever the order of the response. */
  batch(calls: readonly RpcCall[], signal: AbortSignal): Promise<RpcReply[]>
}

export interface SendOptions {
  /** See the HTTP client. */
  readonly retries?: number
  /** Error statuses that mean a refusal of the call, with a node's error or a gateway's page as the body. */
  readonly answers?: readonly number[]
}

/** Too many requests (two codes), and an internal error of the node. */
const TRANSIENT_CODES: ReadonlySet<number> = new Set([429, -32005, -32603])

const RETRIES = 3
const BACKOFF_MS = 500

const rpcError = z.object({ code: z.coerce.number().catch(0), message: z.string().catch('') })
/** JSON-RPC 1.0 nodes send both members, one of them null. */
const errorBody = z.object({ error: z.union([rpcError, z.string().transform((message) => ({ code: 0, message }))]) })
const resultBody = z.object({ id: z.unknown().optional(), result: z.unknown().optional() })
/** An error that must come from the node and not from a gateway in front of it. */
const nodeError = z.object({ error: z.object({ code: z.number(), message: z.string().catch('') }) })

/** Returns undefined if the value is not a reply. */
function parseReply(value: unknown): RpcReply | undefined {
  const refused = errorBody.safeParse(value)
  if (refused.success) return refused.data
  const answered = resultBody.safeParse(value)
  if (!answered.success) return undefined
  const { id, result = null } = answered.data
  return id === undefined && result === null ? undefined : { result }
}

/** Error statuses whose meaning is clear without the body: key, plan, or rate limit. */
const TELLING_STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 407, 408, 429])

/**
 * Returns whether an error status comes with a node's reply. Transient errors are failures of the request, which the
 * HTTP client retries, unless the caller treats the status as a refusal.
 */
function isNodeAnswer(body: unknown, status: number, refusals: readonly number[]): boolean {
  const one = nodeError.safeParse(body)
  const isReply = one.success || (Array.isArray(body) && body.length > 0 && body.every((each) => parseReply(each)))
  if (!isReply || refusals.includes(status)) return isReply
  return !TELLING_STATUSES.has(status) && !(one.success && isTransient(one.data.error))
}

/**
 * Throttling messages of nodes, independent of the code: some nodes also use -32005 for a range with too many results.
 */
const TOO_OFTEN = /rate.?limit|too many requests|requests? (?:rate|count|per second)|compute units per second/i

/** Returns whether the node throttled the request. */
export const isThrottled = ({ code, message }: RpcError): boolean => code === 429 || TOO_OFTEN.test(message)

/** In a batch, each call that does not fit into the response is refused separately. */
const TOO_LARGE = /response (?:is )?too large/i

/** Returns whether a retry may succeed. */
const isTransient = (error: RpcError): boolean =>
  TRANSIENT_CODES.has(error.code) || isThrottled(error) || TOO_LARGE.test(error.message)

/** Converts a node's refusal to a DataError with the matching code. */
export function toRpcError(name: string, method: string, error: RpcError): DataError {
  if (error.isUnreadable) return new DataError('provider_malformed', `${name} ${method}: ${error.message}`)
  const kind = isTransient(error) ? 'provider_unavailable' : 'provider_rejected'
  return new DataError(kind, `${name} ${method}: error ${error.code}: ${error.message.slice(0, 200)}`)
}

/** Nodes bill each call of a batch. */
const toCost = (body: unknown) => (Array.isArray(body) ? body.length : 1)

/** Error statuses that refuse a batch for its size, even with a gateway's page. */
const BATCH_REFUSALS = [400, 413]
const REFUSED: RpcError = { code: 413, message: 'the request or its answer is too large' }
const NO_REPLY: RpcError = { code: 0, message: 'no readable reply to a call of the batch', isUnreadable: true }

/** Batch limits in messages: dRPC "Batch of more than 3 requests are not allowed", other nodes "max 20". */
const BATCH_LIMIT = /batch.*?(?:more than|limit(?: of| is)?|max(?:imum)?(?: of| is| size)?|up to):? ?(\d+)/i
/** Batch size that free plans allow, if a node reports no limit. */
const FEW_CALLS = 3
/**
 * Number of batches for which a learned size is valid before the configured size is tried again. A size reported by the
 * node stays valid.
 */
const LEARNT_BATCHES = 100
/** If this number of smaller batches is refused and none accepted, the size is not the reason, and the rest is not sent. */
const MAX_REFUSED_BATCHES = 3

/** Result of calls sent together: the node accepted all, some or none. */
interface Sent {
  readonly replies: RpcReply[]
  readonly taken: 'all' | 'some' | 'none'
}

/**
 * Creates a JSON-RPC 2.0 client over an HTTP client for the node's URL. An instance belongs to one node and learns the node's limits.
 */
export function createJsonRpc(name: string, client: HttpClient, batchSize: number): JsonRpc {
  let learnt = { size: batchSize, batchesLeft: Number.POSITIVE_INFINITY }

  /**
   * The URL's fragment is the method name for messages and is never sent. The path stays empty, so that no slash is
   * appended to the node's URL.
   */
  const send = (body: unknown, method: string, signal: AbortSignal, options: SendOptions = {}) => {
    const request = { path: `#${method}`, route: method, method: 'POST', body, cost: toCost(body), signal } as const
    const { answers = [] } = options
    return client.json({ ...request, ...options, isAnswer: (found, status) => isNodeAnswer(found, status, answers) })
  }

  /** Returns the replies to calls sent together, or the error that refused all of them. */
  async function sendTogether(calls: readonly RpcCall[], signal: AbortSignal): Promise<RpcReply[] | RpcError> {
    const method = calls[0]?.method ?? ''
    const body = calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))
    let answer: unknown
    try {
      answer = await send(body, method, signal, { answers: BATCH_REFUSALS })
    } catch (error) {
      if (!isTooLarge(error)) throw error
      return { ...REFUSED, isUnreadable: true }
    }
    return answer === undefined ? REFUSED : readBatch(answer, calls.length)
  }

  /** Sends calls together, or in smaller batches if the node refuses the size. */
  async function sendFitting(calls: readonly RpcCall[], signal: AbortSignal): Promise<Sent> {
    const answer = await sendTogether(calls, signal)
    if (Array.isArray(answer)) return { replies: answer, taken: 'all' }
    const isForSize = calls.length > 1 && (/batch/i.test(answer.message) || !isTransient(answer))
    if (isForSize) return sendSmaller(calls, answer, signal)
    return { replies: calls.map(() => ({ error: answer })), taken: 'none' }
  }

  async function sendSmaller(calls: readonly RpcCall[], refusal: RpcError, signal: AbortSignal): Promise<Sent> {
    const named = Number(BATCH_LIMIT.exec(refusal.message)?.[1] ?? Number.NaN)
    const isNamed = named >= 1 && named < calls.length
    const smaller = isNamed ? named : calls.length > FEW_CALLS ? FEW_CALLS : 1
    if (isNamed) learnt = { size: Math.min(learnt.size, named), batchesLeft: Number.POSITIVE_INFINITY }
    const replies: RpcReply[] = []
    const counts = { all: 0, some: 0, none: 0 }
    while (replies.length < calls.length) {
      if (counts.none >= MAX_REFUSED_BATCHES && counts.none === counts.all + counts.some + counts.none) break
      const at = replies.length
      const batch = await sendFitting(calls.slice(at, at + Math.min(smaller, learnt.size)), signal)
      counts[batch.taken] += 1
      for (const reply of batch.replies) replies.push(reply)
    }
    while (replies.length < calls.length) replies.push({ error: refusal })
    // A single call that a node cannot answer may make it refuse the whole batch, so the size is not necessarily the
    // reason.
    const taken = counts.none + counts.some === 0 ? 'all' : counts.all + counts.some === 0 ? 'none' : 'some'
    if (taken === 'all' && smaller < learnt.size) learnt = { size: smaller, batchesLeft: LEARNT_BATCHES }
    return { replies, taken }
  }

  async function sendWithRetries(calls: readonly RpcCall[], signal: AbortSignal): Promise<RpcReply[]> {
    const { replies, taken } = await sendFitting(calls, signal)
    const isWorthATry = (error: RpcError) => isTransient(error) || (taken !== 'none' && error.isUnreadable === true)
    for (let retry = 0; retry < RETRIES; retry += 1) {
      const refused = replies.flatMap((each, index) => ('error' in each && isWorthATry(each.error) ? [index] : []))
      if (refused.length === 0) break
      await backOff(BACKOFF_MS, retry, signal)
      const retried = await sendFitting(
        refused.flatMap((index) => calls[index] ?? []),
        signal,
      )
      for (const [at, index] of refused.entries()) replies[index] = retried.replies[at] ?? { error: NO_REPLY }
    }
    return replies
  }

  return {
    name,
    call: async (call, signal, options) => {
      const answer = await send({ jsonrpc: '2.0', id: 0, ...call }, call.method, signal, options)
      // A refusing status whose body is not a node's reply.
      if (answer === undefined) return { error: { code: 413, message: 'the answer would be too large' } }
      const reply = parseReply(answer)
      if (reply !== undefined) return reply
      throw new DataError('provider_malformed', `${name} ${call.method}: neither a result nor an error`)
    },
    batch: async (calls, signal) => {
      const replies: RpcReply[] = []
      while (replies.length < calls.length) {
        const batch = calls.slice(replies.length, replies.length + learnt.size)
        for (const reply of await sendWithRetries(batch, signal)) replies.push(reply)
        learnt = { ...learnt, batchesLeft: learnt.batchesLeft - 1 }
        if (learnt.batchesLeft <= 0) learnt = { size: batchSize, batchesLeft: Number.POSITIVE_INFINITY }
      }
      return replies
    },
  }
}

/**
 * Returns the replies in the order of the calls, or the error that refused all of them: a single error, a list of
 * errors without ids, or replies without any id. A call without a reply gets an error.
 */
function readBatch(answer: unknown, count: number): RpcReply[] | RpcError {
  const elements: unknown[] = Array.isArray(answer) ? answer : [answer]
  const byId = new Map<number, RpcReply>()
  const nameless: RpcReply[] = []
  for (const element of elements) {
    const reply = parseReply(element)
    if (reply === undefined) continue
    const id = parseId(element)
    if (id === undefined) nameless.push(reply)
    else if (!byId.has(id)) byId.set(id, reply)
  }
  const error = nameless.flatMap((reply) => ('error' in reply ? [reply.error] : []))[0] ?? NO_REPLY
  // The result of a single call needs no id.
  const [only] = nameless
  if (count === 1 && byId.size === 0 && only !== undefined && 'result' in only) return [only]
  const isRefused = !Array.isArray(answer) && 'error' in (byId.get(0) ?? only ?? { error })
  const replies = Array.from({ length: count }, (_, id) => (isRefused ? undefined : byId.get(id)))
  if (!replies.some((reply) => reply !== undefined)) return toCombinedError(elements, error)
  return replies.map((reply) => reply ?? { error })
}

/** A single error for a whole batch may have the id of any of its calls. */
function toCombinedError(elements: readonly unknown[], fallback: RpcError): RpcError {
  const errors = elements.flatMap((element) => errorBody.safeParse(element).data?.error ?? [])
  return errors[0] ?? fallback
}

/** Some nodes send ids as strings. Declared once: a schema costs more than the reply that it reads. */
const identified = z.object({ id: z.union([z.number(), z.string().regex(/^\d+$/).transform(Number)]) })

const parseId = (element: unknown): number | undefined => identified.safeParse(element).data?.id
