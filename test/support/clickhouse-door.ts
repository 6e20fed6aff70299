import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A proxy in front of ClickHouse that records the traceparent of each statement. */
export async function startDoor(target: string) {
  const traces: (string | undefined)[] = []
  const server = createServer((request, response) => {
    traces.push(request.headers.traceparent as string | undefined)
    const { method, headers, url = '/' } = request
    const onward = send(new URL(url, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    request.pipe(onward)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, traces, close }
}
