import { toUnavailable } from '../problem/problem.ts'
import { type Asker, createLines, type Lines } from './lines.ts'
import { createJudge, type JudgeOptions } from './overload.ts'

/** Whoever is working; gives the place back, once however often it is called. */
export type Leave = () => void

/** A request for a place. */
interface Ticket {
  /** Resolves once it is its turn. Rejects when the queue gives it up, or with the reason of its signal. */
  readonly turn: Promise<Leave>
  /** Somebody else wants the same work: it is done at the turn of whose turn comes sooner. */
  alsoFor(asker: Asker): void
}

/** Places for work that the database has to do, and those who wait for one. */
export interface Queue {
  /**
   * Turns away in overload who waits for many answers and would wait too long for one more of a route, before it is read what
   * is asked for: what that takes is taken from those who are answered.
   * @throws Problem `unavailable`
   */
  turnAway(asker: Asker): void
  /**
   * Whether `enter` would take somebody, asked before anything is made that he would need: who is refused costs next to
   * nothing.
   * @throws Problem `unavailable` as `enter` would.
   */
  admit(asker: Asker): void
  /**
   * Asks for a place. Who leaves before its turn is not waited for.
   * @throws Problem `unavailable` at once when it would have to wait too long.
   */
  enter(asker: Asker, left: AbortSignal): Ticket
}

/** What is told of a queue. */
export interface QueueMeters {
  waiting(count: number): void
  waited(seconds: number): void
  refused(): void
}

export interface QueueOptions extends Omit<JudgeOptions, 'perClient'> {
  /** How much is done at once. */
  readonly places: number
  /** Most of the places that one client takes; all of them without. */
  readonly perClient?: number
  /** Most that wait. */
  readonly most: number
  readonly meters: QueueMeters
}

interface Waiting {
  asker: Asker
  begin(): void
  giveUp(error: unknown): void
}

/** One for all: making an error takes longer than finding out that it is needed. */
const REFUSAL = toUnavailable('Too many answers are waited for at once.')

/** What becomes of one who waits. */
interface Fates {
  /** Takes the place that is free now. */
  take(client: string): Leave
  /** Begins whose turn it is, where a place is free. */
  next(): void
  /** Called whenever a client has one less in line. */
  shorter(client: string): void
  refuse(waiting: Waiting): void
  readonly lateMs: number
  /** Called whenever somebody has come. */
  changed(): void
}

/** Puts somebody in line, from now until its turn, its leaving or its being given up. */
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
      // A line that is no flood's any more may have more places.
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
 * So much work at once, and a short queue that is fair between clients and their routes. When it is full, who came last
 * to the longest line is refused.
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
    // More than one may begin where a flood has more places than before, since it is alone or none any more.
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
      // Of others' places one is free all the same.
      setTimeout(giveBack, restMs, client).unref()
      next()
    }
  }
  /** @throws Problem `unavailable` when there is none for this asker. */
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
      // Shares grow with the clock: those in line come before who comes now.
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
