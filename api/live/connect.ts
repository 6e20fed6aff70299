import type { Gauge } from 'prom-client'
import type { ChangeStream, StreamedChange } from '../../shared/store/change-stream.ts'
import type { ToClient } from '../http/client-address.ts'
import { FIXED_HEADERS } from '../http/headers.ts'
import { Problem, toUnavailable } from '../problem/problem.ts'
import type { Connect } from '../route/request-context.ts'
import { createStreams } from './streams.ts'

/** The client's delay before it reconnects, in milliseconds. */
const RETRY_MS = 2_000

/** The first bytes of a stream: the reconnection delay, and a comment that it is open. */
export const OPENING = Buffer.from(`retry: ${RETRY_MS}\n: open\n\n`)

/** A comment that keeps the connection open. */
export const HEARTBEAT = Buffer.from(': still here\n\n')

/** Sets the client's last event id without an event. The client sends it when it reconnects. */
export const toMark = (version: string): Buffer => Buffer.from(`: still here\nid: ${version}\n\n`)

/** A change event in the format of the stream. */
export const toChange = ({ version, id: _, ...change }: StreamedChange): Buffer =>
  Buffer.from(`id: ${version}\nevent: change\ndata: ${JSON.stringify(change)}\n\n`)

/** Reports that change events may have been missed: any data may have changed. */
export const toReset = (version: string): Buffer => Buffer.from(`id: ${version}\nevent: reset\ndata: {}\n\n`)

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
    response.once('close', () => {
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
