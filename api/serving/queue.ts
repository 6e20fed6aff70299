import { toUnavailable } from '../problem/problem.ts'
import { type Asker, createLines, type Lines } from './lines.ts'

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

export interface QueueOptions {
  /** How much is done at once. */
  readonly places: number
  /** Most of the places that one client takes, so that who asks for little finds one free beside a flood; all of them without. */
  readonly perClient?: number
  /** The same of a flood, who waits for more than `modest`, while others come who are none, so that it does not slow their work down. */
  readonly perFlood?: number
  /** Most that wait. */
  readonly most: number
  /** How long anybody may expect to wait, where it is not for seconds only: usually, and in overload. */
  readonly patience?: { readonly usualMs: number; readonly overloadMs: number }
  /** Who waits for so few is never part of an overload. */
  readonly modest?: number
  readonly meters: QueueMeters
  /** A clock in milliseconds that only goes forward. */
  readonly clock: () => number
}

/** A page with a hundred charts waits for all of them, however slow the machine is. */
const BURST = 128
/** Who waits for no more than a browser does at once is not what overloads the service, and may wait as long as usual. */
const MODEST = 16
/** Seconds; in overload one for who asks for more than that. */
const PATIENCE = { usualMs: 3_000, overloadMs: 1_000 }
/**
 * A queue that has not been empty for so long has more to do than it can. Whoever waited on would only wait longer, and
 * so would everybody who comes after the load has gone: then the queue is kept short.
 */
const OVERLOADED_AFTER_MS = 2_000
/** Who has waited so many times as long as anybody may expect to is given up. */
const GIVEN_UP_AFTER = 3
/** Others are there as long as one of them came within so many milliseconds. */
const BESIDE_MS = 1_000
/**
 * So many times as long as its work took a flood's place rests in overload, while others are there, and never longer than
 * these are remembered: its answers are written by the process that writes theirs.
 */
const REST = 2
/** What the newest duration counts in the mean of all. */
const NEWEST_WEIGHT = 0.1

interface Waiting {
  asker: Asker
  begin(): void
  giveUp(error: unknown): void
}

/** How fast places become free. */
function createPace(clock: () => number) {
  let mean = 0
  let lastLeft = clock()
  return {
    left: (tookMs: number) => {
      mean = mean === 0 ? tookMs : mean + NEWEST_WEIGHT * (tookMs - mean)
      lastLeft = clock()
    },
    /** The first to take a place after a pause: that nobody left meanwhile says nothing. */
    begins: () => {
      lastLeft = clock()
    },
    /** How long somebody waits who has so many before him, when so many places are taken. While nobody leaves, it may well go on for as long again. */
    expect: (ahead: number, taken: number) => ((ahead + 1) / taken) * mean + (clock() - lastLeft),
  }
}

/** One for all: making an error takes longer than finding out that it is needed. */
const REFUSAL = toUnavailable('Too many answers are waited for at once.')

type Pace = ReturnType<typeof createPace>

/** Tells who would have to wait too long, where a client has so many of the places, and so much of their time. */
function createJudge(
  options: QueueOptions,
  lines: Lines<Waiting>,
  pace: Pace,
  { toShare, isFlood }: { toShare(client: string): number; isFlood(client: string): boolean },
) {
  const { patience = PATIENCE, modest = MODEST, clock } = options
  let emptyAt = clock()
  const isOverloaded = () => lines.size > 0 && clock() - emptyAt > OVERLOADED_AFTER_MS
  const isResting = (client: string) => options.perFlood !== undefined && isOverloaded() && isFlood(client)
  // Whoever is before it in its own line takes its places in turn, whoever else is before it all of them.
  const expect = (asker: Asker, taken: number): number => {
    const { ofOwn, ofAll } = lines.ahead(asker)
    const share = Math.min(taken, toShare(asker.client)) / (isResting(asker.client) ? 1 + REST : 1)
    return Math.max(pace.expect(ofAll, taken), pace.expect(ofOwn, share))
  }
  const isTooLong = (asker: Asker, taken: number): boolean => {
    const isOver = isOverloaded()
    const waiting = lines.lengthOf(asker.client)
    const isBurst = !isOver && waiting < BURST
    // While all that work rest, the next one begins soon all the same.
    const busy = Math.max(1, taken)
    const expected = isBurst ? pace.expect(0, busy) : expect(asker, busy)
    return expected > (isOver && waiting >= modest ? patience.overloadMs : patience.usualMs)
  }
  return {
    empty: () => {
      emptyAt = clock()
    },
    isTooLong,
    /** Whether a client's places rest after their work. */
    isResting,
    isOfFlood: (asker: Asker, taken: number): boolean =>
      isOverloaded() && lines.lengthOf(asker.client) >= modest && isTooLong(asker, taken),
  }
}

