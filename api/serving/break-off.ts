import type { ServerResponse } from 'node:http'

/**
 * Ends a response whose rest does not come, so that half an answer does not look like a whole one. HTTP/1.0 has no chunks:
 * without a length the end of the connection is that of the answer (RFC 9112, section 6.3), and only a reset is none.
 */
export function breakOff(response: ServerResponse): void {
  if (response.req.httpVersion === '1.0') response.socket?.resetAndDestroy()
  response.destroy()
}
