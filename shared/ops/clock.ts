import type { Redis } from 'ioredis'
import { callRedis } from '../queue/queues.ts'
import { type Database, readEngineTime } from '../store/store.ts'
import type { Logger } from '../telemetry/log.ts'

/** The clock for slots. */
export interface Clock {
  /** The time in Unix milliseconds. */
  readonly now: () => number
  /**
   * Compares this machine's clock with those of the stores, if the last comparison is older than a minute or the
   * machine's clock was set since then.
   * @throws DataError `storage` if a store does not respond.
   */
  sync(): Promise<void>
}

interface ClockOptions {
  readonly db: Database
  readonly redis: Redis
  readonly log: Logger
  /** Reads the clock of this machine, in Unix milliseconds. */
  readonly local?: () => number
  /** A monotonic clock in milliseconds. */
  readonly passed?: () => number
}

const SYNC_MS = 60_000
/** Smaller differences are response time and affect no slot. */
const TOLERATED_MS = 1_000

/**
 * Returns the median of three clocks: this machine's, ClickHouse's and Redis'. So one wrong clock, for example of a
 * machine without a time service, neither collects future slots nor drops current ones.
 */
export function createClock({
  db,
  redis,
  log,
  local = Date.now,
  passed = () => performance.now(),
}: ClockOptions): Clock {
  let measured: { readonly at: number; readonly local: number; readonly passed: number } | undefined
  let loggedOffset = 0
  let syncing: Promise<void> | undefined
  const isStale = () => {
    if (measured === undefined) return true
    const [byLocal, byPassed] = [local() - measured.local, passed() - measured.passed]
    return byPassed >= SYNC_MS || Math.abs(byLocal - byPassed) > TOLERATED_MS
  }
  const measure = async () => {
    const before = local()
    const stores = await Promise.all([readEngineTime(db), readRedisTime(redis)])
    const here = local()
    // The response time of a store limits the precision of its offset.
    const aheads = stores.map((time) => (time < before ? time - before : Math.max(0, time - here)))
    const middle = [0, ...aheads].sort((a, b) => a - b)[1] ?? 0
    const offset = Math.abs(middle) > TOLERATED_MS ? middle : 0
    measured = { at: here + offset, local: here, passed: passed() }
    if (Math.abs(offset - loggedOffset) > TOLERATED_MS) {
      const [clickhouseMs, redisMs] = aheads
      log.warn({ aheadMs: -offset, clickhouseMs, redisMs }, toWords(offset))
      loggedOffset = offset
    }
  }
  return {
    now: () => {
      if (measured === undefined) return local()
      // If the clock is set back, the monotonic clock counts; if the machine slept, the wall clock counts.
      return measured.at + Math.max(local() - measured.local, Math.floor(passed() - measured.passed))
    },
    sync: async () => {
      if (!isStale()) return
      syncing ??= measure().finally(() => {
        syncing = undefined
      })
      await syncing
    },
  }
}

function toWords(offset: number): string {
  if (offset === 0) return "this machine's clock agrees with the stores' again"
  const seconds = Math.round(Math.abs(offset) / 1000)
  const way = offset < 0 ? 'ahead of' : 'behind'
  return `this machine's clock is ${seconds} s ${way} those of ClickHouse and Redis: slots go by the stores' time; check its time service`
}

async function readRedisTime(redis: Redis): Promise<number> {
  const [seconds, micros] = await callRedis('its time', () => redis.time())
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}
