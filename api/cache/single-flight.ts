import type { ServerResponse } from 'node:http'
import { type SharedCall, startSharedCall } from '../../shared/batcher.ts'
import type { Database, Statement } from '../../shared/store/store.ts'
import type { ClientKey, FairQueue } from '../admission/admission.ts'

/** The client disconnected. The request did not fail, and no response can be sent. */
export class ClientDisconnected extends Error {
  constructor() {
    super('The client disconnected')
    this.name = 'ClientDisconnected'
  }
}

/** One error object for all clients: its stack is never read, and capturing a stack costs time. */
const DISCONNECTED = new ClientDisconnected()

/** The client's disconnect signal. Created on first use, because most rejected requests need none. */
export type DisconnectSignal = () => AbortSignal

/** Aborted with `ClientDisconnected` when the connection of a response closes, and when the response has ended. */
export function createDisconnectSignal(response: ServerResponse): DisconnectSignal {
  let controller: AbortController | undefined
  return () => {
    if (controller !== undefined) return controller.signal
    controller = new AbortController()
    const { signal } = controller
    const abort = () => controller?.abort(DISCONNECTED)
    if (response.destroyed) abort()
    else response.once('close', abort)
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

interface QueuedCall<T> extends SharedCall<T> {
  /** Another client requests the same work and may have a better position in the queue. */
  alsoFor(client: ClientKey): void
}

/** Running work by key: concurrent requests with the same key share one call. */
export interface SingleFlight<T> {
  /**
   * Returns the running call for a key. If none exists, starts `work` when the queue admits it, or immediately without
   * a `client`.
   * @throws Problem `unavailable` when the request would have to wait too long.
   */
  share(
    key: string,
    work: (abandoned: AbortSignal) => Promise<T>,
    client?: ClientKey,
  ): { call: SharedCall<T>; isNew: boolean }
}

/**
 * Starts the work when the queue has a free slot. Does not start it if all waiting clients have disconnected by then.
 */
function startQueued<T>(
  queue: FairQueue,
  client: ClientKey,
  work: (abandoned: AbortSignal) => Promise<T>,
): QueuedCall<T> {
  let alsoFor: QueuedCall<T>['alsoFor'] = () => {}
  const call = startSharedCall((abandoned) => {
    const ticket = queue.enter(client, abandoned)
    alsoFor = ticket.alsoFor
    return workInTurn(ticket.turn, abandoned, work)
  })
  return { ...call, alsoFor: (newClient) => alsoFor(newClient) }
}

async function workInTurn<T>(
  turn: ReturnType<FairQueue['enter']>['turn'],
  abandoned: AbortSignal,
  work: (abandoned: AbortSignal) => Promise<T>,
): Promise<T> {
  const release = await turn
  try {
    abandoned.throwIfAborted()
    return await work(abandoned)
  } finally {
    release()
  }
}

/** Creates a single flight whose calls wait in a queue. */
export function createSingleFlight<T>(queue: FairQueue): SingleFlight<T> {
  const underway = new Map<string, QueuedCall<T>>()
  return {
    share: (key, work, client) => {
      const running = underway.get(key)
      if (running !== undefined) {
        if (client !== undefined) running.alsoFor(client)
        return { call: running, isNew: false }
      }
      const workOnce = async (abandoned: AbortSignal) => {
        const result = await work(abandoned)
        forget()
        return result
      }
      const call: QueuedCall<T> =
        client === undefined
          ? { ...startSharedCall(workOnce), alsoFor: () => {} }
          : startQueued(queue, client, workOnce)
      const forget = () => {
        if (underway.get(key) === call) underway.delete(key)
      }
      underway.set(key, call)
      // A new request must not join a call that has failed or is being aborted.
      call.abandoned.addEventListener('abort', forget)
      return { call, isNew: true }
    },
  }
}
