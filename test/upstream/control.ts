import { z } from 'zod'
import { jsonReply, type Reply } from './exchange.ts'
import { Fault, type FaultControl, FaultScope } from './faults.ts'
import type { RequestLog } from './request-log.ts'

const FaultOrder = z.strictObject({ provider: z.string(), fault: Fault, scope: FaultScope.optional() })

/**
 * The stand-in's own paths, for manual tests of failures in a running demo: `POST /_faults` with `{provider, fault,
 * scope?}`, `DELETE /_faults`, `GET /_requests`. Null for any other path.
 */
export function control(
  method: string,
  path: string,
  body: string,
  { faults, requests }: { faults: FaultControl; requests: RequestLog },
): Reply | null {
  if (path === '/_requests' && method === 'GET') return jsonReply(requests.all())
  if (path !== '/_faults') return null
  if (method === 'DELETE') {
    faults.clear()
    return jsonReply({ cleared: true })
  }
  if (method !== 'POST') return jsonReply({ error: 'POST or DELETE' }, 405)
  const order = FaultOrder.safeParse(toJson(body))
  if (!order.success) return jsonReply({ error: z.prettifyError(order.error) }, 400)
  faults.set(order.data.provider, order.data.fault, order.data.scope)
  return jsonReply(order.data)
}

/** Undefined for text that is not JSON, which no schema here accepts. */
function toJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
