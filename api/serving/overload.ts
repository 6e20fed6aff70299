import type { Asker, Lines } from './lines.ts'

/** What decides who may wait, and how many places are whose. */
export interface JudgeOptions {
  /** Most of the places that one client takes, so that who asks for little finds one free beside a flood. */
  readonly perClient: number
  /** The same of a flood, who waits for more than `modest`, while others come who are none, so that it does not slow their work down; as many as of anybody without. */
  readonly perFlood?: number
  /** How long anybody may expect to wait, where it is not for seconds only: usually, and in overload. */
  readonly patience?: Patience
  /** Who waits for so few is never part of an overload. */
  readonly modest?: number
  /** A clock in milliseconds that only goes forward. */
  readonly clock: () => number
}

interface Patience {
  readonly usualMs: number
  readonly overloadMs: number
}

/** A page with a hundred charts waits for all of them, however slow the machine is. */
const BURST = 128
/** Who waits for no more than a browser does at once is not what overloads the service, and may wait as long as usual. */
const MODEST = 16
/** Seconds; in overload one for who asks for more than that. */
const PATIENCE: Patience = { usualMs: 3_000, overloadMs: 1_000 }
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
 * Tells who is a flood: who waited for more than `modest`, until it waits for no more than half of that. Refusals hold the
 * line of a flood at the edge, where it would be one and none in turn, and company to others like it.
 */
function createFloods<T>(lines: Lines<T>, modest: number) {
  const found = new Set<string>()
  return {
    has: (client: string) => {
      const waiting = lines.lengthOf(client)
      if (waiting > modest) found.add(client)
      else if (waiting <= modest / 2) found.delete(client)
      return found.has(client)
    },
  }
}

/** Tells how many places are whose, and who would have to wait too long for one. */
export interface Judge {
  /** Somebody has come. */
  came(asker: Asker): void
  /** A line has become shorter, and its client may be a flood no more. */
  shorter(client: string): void
  /** Nobody waits. */
  empty(): void
  /** The first place is taken after a pause. */
  begins(): void
  /** A place has become free after so many milliseconds of work. */
  ends(tookMs: number): void
  /** Most places that a client takes now. */
  toShare(client: string): number
  /** How long a client's place rests after so many milliseconds of work; 0 where it does not. */
  toRestMs(client: string, tookMs: number): number
  /** Whether somebody who comes now would have to wait too long, where so many places are taken. */
  isTooLong(asker: Asker, taken: number): boolean
  /** Whether it is so for a flood in overload. */
  isOfFlood(asker: Asker, taken: number): boolean
  /** Who has waited for so many milliseconds is given up. */
  readonly lateMs: number
}

/** Judges by who waits now and how fast it has gone until now. */
export function createJudge<T>(lines: Lines<T>, options: JudgeOptions): Judge {
  const { perClient, perFlood, patience = PATIENCE, modest = MODEST, clock } = options
  const pace = createPace(clock)
  const company = createCompany(clock)
  const floods = createFloods(lines, modest)
  let emptyAt = clock()

  const isOverloaded = () => lines.size > 0 && clock() - emptyAt > OVERLOADED_AFTER_MS
  const isFlood = (client: string) => floods.has(client) && company.isBesideOthers(client)
  const isResting = (client: string) => perFlood !== undefined && isOverloaded() && isFlood(client)
  const toShare = (client: string) => (isFlood(client) ? (perFlood ?? perClient) : perClient)
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
    came: ({ client }) => {
      // Floods beside each other are no company: each would leave places to the other that nobody takes.
      if (!floods.has(client)) company.came(client)
    },
    shorter: (client) => void floods.has(client),
    empty: () => {
      emptyAt = clock()
    },
    begins: pace.begins,
    ends: pace.left,
    toShare,
    toRestMs: (client, tookMs) => (isResting(client) ? Math.min(REST * tookMs, BESIDE_MS) : 0),
    isTooLong,
    isOfFlood: (asker, taken) => isOverloaded() && lines.lengthOf(asker.client) >= modest && isTooLong(asker, taken),
    lateMs: GIVEN_UP_AFTER * patience.usualMs,
  }
}
