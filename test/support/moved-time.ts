import { setImmediate } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'

/** Idle event-loop turns before time moves: a response triggers work a few turns later. */
const QUIET_TURNS = 25

/** A clock that stops during requests and otherwise jumps to the next timer. */
export interface MovedTime {
  /** Hook for HTTP clients, called after each response. */
  readonly record: () => void
  /** Makes Redis use this time in scripts that read the time. */
  applyTo(redis: Redis): void
  /** Advances the time until the work is done. */
  live<T>(work: Promise<T>): Promise<T>
  /** Sets the time in Unix milliseconds. */
  moveTo(time: number): Promise<void>
  end(): void
}

/**
 * Replaces the clocks and timers of this process, so that limits of minutes and days pass in seconds. Network and
 * servers run in real time. `start` is in Unix milliseconds.
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
    return send(...request).catch((error: unknown) => {
      // Without a response, `record` is not called: for example when the server closes an idle connection just then.
      underWay -= 1
      throw error
    })
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
    applyTo(redis) {
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
