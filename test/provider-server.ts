import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLog } from '../shared/telemetry/log.ts'
import { createHttpClients, type ProviderCall } from '../workers/http/client.ts'

export type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => void

/**
 * A provider on a separate port. It returns the answers that a test defines, and records the URLs and headers of
 * requests.
 */
export async function startProviderServer(handler: Handler) {
  const requests: { url: URL; headers: IncomingMessage['headers'] }[] = []
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://provider')
    requests.push({ url, headers: request.headers })
    handler(request, response, url)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close() {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** Answers JSON, from a value or a text that is JSON already. */
export function sendJson(response: ServerResponse, body: unknown, status = 200, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** Clients without backoff, and the calls they reported. */
export function createObservedClients() {
  const calls: ProviderCall[] = []
  const http = createHttpClients({
    log: createLog('test', 'silent'),
    backoffMs: 0,
    observe: (call) => calls.push(call),
  })
  return { http, calls }
}
