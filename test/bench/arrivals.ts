import { Agent, get } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

/** A request with its result: time of sending, duration, and status; 0 if the connection failed. */
export interface RecordedRequest {
  readonly sentAt: number
  readonly tookMs: number
  readonly status: number
  /** The reason of the failed connection. */
  readonly failure?: string | undefined
}

/** A client that sends requests from its own address, each on an otherwise idle connection. */
export interface Client {
  request(path: string): Promise<RecordedRequest>
  disconnect(): void
}

/** @param number selects the client's loopback address. */
export function createClient(url: string, number: number): Client {
  const agent = new Agent({ keepAlive: true, localAddress: `127.0.1.${number + 1}` })
  const request = (path: string) =>
    new Promise<RecordedRequest>((resolve) => {
      const sentAt = performance.now()
      const end = (status: number, failure?: string) =>
        resolve({ sentAt, tookMs: performance.now() - sentAt, status, failure })
      const fail = (error: Error) => end(0, error.message)
      get(url + path, { agent }, (response) => {
        const { statusCode = 0 } = response
        response
          .resume()
          .once('end', () => end(statusCode))
          .once('error', fail)
      }).once('error', fail)
    })
  return { request, disconnect: () => agent.destroy() }
}

/** Keeps `concurrency` requests running for `seconds`: sends the next one after each response. */
export async function requestInSequence(
  clients: readonly Client[],
  concurrency: number,
  seconds: number,
  toPath: () => string,
): Promise<RecordedRequest[]> {
  const answers: RecordedRequest[] = []
  const until = performance.now() + seconds * 1000
  const goOn = async (client: Client) => {
    while (performance.now() < until) answers.push(await client.request(toPath()))
  }
  await Promise.all(Array.from({ length: concurrency }, (_, at) => goOn(clients[at % clients.length] as Client)))
  return answers
}

const TURN_MS = 5
/** Limit on open requests, because sockets are files and a process has a limit on those. */
const MOST_WAITED_FOR = 8_000

/**
 * Sends `perSecond` requests regardless of the duration of responses, until the signal is aborted. Sends fewer only at
 * the limit of open requests.
 */
export async function requestAtRate(
  clients: readonly Client[],
  perSecond: number,
  signal: AbortSignal,
  toPath: () => string,
): Promise<RecordedRequest[]> {
  const pending: Promise<RecordedRequest>[] = []
  let answered = 0
  const startedAt = performance.now()
  while (!signal.aborted) {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond)
    while (pending.length < due && pending.length - answered < MOST_WAITED_FOR) {
      const asking = (clients[pending.length % clients.length] as Client).request(toPath())
      pending.push(asking)
      void asking.then(() => (answered += 1))
    }
    await wait(TURN_MS)
  }
  return Promise.all(pending)
}

export const isGood = ({ status }: RecordedRequest): boolean => status === 200

/** Requests a path. @throws Error if it does not answer. */
export async function requireGood(client: Client, path: string): Promise<RecordedRequest> {
  const answer = await client.request(path)
  if (!isGood(answer)) throw new Error(`${path}: status ${answer.status} ${answer.failure ?? ''}`)
  return answer
}

/** The 95th percentile of the durations, in milliseconds. */
export function toP95(answers: readonly RecordedRequest[]): number {
  const sorted = answers.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN
}
