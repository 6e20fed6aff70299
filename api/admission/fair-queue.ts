import { toUnavailable } from '../problem/problem.ts'
import type { ClientKey, FairQueue, Release, Ticket } from './types.ts'

export interface QueueLimits {
  /** Maximum of concurrent work, in total and of one client. Default of the latter: all slots. */
  readonly slots: number
  readonly slotsPerClient?: number
  /** Maximum of waiting requests of all clients. */
  readonly maxWaiting: number
  /** Maximum of waiting requests of one client. */
  readonly maxWaitingPerClient?: number
  /** A request with a longer expected wait is rejected; the shorter limit is for heavy clients. */
  readonly maxWaitMs?: number
  readonly maxHeavyWaitMs?: number
  /** A monotonic clock in milliseconds. Tests may replace it. */
  readonly clock?: () => number
}

/** Receives the measurements of a queue. */
export interface QueueMeters {
  waiting(count: number): void
  waited(seconds: number): void
  rejected(): void
}

/** A page with a hundred charts sends a hundred concurrent requests. */
const MAX_WAITING_PER_CLIENT = 128
const MAX_WAIT_MS = 3_000
/** A short queue is sufficient to keep the slots of a heavy client busy, and it is empty soon after the load ends. */
const MAX_HEAVY_WAIT_MS = 500
/** A client is heavy if at least `HEAVY_LENGTH` of its requests waited during all of this time. */
const HEAVY_AFTER_MS = 1_000
/**
 * A browser sends about `MODEST` requests concurrently. A heavy client with fewer waiting requests is not rejected
 * earlier than others, so its queue does not become shorter than `HEAVY_LENGTH` while it floods, and it remains heavy.
 */
const MODEST = 16
const HEAVY_LENGTH = MODEST / 2
/**
 * While other clients send requests, a heavy client gets this share of the slots, and each of its slots pauses for
 * `PAUSE` times the duration of its work. Statements compete for the cores, and one process writes all answers: without
 * these limits the other clients' answers would take a multiple of their time.
 */
const HEAVY_SHARE = 1 / 8
const PAUSE = 2
/** Time after its last request in which another client counts as present. No pause is longer. */
const PRESENT_MS = 1_000
/** A request is rejected after it has waited for this multiple of the maximum expected wait. */
const LATE = 3
/** Weight of the newest duration in the moving average. */
const NEWEST_WEIGHT = 0.1

/** One shared error object: creating an error takes longer than deciding to reject. */
const REJECTION = toUnavailable('Too many requests are waiting for answers.')

interface Waiting {
  client: Client
  start(): void
  fail(error: unknown): void
}

interface Client {
  readonly key: ClientKey
  readonly queue: Set<Waiting>
  /** Number of slots in use, or in a pause. */
  running: number
  /** Time since which the queue has `HEAVY_LENGTH` or more requests, in ms of `clock`; infinity if it is shorter. */
  longSince: number
}