/** Tells who is not alone. Of all who came only the last two are remembered. */
function createCompany(clock: () => number) {
  let newest = { client: '', at: Number.NEGATIVE_INFINITY }
  let before = newest
  return {
    came: (client: string) => {
      if (client !== newest.client) before = newest
      newest = { client, at: clock() }
    },
    isBesideOthers: (client: string) => {
      const { at } = client === newest.client ? before : newest
      return clock() - at < BESIDE_MS
    },
  }
}

/**
 * Tells who is a flood: who waited for more than `modest`, until it waits for less than half of that. Refusals hold the
 * line of a flood at the edge, where it would be one and none in turn, and company to others like it.
 */
function createFloods(lines: Lines<Waiting>, modest: number) {
  const found = new Set<string>()
  return {
    has: (client: string) => {
      const waiting = lines.lengthOf(client)
      if (waiting > modest) found.add(client)
      else if (waiting < modest / 2) found.delete(client)
      return found.has(client)
    },
    clear: () => found.clear(),
  }
}

/** What becomes of one who waits. */
interface Fates {
  /** Takes the place that is free now. */
  take(client: string): Leave
  /** Begins whose turn it is, where a place is free. */
  next(): void
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
      resolve(fates.take(waiting.asker.client))
    },
    giveUp: (error) => {
      stop()
      lines.remove(waiting.asker, waiting)
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
  const { places, perClient = places, perFlood = perClient, most, modest = MODEST } = options
  const { patience = PATIENCE, meters, clock } = options
  const lines = createLines<Waiting>()
  const pace = createPace(clock)
  const company = createCompany(clock)
  const held = new Map<string, number>()
  let taken = 0

  const heldBy = (client: string) => held.get(client) ?? 0
  const floods = createFloods(lines, modest)
  const isFlood = (client: string) => floods.has(client) && company.isBesideOthers(client)
  const toShare = (client: string) => (isFlood(client) ? perFlood : perClient)
  const judge = createJudge(options, lines, pace, { toShare, isFlood })
  // Floods beside each other are no company: each would leave places to the other that nobody takes.
  const noteCame = ({ client }: Asker) => {
    if (!floods.has(client)) company.came(client)
  }
  const may = (client: string) => taken < places && heldBy(client) < toShare(client)
  const changed = () => {
    if (lines.size === 0) {
      judge.empty()
      floods.clear()
    }
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
    if (taken === 0) pace.begins()
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
      pace.left(tookMs)
      if (!judge.isResting(client)) return giveBack(client)
      // Of others' places one is free all the same.
      setTimeout(giveBack, Math.min(REST * tookMs, BESIDE_MS), client).unref()
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
    noteCame(asker)
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
      noteCame(asker)
      if (may(asker.client)) return { turn: Promise.resolve(take(asker.client, cameAt)), alsoFor: () => {} }
      admit(asker)
      const lateMs = GIVEN_UP_AFTER * patience.usualMs
      return createTicket(lines, asker, left, { take: (client) => take(client, cameAt), next, refuse, lateMs, changed })
    },
  }
}
