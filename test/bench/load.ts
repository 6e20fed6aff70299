import { Agent, get } from 'node:http'
import autocannon from 'autocannon'
import type { Side } from './measure.ts'

const SECONDS = 2

/** Requests per second of `connections` connections, each of which requests the next path after its response. */
export function load(url: string, name: string, toNext: () => string, connections = 32): Side {
  return {
    name,
    measure: async () => {
      // Called for each request of any connection, on both sides. A list of paths would be repeated by every
      // connection.
      const queries = [{ setupRequest: (request: autocannon.Request) => ({ ...request, path: toNext() }) }]
      const result = await autocannon({ url, connections, duration: SECONDS, requests: queries })
      if (result.non2xx + result.errors > 0) throw new Error(`${name}: ${result.non2xx + result.errors} failed`)
      return result.requests.total / result.duration
    },
  }
}

/**
 * A client that reads responses one after the other over one connection, and checks that each is complete and has
 * `leastBytes`.
 */
export function createOneReader(url: string, leastBytes: number) {
  const agent = new Agent({ keepAlive: true })
  const read = (path: string) =>
    new Promise<void>((resolve, reject) => {
      get(url + path, { agent }, async (response) => {
        let bytes = 0
        for await (const chunk of response) bytes += (chunk as Buffer).length
        if (response.statusCode === 200 && bytes >= leastBytes) resolve()
        else reject(new Error(`${path}: status ${response.statusCode}, ${bytes} bytes`))
      }).on('error', reject)
    })
  return { read, close: () => agent.destroy() }
}
