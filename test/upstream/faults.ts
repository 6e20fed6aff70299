import type { ServerResponse } from 'node:http'
import { z } from 'zod'
import { htmlReply, jsonReply, type Provider, type Reply, textReply, type UpstreamRequest } from './exchange.ts'

/**
 * A fault. `truncate` announces the complete body and disconnects midway. `cut` sends half of the body as if it were
 * complete. `shape` responds with undocumented JSON. `parameter` rejects requests with a query parameter. `member` gives all
 * members of a name another value. `html` with a
 * status selects a gateway's HTML page; by default 5xx statuses have HTML, others the provider's body.
 */
export const Fault = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('status'),
    status: z.int().min(400).max(599),
    retryAfter: z.union([z.number(), z.string()]).nullish(),
    html: z.boolean().optional(),
  }),
  z.strictObject({ kind: z.literal('timeout') }),
  z.strictObject({ kind: z.literal('reset') }),
  z.strictObject({ kind: z.literal('truncate') }),
  z.strictObject({ kind: z.literal('cut') }),
  z.strictObject({ kind: z.literal('shape') }),
  z.strictObject({ kind: z.literal('parameter'), name: z.string().min(1) }),
  z.strictObject({ kind: z.literal('member'), name: z.string().min(1), value: z.json() }),
  z.strictObject({ kind: z.literal('content-type') }),
  z.strictObject({ kind: z.literal('empty') }),
])
export type Fault = z.infer<typeof Fault>

/**
 * `times`: number of failing requests (default: until cleared). `match`: text that the path with query must contain.
 */
export const FaultScope = z.strictObject({ times: z.int().min(1).optional(), match: z.string().optional() })
export type FaultScope = z.infer<typeof FaultScope>

export interface FaultControl {
  /**
   * Adds a fault. The oldest matching fault applies to a request, so a sequence of failures is several calls with
   * `times`.
   */
  set(provider: string, fault: Fault, scope?: FaultScope): void
  /** Removes the faults of one provider, or all. */
  clear(provider?: string): void
}

export interface FaultSwitch extends FaultControl {
  /** The fault for a request, if any; consumes one of its `times`. */
  take(provider: string, pathAndQuery: string): Fault | null
}

export function createFaults(): FaultSwitch {
  let active: { provider: string; fault: Fault; match: string; remaining: number }[] = []
  return {
    set(provider, fault, scope = {}) {
      active.push({ provider, fault, match: scope.match ?? '', remaining: scope.times ?? Number.POSITIVE_INFINITY })
    },
    clear(provider) {
      active = provider === undefined ? [] : active.filter((entry) => entry.provider !== provider)
    },
    take(provider, pathAndQuery) {
      const found = active.find((entry) => entry.provider === provider && pathAndQuery.includes(entry.match))
      if (!found) return null
      found.remaining -= 1
      if (found.remaining <= 0) active = active.filter((entry) => entry !== found)
      return found.fault
    },
  }
}

const GATEWAY_PAGE =
  '<html>\r\n<head><title>Error</title></head>\r\n<body>\r\n<center><h1>The server cannot answer</h1></center>\r\n</body>\r\n</html>\r\n'
const LOGIN_PAGE =
  '<!doctype html><html><head><title>Sign in</title></head><body><form method="post"></form></body></html>'

/** Applies a fault to a response. `answer` creates the provider's regular reply. */
export async function actOut(
  fault: Fault,
  provider: Provider,
  request: UpstreamRequest,
  response: ServerResponse,
  answer: () => Promise<Reply>,
): Promise<void> {
  switch (fault.kind) {
    case 'timeout':
      return
    case 'reset':
      response.socket?.resetAndDestroy()
      return
    case 'truncate':
      return sendHalf(response, await answer())
    case 'cut': {
      const reply = await answer()
      return sendReply(response, { ...reply, body: reply.body.slice(0, reply.body.length >> 1) })
    }
    case 'shape':
      return sendReply(response, jsonReply({ unexpected: [true] }))
    case 'parameter': {
      const refusal = textReply(`unknown query parameter ${fault.name}`, 400)
      return sendReply(response, request.query.has(fault.name) ? refusal : await answer())
    }
    case 'member': {
      const reply = await answer()
      const body = JSON.stringify(JSON.parse(reply.body, (name, value) => (name === fault.name ? fault.value : value)))
      return sendReply(response, { ...reply, body })
    }
    case 'content-type':
      return sendReply(response, htmlReply(LOGIN_PAGE))
    case 'empty':
      return sendReply(response, provider.empty(request))
    case 'status':
      return sendReply(response, statusReply(fault, provider, request.now))
  }
}

function statusReply(fault: Extract<Fault, { kind: 'status' }>, provider: Provider, now: number): Reply {
  const html = fault.html ?? fault.status >= 500
  const reply = html ? htmlReply(GATEWAY_PAGE, fault.status) : provider.failure(fault.status, now)
  if (fault.retryAfter === undefined || fault.retryAfter === null) return reply
  return { ...reply, headers: { ...reply.headers, 'retry-after': String(fault.retryAfter) } }
}

const toBytes = ({ body, isBinary }: Reply) => Buffer.from(body, isBinary ? 'latin1' : 'utf8')

export function sendReply(response: ServerResponse, reply: Reply): void {
  const bytes = toBytes(reply)
  response.writeHead(reply.status, { ...reply.headers, 'content-length': bytes.length })
  response.end(bytes)
}

/** Announces the complete body, sends its first half and disconnects once that half is sent. */
function sendHalf(response: ServerResponse, reply: Reply): void {
  const bytes = toBytes(reply)
  response.writeHead(reply.status, { ...reply.headers, 'content-length': bytes.length })
  response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy())
}
