import type { ServerResponse } from 'node:http'
import type { Database, Statement } from '../../shared/store/clickhouse.ts'

/** Whoever asked is not there any more: nothing failed, and there is nobody to tell. */
export class ClientLeft extends Error {
  constructor() {
    super('The client has left')
    this.name = 'ClientLeft'
  }
}

/** One error for all clients: its stack is never read, and taking a stack costs time. */
const LEFT = new ClientLeft()

/** A client that may leave: the signal is made for whoever asks for it, because most who are refused need none. */
export type Leaving = () => AbortSignal

/** Aborted with `ClientLeft` once the connection of a response has closed, and when the response has ended. */
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

/** The database with statements that end with the signal; none begins once it is aborted. */
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
