import { toUnavailable } from '../problem/problem.ts'
import { type Asker, createLines, type Lines } from './lines.ts'
import { createJudge, type JudgeOptions } from './overload.ts'

/** Releases a slot. Repeated calls have no effect. */
export type Leave = () => void

/** A request for a slot. */
interface Ticket {
  /** Resolves when a slot is assigned. Rejects when the queue rejects the request, or with the reason of its signal. */
  readonly turn: Promise<Leave>
  /** Another client requests the same work: the request takes the better of the two positions. */
  alsoFor(asker: Asker): void
}

/** A limited number of slots for database work, with a fair queue for requests that wait for one. */
export interface Queue {
  /**
   * Rejects a flood's request early in overload, before its parameters are parsed: parsing would take time from
   * requests that are answered.
   * @throws Problem `unavailable`
   */
  turnAway(asker: Asker): void
  /**
   * Checks whether `enter` would accept the request, before anything else is prepared for it, so that a rejection is
   * cheap.
   * @throws Problem `unavailable` as `enter` would.
   */
  admit(asker: Asker): void
  /**
   * Requests a slot. If the client disconnects before its turn, the request leaves the queue.
   * @throws Problem `unavailable` immediately if the request would have to wait too long.
   */
  enter(asker: Asker, left: AbortSignal): Ticket
}

/** Callbacks for the queue's metrics. */
export interface QueueMeters {
  waiting(count: number): void
  waited(seconds: number): void
  refused(): void
}

export interface QueueOptions extends Omit<JudgeOptions, 'perClient'> {
  /** Number of slots: the maximum of concurrent work. */
  readonly places: number
  /** Maximum number of slots per client. Default: all slots. */
  readonly perClient?: number
  /** Maximum number of waiting requests. */
  readonly most: number
  readonly meters: QueueMeters
}

interface Waiting {
  asker: Asker
  begin(): void
  giveUp(error: unknown): void
}

/** One shared error object: creating an error takes longer than deciding to reject. */
const REFUSAL = toUnavailable('Too many answers are waited for at once.')

/** Queue callbacks: what happens to a waiting request. */
interface Fates {
  /** Takes the free slot. */
  take(client: string): Leave
  /** Starts the next requests while slots are free. */
  next(): void
  /** Called when a client has one waiting request less. */
  shorter(client: string): void
  refuse(waiting: Waiting): void
  readonly lateMs: number
  /** Called when a request was added to the queue. */
  changed(): void
}

/** Adds a request to the queue until its turn, its client's disconnect or its rejection. */
function createTicket(lines: Lines<Waiting>, asker: Asker, left: AbortSignal, fates: Fates): Ticket {
  let isOver = false
  let [resolve, reject]: [(place: Leave) => void, (reason: unknown) => void] = [() => {}, () => {}]
  const turn = new Promise<Leave>((...settle) => {
    ;[resolve, reject] = settle
  })
  const waiting: Waiting = {
    asker,
    begin: () => {
      stop()
      fates.shorter(waiting.asker.client)
      resolve(fates.take(waiting.asker.client))
    },
    giveUp: (error) => {
      stop()
      lines.remove(waiting.asker, waiting)
      fates.shorter(waiting.asker.client)
      // A client that is no longer a flood may use more slots.
      fates.next()
      reject(error)
    },
  }
  const leave = () => waiting.giveUp(left.reason)
  const late = setTimeout(() => fates.refuse(waiting), fates.lateMs)
  const stop = () => {
    isOver = true
    clearTimeout(late)
    left.removeEventListener('abort', leave)
  }
  left.addEventListener('abort', leave, { once: true })
  lines.add(asker, waiting)
  fates.changed()
  return {
    turn,
    alsoFor: (other) => {
      if (isOver || other.client === waiting.asker.client) return
      if (lines.ahead(other).ofAll >= lines.ahead(waiting.asker).ofAll) return
      lines.remove(waiting.asker, waiting)
      fates.shorter(waiting.asker.client)
      waiting.asker = other
      lines.add(other, waiting)
      fates.next()
    },
  }
}

/**
 * Creates a limited number of slots with a short queue that is fair between clients and their routes. When the queue is
 * full, the newest request of the longest line is rejected.
 */
export function createQueue(options: QueueOptions): Queue {
  const { places, perClient = places, most, meters, clock } = options
  const lines = createLines<Waiting>()
  const judge = createJudge(lines, { ...options, perClient })
  const held = new Map<string, number>()
  let taken = 0

  const heldBy = (client: string) => held.get(client) ?? 0
  const may = (client: string) => taken < places && heldBy(client) < judge.toShare(client)
  const changed = () => {
    if (lines.size === 0) judge.empty()
    meters.waiting(lines.size)
  }
  const refuse = (waiting: Waiting) => {
    meters.refused()
    waiting.giveUp(REFUSAL)
  }
  const next = () => {
    // More than one request may start if a client got more slots because it is alone or no longer a flood.
    for (let one = lines.take(may); one !== undefined; one = lines.take(may)) one.begin()
    changed()
  }
  const giveBack = (client: string) => {
    if (heldBy(client) > 1) held.set(client, heldBy(client) - 1)
    else held.delete(client)
    next()
  }
  const take = (client: string, cameAt: number): Leave => {
    if (taken === 0) judge.begins()
    taken += 1
    held.set(client, heldBy(client) + 1)
    const since = clock()
    meters.waited((since - cameAt) / 1000)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      taken -= 1
      const tookMs = clock() - since
      judge.ends(tookMs)
      const restMs = judge.toRestMs(client, tookMs)
      if (restMs === 0) return giveBack(client)
      // A slot is free for other clients while this client's slot rests.
      setTimeout(giveBack, restMs, client).unref()
      next()
    }
  }
  /** @throws Problem `unavailable` if the queue cannot accept a request of this client. */
  const makeRoom = (asker: Asker) => {
    const isFull = lines.size >= most
    const isTooLong = judge.isTooLong(asker, taken)
    const displaced = isFull && !isTooLong ? lines.giveWay(asker) : undefined
    if (displaced !== undefined) return refuse(displaced)
    if (!isFull && !isTooLong) return
    meters.refused()
    throw REFUSAL
  }
  const admit = (asker: Asker) => {
    judge.came(asker)
    if (!may(asker.client)) makeRoom(asker)
  }
  return {
    turnAway: (asker) => {
      if (!judge.isOfFlood(asker, taken)) return
      meters.refused()
      throw REFUSAL
    },
    admit,
    enter: (asker, left) => {
      left.throwIfAborted()
      const cameAt = clock()
      // Shares change with time: start waiting requests before the new one.
      next()
      judge.came(asker)
      if (may(asker.client)) return { turn: Promise.resolve(take(asker.client, cameAt)), alsoFor: () => {} }
      admit(asker)
      const { shorter, lateMs } = judge
      const own = { take: (client: string) => take(client, cameAt), lateMs }
      return createTicket(lines, asker, left, { ...own, next, shorter, refuse, changed })
    },
  }
}
