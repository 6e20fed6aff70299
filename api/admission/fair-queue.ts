import { toUnavailable } from '../problem/problem.ts'
import type { ClientKey, FairQueue, QueueLimits, QueueMeters, Release, Ticket } from './admission.ts'

/** A page with a hundred charts requests all of them at once. */
const MAX_WAITING_PER_CLIENT = 128
const MAX_WAIT_MS = 3_000
/** A short line is sufficient to keep the slots of a heavy client busy, and it is empty soon after the load ends. */
const MAX_HEAVY_WAIT_MS = 500
/** A client is heavy if at least `HEAVY_LINE` of its requests waited during all of this time. */
const HEAVY_AFTER_MS = 1_000
/**
 * A browser sends about `MODEST` requests concurrently. A heavy client with fewer waiting requests is not rejected
 * earlier than others, so its line does not become shorter than `HEAVY_LINE` while it floods, and it stays heavy.
 */
const MODEST = 16
const HEAVY_LINE = MODEST / 2
/**
 * While other clients send requests, a heavy client gets this share of the slots, and each of its slots pauses for
 * `PAUSE` times the duration of its work. Statements compete for the cores, and one process writes all answers: without
 * these limits the other clients' answers would take a multiple of their time.
 */
const HEAVY_SHARE = 1 / 8
const PAUSE = 2
/** Other clients count as present for this time after their last request, and no pause is longer. */
const PRESENT_MS = 1_000
/** A request is rejected after it has waited for this multiple of the maximum expected wait. */
const LATE = 3
/** Weight of the newest duration in the moving average. */
const NEWEST_WEIGHT = 0.1

/** One shared error object: creating an error takes longer than deciding to reject. */
const REJECTION = toUnavailable('Too many answers are waited for at once.')

interface Waiting {
  client: Client
  start(): void
  fail(error: unknown): void
}

interface Client {
  readonly key: ClientKey
  readonly line: Set<Waiting>
  /** Number of slots in use, or in a pause. */
  running: number
  /** Since when the line has at least `HEAVY_LINE` requests; infinity while it is shorter. */
  longSince: number
}

/** The clients with waiting or running requests. */
function createClients(clock: () => number) {
  // A map keeps insertion order. After its turn a client is inserted again, behind all others.
  const clients = new Map<ClientKey, Client>()
  let size = 0
  const forgetIdle = ({ key, line, running }: Client) => {
    if (line.size === 0 && running === 0) clients.delete(key)
  }
  const remove = (waiting: Waiting) => {
    const { client } = waiting
    if (!client.line.delete(waiting)) return
    size -= 1
    if (client.line.size < HEAVY_LINE) client.longSince = Number.POSITIVE_INFINITY
    forgetIdle(client)
  }
  return {
    /** Number of waiting requests. */
    get size() {
      return size
    },
    get: (key: ClientKey): Client =>
      clients.get(key) ?? { key, line: new Set(), running: 0, longSince: Number.POSITIVE_INFINITY },
    add: (waiting: Waiting) => {
      const { client } = waiting
      client.line.add(waiting)
      if (client.line.size === HEAVY_LINE) client.longSince = clock()
      clients.set(client.key, client)
      size += 1
    },
    remove,
    /** Removes and returns the next request of a client that `may` admits. */
    take: (may: (client: Client) => boolean): Waiting | undefined => {
      for (const client of clients.values()) {
        const [first] = client.line
        if (first === undefined || !may(client)) continue
        remove(first)
        clients.delete(client.key)
        clients.set(client.key, client)
        return first
      }
      return undefined
    },
    addRunning: (client: Client, change: 1 | -1) => {
      client.running += change
      clients.set(client.key, client)
      forgetIdle(client)
    },
    /** Number of requests that run before a new one of a client with `own` waiting requests. */
    countAhead: (client: Client, own: number): number => {
      let ahead = own
      for (const client2 of clients.values()) if (client2 !== client) ahead += Math.min(client2.line.size, own + 1)
      return ahead
    },
    findLongest: (): Client | undefined => {
      let longest: Client | undefined
      for (const client of clients.values()) if (client.line.size > (longest?.line.size ?? 0)) longest = client
      return longest
    },
  }
}

/** Estimates how fast slots become free. */
function createPace(clock: () => number) {
  let meanMs = 0
  let lastEndedAt = clock()
  return {
    /** The first slot is taken after a pause, during which no slot could become free. */
    begin: () => {
      lastEndedAt = clock()
    },
    end: (tookMs: number) => {
      meanMs = meanMs === 0 ? tookMs : meanMs + NEWEST_WEIGHT * (tookMs - meanMs)
      lastEndedAt = clock()
    },
    /** The time since the last slot became free is added, because the wait may continue for as long again. */
    expectMs: (durations: number) => durations * meanMs + (clock() - lastEndedAt),
  }
}

