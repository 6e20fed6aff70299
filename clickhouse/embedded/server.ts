import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { hostname } from 'node:os'
import { ClickHouseException, toClickHouseException } from './exception.ts'
import { type HandlerContext, handleQuery } from './handler.ts'
import { BrokenOffError, breakOff, sendException } from './response.ts'

export type Listener = {
  readonly listener: RequestListener
  /** Waits for the running requests, at most `deadlineMs`, then stops those that are left. */
  stop(deadlineMs: number): Promise<void>
}

/** Routes the paths of ClickHouse's HTTP interface and keeps account of what runs. */
export function createListener(context: HandlerContext, log: (message: string, error: unknown) => void): Listener {
  const running = new Map<Promise<void>, AbortController>()

  function listener(request: IncomingMessage, response: ServerResponse): void {
    response.setHeader('X-ClickHouse-Server-Display-Name', hostname())
    response.setHeader('X-ClickHouse-Timezone', 'UTC')
    const url = new URL(request.url ?? '/', 'http://embedded')
    if (url.pathname === '/ping' || url.pathname === '/replicas_status') {
      response.end('Ok.\n')
      return
    }
    const client = new AbortController()
    response.once('close', () => {
      if (!response.writableFinished) client.abort(new Error('the client went away'))
    })
    const work = serve(request, response, url, client.signal).finally(() => running.delete(work))
    running.set(work, client)
  }

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      if (url.pathname !== '/') throw new ClickHouseException(1002, 'UNKNOWN_EXCEPTION', 'There is no such path.', 404)
      await handleQuery(context, request, response, url.searchParams, signal)
    } catch (error) {
      fail(request, response, error, signal)
    }
  }

  function fail(request: IncomingMessage, response: ServerResponse, error: unknown, signal: AbortSignal): void {
    const exception = toClickHouseException(error instanceof BrokenOffError ? error.cause : error)
    if (exception.code === 1002 && !signal.aborted && exception.status === 500) log('a request failed', error)
    if (error instanceof BrokenOffError) {
      breakOff(response, error, exception)
      return
    }
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    // Whatever of the body was not read would be taken for the next request on this connection.
    if (!request.complete) {
      response.setHeader('Connection', 'close')
      request.resume()
    }
    sendException(response, exception)
  }

  return {
    listener,
    async stop(deadlineMs) {
      const deadline = setTimeout(() => {
        for (const client of running.values()) client.abort(new Error('the server is closing'))
      }, deadlineMs)
      await Promise.all(running.keys())
      clearTimeout(deadline)
    },
  }
}
