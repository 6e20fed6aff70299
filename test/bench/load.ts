import { Agent, get } from 'node:http'
import autocannon from 'autocannon'
import type { Side } from './measure.ts'

const SECONDS = 2

/** Requests a second of so many connections, each of which asks for the next path as soon as it is answered. */
export function load(url: string, name: string, toNext: () => string, connections = 32): Side {
  return {
    name,
    measure: async () => {
      // Asked for each request of any connection, on both sides: a list would be gone through by every connection.
      const asked = [{ setupRequest: (request: autocannon.Request) => ({ ...request, path: toNext() }) }]
      const result = await autocannon({ url, connections, duration: SECONDS, requests: asked })
      if (result.non2xx + result.errors > 0) throw new Error(`${name}: ${result.non2xx + result.errors} failed`)
      return result.requests.total / result.duration
    },
  }
}

/** One client that reads answers one after the other, each whole and of at least so many bytes, over a connection of its own. */
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
