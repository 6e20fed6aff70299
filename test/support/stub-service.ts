import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Turn = (response: ServerResponse, request: IncomingMessage) => void

export interface StubService {
  readonly url: string
  /** The received requests in order. */
  readonly requests: readonly IncomingMessage[]
  close(): Promise<unknown>
}

/** A service that responds to the n-th request with the n-th turn, and to all later ones with the last turn. */
export async function startStubService(...turns: readonly Turn[]): Promise<StubService> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    const turn = turns[Math.min(requests.length, turns.length - 1)]
    requests.push(request)
    turn?.(response, request)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () => {
      server.closeAllConnections()
      return once(server.close(), 'close')
    },
  }
}
