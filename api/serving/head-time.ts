import type { ServerResponse } from 'node:http'

/**
 * When an answer began, by the process's clock (`performance.now`); now where it has not: whoever asked has left. What comes
 * then takes as long as the client needs to read it.
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
