import type { Gauge } from 'prom-client'
import type { ChangeStream } from '../../shared/store/store.ts'
import type { ToClient } from '../http/client-address.ts'
import { FIXED_HEADERS } from '../http/headers.ts'
import { onClose } from '../http/pipelining.ts'
import { Problem, toUnavailable } from '../problem/problem.ts'
import type { Connect } from '../route/request-context.ts'
import { createStreams, OPENING } from './streams.ts'

export interface Places {
  /**
   * Takes a slot for a client. Returns a function that releases it; the caller calls it once.
   * @throws Problem `rate_limited` when the client uses all its slots, `unavailable` when all slots are in use.
   */
  take(client: string): () => void
}

/** `Retry-After` in seconds. Streams are long, so rejected clients should not retry immediately. */
const RETRY_AFTER = '60'

/** Slots for long-lived connections: `all` in total and `perClient` for each client. */
function createPlaces({ all, perClient }: { readonly all: number; readonly perClient: number }): Places {
  const taken = new Map<string, number>()
  let count = 0
  return {
    take: (client) => {
      const own = taken.get(client) ?? 0
      if (own >= perClient) {
        const detail = `There are ${own} streams of yours already: close one, or follow several datasets with one.`
        throw new Problem('rate_limited', detail, { headers: { 'Retry-After': RETRY_AFTER } })
      }
      if (count >= all) throw toUnavailable('All places of streams are taken.')
      count += 1
      taken.set(client, own + 1)
      return () => {
        count -= 1
        const remaining = (taken.get(client) ?? 1) - 1
        if (remaining === 0) taken.delete(client)
        else taken.set(client, remaining)
      }
    },
  }
}

/** `no-transform` and `X-Accel-Buffering` prevent proxies from compressing or buffering events. */
const HEADERS = [
  ...FIXED_HEADERS,
  ...['Content-Type', 'text/event-stream; charset=utf-8'],
  ...['Cache-Control', 'no-store, no-transform'],
  ...['X-Accel-Buffering', 'no'],
]

interface Options {
  readonly changeStream: ChangeStream
  readonly bounds: { readonly all: number; readonly perClient: number }
  readonly toClient: ToClient
  readonly gauge: Gauge
  readonly heartbeatMs?: number | undefined
  /** Streams end when it is aborted; clients reconnect to another process. */
  readonly stopping?: AbortSignal | undefined
}

/** The handler of `/data/stream`. */
export function createConnect({ changeStream, bounds, toClient, gauge, heartbeatMs, stopping }: Options): Connect {
  const places = createPlaces(bounds)
  const streams = createStreams(changeStream, heartbeatMs === undefined ? {} : { heartbeatMs })
  stopping?.addEventListener('abort', () => streams.close(), { once: true })
  return ({ request, response, requestId }, { datasets, lastEventId }) => {
    // While the process stops, the stream is accepted and then closed: after an error status browsers would not
    // reconnect.
    const isOver = stopping?.aborted ?? false
    const release = isOver ? () => undefined : places.take(toClient(request))
    onClose(response, () => {
      release()
      gauge.set(streams.count)
    })
    response.writeHead(200, [...HEADERS, 'X-Request-Id', requestId])
    if (request.method === 'HEAD') return void response.end()
    if (isOver) return void response.end(OPENING)
    const selected = datasets && new Set(datasets)
    const version = String(request.headers['last-event-id'] ?? '') || lastEventId || undefined
    streams.open({ response, datasets: selected, version })
    gauge.set(streams.count)
  }
}