/** Creates a fair queue. Each admitted request holds one slot until its release. */
export function createFairQueue(limits: QueueLimits, meters: QueueMeters): FairQueue {
  const { slots, slotsPerClient = slots, maxWaiting, clock = () => performance.now() } = limits
  const { maxWaitMs = MAX_WAIT_MS, maxHeavyWaitMs = MAX_HEAVY_WAIT_MS } = limits
  const { maxWaitingPerClient = MAX_WAITING_PER_CLIENT } = limits
  const heavySlots = Math.min(slotsPerClient, Math.ceil(slots * HEAVY_SHARE))
  /** Clients with waiting or running requests, in the order of their turns: a map keeps the order of insertion. */
  const clients = new Map<ClientKey, Client>()
  let [running, waiting] = [0, 0]
  /** The average duration of work, and when a slot became free. */
  let [meanMs, freeSince] = [0, clock()]
  /** When a client without waiting requests sent its last request. A flood does not count as another client. */
  let lightAt = Number.NEGATIVE_INFINITY

  const findClient = (key: ClientKey): Client =>
    clients.get(key) ?? { key, queue: new Set(), running: 0, longSince: Number.POSITIVE_INFINITY }
  const update = (client: Client) => {
    client.longSince = client.queue.size < HEAVY_LENGTH ? Number.POSITIVE_INFINITY : Math.min(client.longSince, clock())
    if (client.queue.size + client.running > 0) clients.set(client.key, client)
    else clients.delete(client.key)
    meters.waiting(waiting)
  }
  const add = (one: Waiting) => {
    one.client.queue.add(one)
    waiting += 1
    update(one.client)
  }
  const remove = (one: Waiting) => {
    if (!one.client.queue.delete(one)) return
    waiting -= 1
    update(one.client)
  }

  const isHeavy = ({ longSince }: Client) => clock() - longSince > HEAVY_AFTER_MS
  const isReduced = (client: Client) => isHeavy(client) && clock() - lightAt < PRESENT_MS
  const hasSlot = (client: Client) =>
    running < slots && client.running < (isReduced(client) ? heavySlots : slotsPerClient)
  /** The expected wait of a client's request behind `own` others of that client. */
  const expectWaitMs = (client: Client, own: number) => {
    let ahead = own
    for (const other of clients.values()) if (other !== client) ahead += Math.min(other.queue.size, own + 1)
    // All clients use all slots; the requests of one client use its slots only.
    const ownSlots = isReduced(client) ? heavySlots / (1 + PAUSE) : slotsPerClient
    const durations = Math.max((ahead + 1) / slots, (own + 1) / ownSlots)
    // The time since a slot became free is added, because the wait may continue for as long again.
    return durations * meanMs + (clock() - freeSince)
  }
  /** Whether a new request of the client would wait too long. The burst of a client that is not flooding may wait. */
  const isTooLong = (client: Client): boolean => {
    const { size } = client.queue
    if (size >= maxWaitingPerClient) return true
    const isFlooding = isHeavy(client) && size >= MODEST
    return isFlooding ? expectWaitMs(client, size) > maxHeavyWaitMs : expectWaitMs(client, 0) > maxWaitMs
  }
  const countRejection = () => {
    meters.rejected()
    return REJECTION
  }
  const rejectWaiting = (one: Waiting) => one.fail(countRejection())
  /** If all queues together are full, rejects the newest request of the longest one, or else the new request. */
  const makeRoom = (client: Client) => {
    if (isTooLong(client)) throw countRejection()
    if (waiting < maxWaiting) return
    const queues = [...clients.values()].map(({ queue }) => [...queue])
    const longest = queues.reduce((most, queue) => (queue.length > most.length ? queue : most), [])
    const newest = longest.at(-1)
    if (newest === undefined || longest.length <= client.queue.size + 1) throw countRejection()
    rejectWaiting(newest)
  }

  const findNext = (): Waiting | undefined => {
    for (const client of clients.values()) {
      const [first] = client.queue
      if (first !== undefined && hasSlot(client)) return first
    }
    return undefined
  }
  const startNext = () => {
    for (let next = findNext(); next !== undefined; next = findNext()) next.start()
  }
  const free = (client: Client) => {
    client.running -= 1
    update(client)
    startNext()
  }
  const start = (client: Client, enteredAt: number): Release => {
    const startedAt = clock()
    // While no slot was in use, none could become free.
    if (running === 0) freeSince = startedAt
    running += 1
    client.running += 1
    // After its turn a client is behind all others.
    clients.delete(client.key)
    update(client)
    meters.waited((startedAt - enteredAt) / 1000)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      running -= 1
      freeSince = clock()
      const tookMs = freeSince - startedAt
      meanMs += (meanMs === 0 ? 1 : NEWEST_WEIGHT) * (tookMs - meanMs)
      if (!isReduced(client)) return free(client)
      // During the pause the slot is free for other clients only.
      setTimeout(free, Math.min(PAUSE * tookMs, PRESENT_MS), client).unref()
      startNext()
    }
  }
  const wait = (client: Client, signal: AbortSignal): Ticket => {
    const enteredAt = clock()
    let decide: (turn: Release | Promise<never>) => void = () => {}
    const turn = new Promise<Release>((resolve) => {
      decide = resolve
    })
    const one: Waiting = {
      client,
      start: () => {
        leave()
        decide(start(one.client, enteredAt))
      },
      fail: (error) => {
        leave()
        decide(Promise.reject(error))
      },
    }
    const abort = () => one.fail(signal.reason)
    const late = setTimeout(rejectWaiting, LATE * maxWaitMs, one)
    const leave = () => {
      clearTimeout(late)
      signal.removeEventListener('abort', abort)
      remove(one)
    }
    signal.addEventListener('abort', abort, { once: true })
    add(one)
    return {
      turn,
      alsoFor: (key) => {
        const other = findClient(key)
        // -1 if the request does not wait any more.
        if ([...one.client.queue].indexOf(one) <= other.queue.size) return
        remove(one)
        one.client = other
        add(one)
        startNext()
      },
    }
  }
  return {
    rejectEarly: (key) => {
      const client = findClient(key)
      if (isHeavy(client) && isTooLong(client)) throw countRejection()
    },
    enter: (key, signal) => {
      signal.throwIfAborted()
      const client = findClient(key)
      if (client.queue.size === 0) lightAt = clock()
      // Slots per client change with time: waiting requests start before the new one.
      startNext()
      if (hasSlot(client)) return { turn: Promise.resolve(start(client, clock())), alsoFor: () => {} }
      makeRoom(client)
      return wait(client, signal)
    },
  }
}
