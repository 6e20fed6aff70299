import type { ServerResponse } from 'node:http'
import { type SharedCall, startSharedCall } from '../../shared/batcher.ts'
import type { Database } from '../../shared/store/store.ts'
import type { ClientKey, FairQueue, Release, Ticket } from '../admission/admission.ts'
import { onClose } from '../http/pipelining.ts'

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
    else onClose(response, abort)
    return signal
  }
}

/** The abort signal of a request's reads, and its slot in the queue. */
export interface ReadScope {
  /** Aborted when no client waits for the result. */
  readonly signal: AbortSignal
  /**
   * Waits for the request's slot, or returns immediately if no queue limits the request. A request has one slot for all
   * its reads; it is free when the request has ended and each caller has released it.
   * @throws Problem `unavailable` if the request would have to wait too long.
   */
  readonly queue: () => Release | Promise<Release>
  /** Calls back when the request has its answer; never if it fails. */
  readonly onSuccess: (callback: () => void) => void
}

const NOTHING = () => {}

/** The scope of a request that no queue limits. */
export const unqueued = (signal: AbortSignal): ReadScope => ({
  signal,
  queue: () => NOTHING,
  onSuccess: (callback) => callback(),
})

/** Wraps the database so that its statements wait for the request's slot. */
export function withQueue(db: Database, { queue }: Pick<ReadScope, 'queue'>): Database {
  const inSlot =
    <S, R>(run: (statement: S) => Promise<R>) =>
    async (statement: S): Promise<R> => {
      const release = await queue()
      try {
        return await run(statement)
      } finally {
        release()
      }
    }
  return { ...db, rows: inSlot(db.rows) as Database['rows'], stream: inSlot(db.stream) }
}

/** Work that waits for its slot before it begins. */
export const inTurn =
  <T>(work: (signal: AbortSignal) => Promise<T>) =>
  async ({ signal, queue }: ReadScope): Promise<T> => {
    const release = await queue()
    try {
      signal.throwIfAborted()
      return await work(signal)
    } finally {
      release()
    }
  }

/** The client that work is for. */
export interface Demand {
  /** Undefined if no queue limits the work. */
  readonly client?: ClientKey | undefined
  /** Charges the client before the work waits for its slot. Rejects if the client's limit is used up. */
  readonly charge?: (() => Promise<void>) | undefined
}

/** The slot of running work in the queue: the work enters the queue when it first needs to read. */
function createSlot(fairQueue: FairQueue, { client, charge }: Demand) {
  const others = new Set<ClientKey>()
  const callbacks: (() => void)[] = []
  /** The work itself, and its reads, which other work may share and which may therefore end later. */
  let holders = 1
  let isShared = false
  let ticket: Ticket | undefined
  let charged: Promise<void> | undefined
  let turn: Promise<Release> | undefined

  const enter = async (abandoned: AbortSignal): Promise<Release> => {
    charged = charge?.()
    // Other requests that share the work are charged themselves.
    await charged?.catch((error: unknown) => {
      if (!isShared) throw error
    })
    abandoned.throwIfAborted()
    if (client === undefined) return NOTHING
    ticket = fairQueue.enter(client, abandoned)
    for (const other of others) ticket.alsoFor(other)
    return ticket.turn
  }
  const leave = () => {
    holders -= 1
    if (holders === 0) turn?.then((release) => release()).catch(NOTHING)
  }
  const createQueue = (abandoned: AbortSignal) => async (): Promise<Release> => {
    // The statement of a long answer begins after the work, in the queue of downloads.
    if (holders === 0) return NOTHING
    holders += 1
    turn ??= enter(abandoned)
    let isHeld = true
    const release = () => {
      if (isHeld) leave()
      isHeld = false
    }
    await turn.catch((error: unknown) => {
      release()
      throw error
    })
    return release
  }
  return {
    run: async <T>(signal: AbortSignal, work: (scope: ReadScope) => Promise<T>): Promise<T> => {
      try {
        const onSuccess = (callback: () => void) => void callbacks.push(callback)
        const result = await work({ signal, queue: createQueue(signal), onSuccess })
        for (const callback of callbacks) callback()
        return result
      } finally {
        leave()
      }
    },
    /** Another request shares the work: its client may have a better position in the queue. */
    alsoFor: (other: ClientKey | undefined) => {
      isShared = true
      if (other === undefined) return
      others.add(other)
      ticket?.alsoFor(other)
    },
    isShared: () => isShared,
    /** Rejects if the client that started the work could not be charged. */
    charged: () => charged,
  }
}

/** Work whose result several requests share, and its slot in the queue. */
interface Flight<T> {
  readonly call: SharedCall<T>
  readonly slot: ReturnType<typeof createSlot>
}

/** Running work by key: concurrent requests with the same key share it. */
export interface SingleFlight<T> {
  /**
   * Returns the result of the running work of a key, or starts `work`. Rejects with the reason of `signal` after its
   * abort; the work is aborted when all requests that wait for it are. `isOnly`: no other request has the result.
   */
  share(
    key: string,
    work: (scope: ReadScope) => Promise<T>,
    demand?: Demand,
    signal?: AbortSignal,
  ): { readonly result: Promise<T>; readonly isNew: boolean; readonly isOnly: () => boolean }
}

/** Creates a single flight whose work waits in a queue before it reads. */
export function createSingleFlight<T>(fairQueue: FairQueue): SingleFlight<T> {
  const underway = new Map<string, Flight<T>>()
  const start = (key: string, work: (scope: ReadScope) => Promise<T>, demand: Demand): Flight<T> => {
    const slot = createSlot(fairQueue, demand)
    const forget = () => {
      if (underway.get(key)?.slot === slot) underway.delete(key)
    }
    const call = startSharedCall(async (signal) => {
      const result = await slot.run(signal, work)
      forget()
      return result
    })
    const flight = { call, slot }
    underway.set(key, flight)
    // A new request must not join a call that has failed or is being aborted.
    call.abandoned.addEventListener('abort', forget)
    return flight
  }
  return {
    share: (key, work, demand = {}, signal) => {
      const running = underway.get(key)
      const { call, slot } = running ?? start(key, work, demand)
      const joined = call.join(signal)
      if (running === undefined) {
        const result = demand.charge === undefined ? joined : joined.finally(() => slot.charged())
        return { result, isNew: true, isOnly: () => !slot.isShared() }
      }
      slot.alsoFor(demand.client)
      const result =
        demand.charge === undefined ? joined : Promise.all([joined, demand.charge()]).then(([value]) => value)
      return { result, isNew: false, isOnly: () => false }
    },
  }
}
