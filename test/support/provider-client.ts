import { expect, onTestFinished } from 'vitest'
import type { DataError } from '../../shared/errors.ts'
import type { HttpClients, HttpSettings } from '../../workers/http/client.ts'
import { createObservedClients, type Handler, sendJson, startProviderServer } from '../provider-server.ts'

export const KEY = 'k-3f1b9c-not-to-be-shown'
const { signal } = new AbortController()

/** A provider client with a test server, which is closed after the test. `fail` is a request that must be rejected. */
export async function connectClient(handler: Handler, settings: Partial<HttpSettings> = {}) {
  const server = await startProviderServer(handler)
  onTestFinished(server.close)
  const { http, calls } = createObservedClients()
  const open = (clients: HttpClients) =>
    clients.open({
      provider: 'acme',
      baseUrl: server.baseUrl,
      headers: { 'x-api-key': KEY },
      timeoutMs: 5000,
      maxBytes: 1000,
      requestsPerMinute: 60_000,
      ...settings,
    })
  const client = open(http)
  const fail = (request: Partial<Parameters<typeof client.json>[0]> = {}): Promise<DataError> =>
    client.json({ path: '/things', signal, ...request }).then(
      () => expect.unreachable('the call succeeded'),
      (error: unknown) => error as DataError,
    )
  return { server, http, open, client, calls, fail }
}

/** Uses each handler once in order, then repeats the last one. */
export function inTurn(...handlers: Handler[]): Handler {
  let next = 0
  return (request, response, url) => {
    handlers[Math.min(next, handlers.length - 1)]?.(request, response, url)
    next += 1
  }
}

export const ok: Handler = (_, response) => sendJson(response, { ok: true })
export const refuse =
  (status: number, headers: Record<string, string> = {}): Handler =>
  (_, response) =>
    sendJson(response, { message: `status ${status}` }, status, headers)
