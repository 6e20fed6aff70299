import type { Gauge } from 'prom-client'
import type { CommitLog } from '../../shared/store/commit-log.ts'
import type { ToClient } from '../http/client-address.ts'
import { FIXED_HEADERS } from '../http/headers.ts'
import type { Connect } from '../route/exchange.ts'
import { OPENING } from './events.ts'
import { createPlaces } from './places.ts'
import { createStreams } from './streams.ts'

/** `no-transform` and `X-Accel-Buffering` prevent proxies from compressing or buffering events. */
const HEADERS = [
  ...FIXED_HEADERS,
  ...['Content-Type', 'text/event-stream; charset=utf-8'],
  ...['Cache-Control', 'no-store, no-transform'],
  ...['X-Accel-Buffering', 'no'],
]

interface Options {
  readonly commitLog: CommitLog
  readonly bounds: { readonly all: number; readonly perClient: number }
  readonly toClient: ToClient
  readonly gauge: Gauge
  readonly heartbeatMs?: number | undefined
  /** Streams end when it is aborted; clients reconnect to another process. */
  readonly stopping?: AbortSignal | undefined
}

/** The handler of `/data/stream`. */
export function createConnect({ commitLog, bounds, toClient, gauge, heartbeatMs, stopping }: Options): Connect {
  const places = createPlaces(bounds)
  const streams = createStreams(commitLog, heartbeatMs === undefined ? {} : { heartbeatMs })
  stopping?.addEventListener('abort', () => streams.close(), { once: true })
  return ({ request, response, requestId }, datasets) => {
    // While the process stops, the stream is accepted and then closed: after an error status browsers would not
    // reconnect.
    const isOver = stopping?.aborted ?? false
    const giveBack = isOver ? () => undefined : places.take(toClient(request))
    response.once('close', () => {
      giveBack()
      gauge.set(streams.count)
    })
    response.writeHead(200, [...HEADERS, 'X-Request-Id', requestId])
    if (request.method === 'HEAD') return void response.end()
    if (isOver) return void response.end(OPENING)
    const last = request.headers['last-event-id']
    const wanted = datasets && new Set(datasets)
    streams.open({ response, datasets: wanted, version: typeof last === 'string' && last !== '' ? last : undefined })
    gauge.set(streams.count)
  }
}
