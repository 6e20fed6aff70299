import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * A proxy in front of Redis. `vanish` simulates a power failure: connections stay open without data. After `leadTo`,
 * new connections reach another Redis, and existing ones stay.
 */
export async function startRedisDoor(first: string) {
  let target = new URL(first)
  const sockets = new Set<Socket>()
  let isGone = false
  let swallowed = 0
  const server = createServer((socket) => {
    const onward = connect(Number(target.port), target.hostname)
    sockets.add(socket)
    for (const [from, to] of [[socket, onward] as const, [onward, socket] as const]) {
      from.on('data', (bytes) => {
        if (isGone) swallowed += bytes.length
        else to.write(bytes)
      })
      from.on('error', () => from.destroy())
      from.on('close', () => to.destroy())
    }
    socket.on('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Drops all bytes from now on. */
    vanish: () => {
      isGone = true
    },
    comeBack: () => {
      isGone = false
    },
    leadTo: (url: string) => {
      target = new URL(url)
    },
    /** The number of dropped bytes. */
    swallowed: () => swallowed,
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}
