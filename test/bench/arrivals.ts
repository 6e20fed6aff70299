import { Agent, get } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

/** A request and what came of it: when it was sent, how long its answer took, and the status; 0 where the connection broke. */
export interface Asked {
  readonly sentAt: number
  readonly tookMs: number
  readonly status: number
  /** Why the connection broke. */
  readonly failure?: string | undefined
}

/** Somebody who sends requests from an address of his own, each on a connection that nothing else waits for. */
export interface Client {
  ask(path: string): Promise<Asked>
  leave(): void
}

/** @param number tells clients from one another: each has its own loopback address. */
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

/** So many requests at any time for so many seconds: the next one is sent when one is answered. */
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
/** Sockets are files, and a process may not open more than so many at once. */
const MOST_WAITED_FOR = 8_000

/**
 * So many requests a second, however long their answers take, until the signal is aborted; fewer only while as many are
 * waited for as may be.
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

/** The time that 95 of 100 requests took at most, in milliseconds. */
export function toP95(answers: readonly Asked[]): number {
  const sorted = answers.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN
}