/** Creates a fair queue. Each admitted request holds one slot until its release. */
export function createFairQueue(limits: QueueLimits, meters: QueueMeters): FairQueue {
  const { slots, slotsPerClient = slots, maxWaiting, maxWaitingPerClient = MAX_WAITING_PER_CLIENT, clock } = limits
  const { maxWaitMs = MAX_WAIT_MS, maxHeavyWaitMs = MAX_HEAVY_WAIT_MS } = limits
  const heavySlots = Math.min(slotsPerClient, Math.ceil(slots * HEAVY_SHARE))
  const clients = createClients(clock)
  const pace = createPace(clock)
  let running = 0
  /** When a client without waiting requests sent its last request. A flood does not count as another client. */
  let lightAt = Number.NEGATIVE_INFINITY

  const isHeavy = ({ longSince }: Client) => clock() - longSince > HEAVY_AFTER_MS
  const isReduced = (client: Client) => isHeavy(client) && clock() - lightAt < PRESENT_MS
  const may = (client: Client) => running < slots && client.running < (isReduced(client) ? heavySlots : slotsPerClient)

  /** Whether a new request of the client would wait too long. The burst of a client that is not flooding may wait. */
  const isTooLong = (client: Client): boolean => {
    if (client.line.size >= maxWaitingPerClient) return true
    const isFlooding = isHeavy(client) && client.line.size >= MODEST
    const own = isFlooding ? client.line.size : 0
    // All clients use all slots; the requests of one client use its slots only.
    const ownSlots = isReduced(client) ? heavySlots / (1 + PAUSE) : slotsPerClient
    const turns = Math.max((clients.countAhead(client, own) + 1) / slots, (own + 1) / ownSlots)
    return pace.expectMs(turns) > (isFlooding ? maxHeavyWaitMs : maxWaitMs)
  }
  const reject = (): never => {
    meters.rejected()
    throw REJECTION
  }
  const rejectWaiting = (waiting: Waiting) => {
    meters.rejected()
    waiting.fail(REJECTION)
  }
  /** Makes room for a new request: if the queue is full, the newest request of the longest line is rejected. */
  const makeRoom = (client: Client) => {
    if (isTooLong(client)) return reject()
    if (clients.size < maxWaiting) return
    const longest = clients.findLongest()
    if (longest === undefined || longest.line.size <= client.line.size + 1) return reject()
    rejectWaiting([...longest.line].at(-1) as Waiting)
  }
  /** Starts requests while slots are free. */
  const startNext = () => {
    for (let next = clients.take(may); next !== undefined; next = clients.take(may)) next.start()
    meters.waiting(clients.size)
  }
  const free = (client: Client) => {
    clients.addRunning(client, -1)
    startNext()
  }
  const start = (client: Client, enteredAt: number): Release => {
    if (running === 0) pace.begin()
    running += 1
    clients.addRunning(client, 1)
    const startedAt = clock()
    meters.waited((startedAt - enteredAt) / 1000)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      running -= 1
      const tookMs = clock() - startedAt
      pace.end(tookMs)
      // During the pause the slot is free for other clients only.
      if (isReduced(client)) setTimeout(free, Math.min(PAUSE * tookMs, PRESENT_MS), client).unref()
      else clients.addRunning(client, -1)
      startNext()
    }
  }
  const wait = (client: Client, signal: AbortSignal): Ticket => {
    const enteredAt = clock()
    let isOver = false
    let [resolve, rejectTurn]: [(release: Release) => void, (reason: unknown) => void] = [() => {}, () => {}]
    const turn = new Promise<Release>((...settle) => {
      ;[resolve, rejectTurn] = settle
    })
    const waiting: Waiting = {
      client,
      start: () => {
        stop()
        resolve(start(waiting.client, enteredAt))
      },
      fail: (error) => {
        stop()
        clients.remove(waiting)
        meters.waiting(clients.size)
        rejectTurn(error)
      },
    }
    const abort = () => waiting.fail(signal.reason)
    const late = setTimeout(rejectWaiting, LATE * maxWaitMs, waiting)
    const stop = () => {
      isOver = true
      clearTimeout(late)
      signal.removeEventListener('abort', abort)
    }
    signal.addEventListener('abort', abort, { once: true })
    clients.add(waiting)
    meters.waiting(clients.size)
    return {
      turn,
      alsoFor: (key) => {
        const waitingClient = clients.get(key)
        if (isOver || [...waiting.client.line].indexOf(waiting) <= waitingClient.line.size) return
        clients.remove(waiting)
        waiting.client = waitingClient
        clients.add(waiting)
        startNext()
      },
    }
  }
  return {
    rejectEarly: (key) => {
      const client = clients.get(key)
      if (isHeavy(client) && isTooLong(client)) reject()
    },
    enter: (key, signal) => {
      signal.throwIfAborted()
      const client = clients.get(key)
      if (client.line.size === 0) lightAt = clock()
      // Slots per client change with time: waiting requests start before the new one.
      startNext()
      if (may(client)) return { turn: Promise.resolve(start(client, clock())), alsoFor: () => {} }
      makeRoom(client)
      return wait(client, signal)
    },
  }
}
