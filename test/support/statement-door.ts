import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A statement as received by the proxy. */
export interface SeenStatement {
  /** The parameters of the URL, with the statement's values. */
  readonly query: URLSearchParams
  /** Whether the client disconnected before the end of the response. */
  hasDisconnected: boolean
}

/** The values of a parameter that a statement has once, or numbered for each of several. */
export const toValues = ({ query }: Pick<SeenStatement, 'query'>, parameter: string): string[] =>
  [...query].flatMap(([name, value]) => (name.replace(/\d+$/, '') === `param_${parameter}` ? [value] : []))

/** All of a body; or its first half, after which the response stalls or its connection is reset. */
export type BodyEnd = 'complete' | 'stall' | 'reset'

/** A proxy in front of ClickHouse that records the statements and can delay them. */
export async function startStatementDoor(target: string) {
  const statements: SeenStatement[] = []
  let [gate, open] = [Promise.resolve(), () => {}]
  let isCut = (_statement: number) => false
  let toEnd: () => BodyEnd = () => 'complete'
  const server = createServer(async (request, response) => {
    const { method, headers, url = '/' } = request
    const statement = { query: new URL(url, target).searchParams, hasDisconnected: false }
    if (isCut(statements.push(statement) - 1)) return void request.socket.destroy()
    response.once('close', () => {
      statement.hasDisconnected = !response.writableFinished
    })
    await gate
    if (statement.hasDisconnected) return
    const onward = send(new URL(url, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      const end = toEnd()
      if (end === 'complete') return void answer.pipe(response)
      const isReset = end === 'reset'
      answer.once('data', (bytes: Buffer) => {
        response.write(bytes.subarray(0, bytes.length / 2), () => {
          if (isReset) request.socket.destroy()
        })
      })
    })
    response.once('close', () => onward.destroy())
    request.pipe(onward.on('error', () => response.destroy()))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    statements,
    /** Delays statements until `release`. */
    hold: () => {
      gate = new Promise((resolve) => {
        open = resolve
      })
    },
    release: () => open(),
    /** Sets how the bodies of the next responses end, all of them or each. */
    endBodies: (how: BodyEnd | (() => BodyEnd)) => {
      toEnd = typeof how === 'string' ? () => how : how
    },
    /**
     * Closes the connections of the selected statements without a response; statements are numbered by arrival from 0.
     */
    cut: (which: (statement: number) => boolean) => {
      isCut = which
    },
    close: () => {
      open()
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}
