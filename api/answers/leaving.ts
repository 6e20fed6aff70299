import type { ServerResponse } from 'node:http'
import type { Database, Statement } from '../../shared/store/clickhouse.ts'

/** The client disconnected. The request did not fail, and no response can be sent. */
export class ClientLeft extends Error {
  constructor() {
    super('The client has left')
    this.name = 'ClientLeft'
  }
}

/** One error object for all clients: its stack is never read, and capturing a stack costs time. */
const LEFT = new ClientLeft()

/** The client's disconnect signal. Created on first use, because most rejected requests need none. */
export type Leaving = () => AbortSignal

/** Aborted with `ClientLeft` when the connection of a response closes, and when the response has ended. */
export function toLeaving(response: ServerResponse): Leaving {
  let left: AbortController | undefined
  return () => {
    if (left !== undefined) return left.signal
    left = new AbortController()
    const { signal } = left
    const leave = () => left?.abort(LEFT)
    if (response.destroyed) leave()
    else response.once('close', leave)
    return signal
  }
}

/** Wraps the database so that its statements end with the signal. After the abort no statement starts. */
export function withSignal(db: Database, signal: AbortSignal): Database {
  const bind = <S extends Pick<Statement, 'signal'>>(statement: S) => {
    signal.throwIfAborted()
    return { ...statement, signal: statement.signal ? AbortSignal.any([signal, statement.signal]) : signal }
  }
  return {
    ...db,
    rows: async (statement) => db.rows(bind(statement)),
    stream: async (statement) => db.stream(bind(statement)),
    command: async (statement) => db.command(bind(statement)),
    insert: async (rows) => db.insert(bind(rows)),
  }
}
