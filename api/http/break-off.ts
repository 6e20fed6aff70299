import type { ServerResponse } from 'node:http'

/**
 * Aborts an incomplete response so that a client cannot mistake it for a complete one. HTTP/1.0 has no chunked
 * encoding: without a length, closing the connection marks the end of the body (RFC 9112, section 6.3). Only a reset
 * signals the failure.
 */
export function breakOff(response: ServerResponse): void {
  if (response.req.httpVersion === '1.0') response.socket?.resetAndDestroy()
  response.destroy()
}
