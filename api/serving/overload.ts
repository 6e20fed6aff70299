import type { Asker, Lines } from './lines.ts'

/** Settings of the admission policy: how many slots a client may use and how long requests may wait. */
export interface JudgeOptions {
  /** Maximum number of slots per client, so that a client with few requests finds a free slot beside a flood. */
  readonly perClient: number
  /**
   * Maximum number of slots for a flood (a client with more than `modest` waiting requests) while other clients that
   * are no floods send requests. Default: `perClient`.
   */
  readonly perFlood?: number
  /** Maximum expected waiting time: normally, and in overload. */
  readonly patience?: Patience
  /** A client with at most this number of waiting requests is never part of an overload. */
  readonly modest?: number
  /** A monotonic clock in milliseconds. */
  readonly clock: () => number
}

interface Patience {
  readonly usualMs: number
  readonly overloadMs: number
}

/** A page with a hundred charts waits for all of them, even on a slow machine. */
const BURST = 128
/**
 * A browser sends about this number of requests concurrently. Clients with fewer waiting requests do not overload the
 * service and get the normal waiting time.
 */
const MODEST = 16
/** 3 seconds normally; in overload 1 second for clients with at least `modest` waiting requests. */
const PATIENCE: Patience = { usualMs: 3_000, overloadMs: 1_000 }
/**
 * A queue that was not empty for this time has more work than it can do. Longer queues would only add waiting time,
 * also for requests that arrive after the load ends. In overload the queue is therefore kept short.
 */
const OVERLOADED_AFTER_MS = 2_000
/** A request is rejected after it has waited for this multiple of the normal maximum. */
const GIVEN_UP_AFTER = 3
/** A client counts as active for this many milliseconds after its last request. */
const BESIDE_MS = 1_000
/**
 * In overload, while other clients are active, a flood's slot stays unused for this multiple of its work's duration,
 * and at most for `BESIDE_MS`. The reason: one process writes the answers of the flood and of all other clients.
 */
const REST = 2
/** Weight of the newest duration in the moving average. */
const NEWEST_WEIGHT = 0.1

/** Estimates how fast slots become free. */
function createPace(clock: () => number) {
  let mean = 0
  let lastLeft = clock()
  return {
    left: (tookMs: number) => {
      mean = mean === 0 ? tookMs : mean + NEWEST_WEIGHT * (tookMs - mean)
      lastLeft = clock()
    },
    /** The first slot is taken after a pause, during which no slot could become free. */
    begins: () => {
      lastLeft = clock()
    },
    /**
     * Expected waiting time with `ahead` requests before it and `taken` slots in use. The time since the last slot
     * became free is added, because the wait may continue for as long again.
     */
    expect: (ahead: number, taken: number) => ((ahead + 1) / taken) * mean + (clock() - lastLeft),
  }
}

/** Detects whether other clients are active. Only the last two clients are remembered. */
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
 * Detects floods: a client becomes a flood with more than `modest` waiting requests, and stays one until at most half
 * of that wait. The hysteresis is needed because rejections hold a flood's line at the limit: it would alternate
 * between flood and not, and count as an active client for other floods.
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

/** Admission policy: decides the number of slots per client and whether a request would wait too long. */
export interface Judge {
  /** A request has arrived. */
  came(asker: Asker): void
  /** A client's line became shorter; the client may no longer be a flood. */
  shorter(client: string): void
  /** The queue is empty. */
  empty(): void
  /** The first slot is taken after a pause. */
  begins(): void
  /** A slot became free after `tookMs` milliseconds of work. */
  ends(tookMs: number): void
  /** Current maximum number of slots for a client. */
  toShare(client: string): number
  /**
   * Milliseconds for which a client's slot stays unused after `tookMs` milliseconds of work; 0 if it is free
   * immediately.
   */
  toRestMs(client: string, tookMs: number): number
  /** Whether a new request would have to wait too long with `taken` slots in use. */
  isTooLong(asker: Asker, taken: number): boolean
  /** Like `isTooLong`, but only for floods in overload. */
  isOfFlood(asker: Asker, taken: number): boolean
  /** A request is rejected after it has waited for this time. */
  readonly lateMs: number
}

/** Creates an admission policy that uses the current queue and the recent durations. */
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
  // Requests ahead of the same client use only the client's share of the slots; requests of all clients use all slots.
  const expect = (asker: Asker, taken: number): number => {
    const { ofOwn, ofAll } = lines.ahead(asker)
    const share = Math.min(taken, toShare(asker.client)) / (isResting(asker.client) ? 1 + REST : 1)
    return Math.max(pace.expect(ofAll, taken), pace.expect(ofOwn, share))
  }
  const isTooLong = (asker: Asker, taken: number): boolean => {
    const isOver = isOverloaded()
    const waiting = lines.lengthOf(asker.client)
    const isBurst = !isOver && waiting < BURST
    // While all slots rest, the next one still becomes free soon.
    const busy = Math.max(1, taken)
    const expected = isBurst ? pace.expect(0, busy) : expect(asker, busy)
    return expected > (isOver && waiting >= modest ? patience.overloadMs : patience.usualMs)
  }
  return {
    came: ({ client }) => {
      // Floods do not count as active clients for each other: each would reserve slots that the other does not use.
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
