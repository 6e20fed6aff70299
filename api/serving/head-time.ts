import type { ServerResponse } from 'node:http'

/**
 * Returns the time when the response's headers were written, by the process clock (`performance.now`), or the current
 * time if they were not written. The time after the headers depends on how fast the client reads.
 */
export function noteHead(response: ServerResponse): () => number {
  let begunAt: number | undefined
  const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse
  response.writeHead = (...head: unknown[]) => {
    begunAt ??= performance.now()
    return writeHead(...head)
  }
  return () => begunAt ?? performance.now()
}
