import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A proxy in front of Redis, which can vanish as a machine does whose plug is pulled: no connection hears of it. */
export async function startRedisDoor(target: string) {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let isGone = false
  let swallowed = 0
  const server = createServer((socket) => {
    const onward = connect(Number(port), hostname)
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
    /** Bytes come and go nowhere from now on. */
    vanish: () => {
      isGone = true
    },
    comeBack: () => {
      isGone = false
    },
    /** Bytes that went nowhere so far. */
    swallowed: () => swallowed,
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}
