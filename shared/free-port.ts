import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Range of the ports to try, below the ephemeral ports. Systems assign those from 32,768 (Linux) or 49,152 (macOS,
 * Windows) on to outgoing connections and reserve them for a minute afterwards. A free ephemeral port may be taken
 * before the server listens on it.
 */
const FIRST = 20_000
const END = 32_000
/** Maximum number of random ports to try. All of them are taken only if almost all ports are. */
const ATTEMPTS = 100

/** Resolves if the port is free; rejects with the system's error. */
export function probePort(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, host, () => server.close(() => resolve()))
  })
}

/** Returns a TCP port that is free and outside the range of ephemeral ports. */
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
