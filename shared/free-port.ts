import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * From and below which ports are looked for. Systems give connections ports of their own from 32,768 (Linux) or 49,152
 * (macOS, Windows) on, and keep them for a minute after the connection: of those, one that is free now is another's when
 * a server comes to listen on it, or comes back to it.
 */
const FIRST = 20_000
const END = 32_000
/** Only where nearly all of them are taken are so many in a row. */
const ATTEMPTS = 100

/** Resolves when the port can be listened on; rejects with the system's error. */
export function probePort(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, host, () => server.close(() => resolve()))
  })
}

/** A TCP port that nobody listens on, and that no connection is given before somebody does. */
export async function findFreePort(host = '127.0.0.1'): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = randomInt(FIRST, END)
    try {
      await probePort(host, port)
      return port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || attempt === ATTEMPTS) throw error
    }
  }
}
