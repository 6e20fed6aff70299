import { Agent, get } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

/** A request with its result: time of sending, duration, and status; 0 if the connection failed. */
export interface Asked {
  readonly sentAt: number
  readonly tookMs: number
  readonly status: number
  /** The reason of the failed connection. */
  readonly failure?: string | undefined
}

/** A client that sends requests from its own address, each on an otherwise idle connection. */
export interface Client {
  ask(path: string): Promise<Asked>
  leave(): void
}

/** @param number selects the client's loopback address. */
export function createClient(url: string, number: number): Client {
  const agent = new Agent({ keepAlive: true, localAddress: `127.0.1.${number + 1}` })
  const ask = (path: string) =>
    new Promise<Asked>((resolve) => {
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
  return { ask, leave: () => agent.destroy() }
}

/** Keeps `atOnce` requests running for `seconds`: sends the next one after each response. */
export async function askInTurn(
  clients: readonly Client[],
  atOnce: number,
  seconds: number,
  toPath: () => string,
): Promise<Asked[]> {
  const answers: Asked[] = []
  const until = performance.now() + seconds * 1000
  const goOn = async (client: Client) => {
    while (performance.now() < until) answers.push(await client.ask(toPath()))
  }
  await Promise.all(Array.from({ length: atOnce }, (_, at) => goOn(clients[at % clients.length] as Client)))
  return answers
}

const TURN_MS = 5
/** Limit on open requests, because sockets are files and a process has a limit on those. */
const MOST_WAITED_FOR = 8_000

/**
 * Sends `perSecond` requests regardless of the duration of responses, until the signal is aborted. Sends fewer only at
 * the limit of open requests.
 */
export async function askRegardless(
  clients: readonly Client[],
  perSecond: number,
  signal: AbortSignal,
  toPath: () => string,
): Promise<Asked[]> {
  const asked: Promise<Asked>[] = []
  let answered = 0
  const startedAt = performance.now()
  while (!signal.aborted) {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond)
    while (asked.length < due && asked.length - answered < MOST_WAITED_FOR) {
      const asking = (clients[asked.length % clients.length] as Client).ask(toPath())
      asked.push(asking)
      void asking.then(() => (answered += 1))
    }
    await wait(TURN_MS)
  }
  return Promise.all(asked)
}

export const isGood = ({ status }: Asked): boolean => status === 200

/** The 95th percentile of the durations, in milliseconds. */
export function toP95(answers: readonly Asked[]): number {
  const sorted = answers.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN
}
