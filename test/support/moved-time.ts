import { setImmediate } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'

/** Turns of the loop in which nothing is under way: what an answer sets off comes a few turns after it. */
const QUIET_TURNS = 25

/** A time that stands still while a request is under way, and else moves on to what is waited for next. */
export interface MovedTime {
  /** For HTTP clients, which tell here that a request is answered. */
  readonly record: () => void
  /** Has Redis tell this time to the scripts that ask it. */
  tellTo(redis: Redis): void
  /** Moves the time on until the work is done. */
  live<T>(work: Promise<T>): Promise<T>
  /** Moves it to a time in Unix milliseconds. */
  moveTo(time: number): Promise<void>
  end(): void
}

/**
 * Takes over the clocks and timers of this process, so that limits of minutes and days are lived through in seconds. The
 * network, and who answers there, go on as they are. `start` is Unix milliseconds.
 */
export function createMovedTime(start: number): MovedTime {
  vi.useFakeTimers({
    now: start,
    toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  })
  let underWay = 0
  const send = globalThis.fetch
  const sent = vi.spyOn(globalThis, 'fetch').mockImplementation((...request) => {
    underWay += 1
    return send(...request)
  })
  async function beQuiet(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet += 1) {
      await setImmediate()
      if (underWay > 0) quiet = 0
    }
  }
  return {
    record: () => {
      underWay -= 1
    },
    tellTo(redis) {
      vi.spyOn(redis, 'eval').mockImplementation(async (script: unknown, ...rest: unknown[]) => {
        const now = Date.now()
        const clock = `{'${Math.floor(now / 1000)}', '${(now % 1000) * 1000}'}`
        underWay += 1
        try {
          return await redis.call('EVAL', String(script).replace("redis.call('TIME')", clock), ...rest.map(String))
        } finally {
          underWay -= 1
        }
      })
    },
    async live(work) {
      let isDone = false
      const end = () => {
        isDone = true
      }
      work.then(end, end)
      for (;;) {
        await beQuiet()
        if (isDone) return work
        await vi.advanceTimersToNextTimerAsync()
      }
    },
    moveTo: async (time) => void (await vi.advanceTimersByTimeAsync(time - Date.now())),
    end() {
      sent.mockRestore()
      vi.useRealTimers()
    },
  }
}
