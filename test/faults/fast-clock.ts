/** Where the fast clock's time begins, in Unix milliseconds. */
export const FAST_CLOCK_BEGINS = Date.parse('2024-05-06T00:00:00Z')

/** A clock, in Unix milliseconds, that runs `speed` times as fast as the wall clock since `startedAt`. */
export function createFastClock(startedAt: number, speed: number): () => number {
  return () => Math.floor(FAST_CLOCK_BEGINS + (Date.now() - startedAt) * speed)
}
