import { Agent, get } from 'node:http'
import autocannon from 'autocannon'
import type { Side } from './measure.ts'

const SECONDS = 2

type Headers = Readonly<Record<string, string>>

/** A load of `connections` connections, each of which requests the next path after its response. */
interface Load {
  readonly url: string
  toNext(): string
  readonly connections: number
  readonly headers?: Headers
}

async function run({ url, toNext, connections, headers }: Load, length: { duration: number } | { amount: number }) {
  // Called for each request of any connection, on both sides. A list of paths would be repeated by every
  // connection.
  const requests = [{ setupRequest: (request: autocannon.Request) => ({ ...request, path: toNext() }) }]
  const options = { url, connections, requests, timeout: 60, ...length, ...(headers && { headers }) }
  const result = await autocannon(options)
  const failed = result.non2xx + result.errors
  if (failed > 0) {
    const statuses = JSON.stringify(result.statusCodeStats)
    throw new Error(`${url}: ${failed} requests failed; requests by status: ${statuses}`)
  }
  return result
}

/** Requests per second. */
export function load(url: string, name: string, toNext: () => string, connections = 32, headers?: Headers): Side {
  return {
    name,
    measure: async () => {
      const result = await run({ url, toNext, connections, ...(headers && { headers }) }, { duration: SECONDS })
      return result.requests.total / result.duration
    },
  }
}

/** Sends `amount` requests. @returns the seconds that they took. */
export const send = async (of: Load, amount: number): Promise<number> => (await run(of, { amount })).duration

/** Microseconds of a server's processor time for a request; `readCpu` returns its seconds. */
export const cpu = (name: string, readCpu: () => number, of: Load, amount: number): Side => ({
  name,
  measure: async () => {
    const before = readCpu()
    await send(of, amount)
    return ((readCpu() - before) / amount) * 1e6
  },
})

/**
 * A client that reads responses one after the other over one connection, and checks that each is complete and has
 * `leastBytes`.
 */
export function createOneReader(url: string, leastBytes: number, headers: Headers = {}) {
  const agent = new Agent({ keepAlive: true })
  const read = (path: string) =>
    new Promise<void>((resolve, reject) => {
      get(url + path, { agent, headers }, async (response) => {
        let bytes = 0
        for await (const chunk of response) bytes += (chunk as Buffer).length
        if (response.statusCode === 200 && bytes >= leastBytes) resolve()
        else reject(new Error(`${path}: status ${response.statusCode}, ${bytes} bytes`))
      }).on('error', reject)
    })
  return { read, close: () => agent.destroy() }
}
