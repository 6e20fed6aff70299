import { setImmediate as others } from 'node:timers/promises'

/** Work that may pause after each of its steps, and gives a result. */
export type Steps<T> = Generator<void, T>

/** Does work from its first step to its last. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Does work step by step; whatever else the process does goes on in between. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    await others()
  }
}

/** So many values are a step of about ten milliseconds. */
const AT_ONCE = 5_000

/** As `values.map(work)`, in steps. */
export function* mapInSteps<T, Result>(values: readonly T[], work: (value: T) => Result): Steps<Result[]> {
  const results: Result[] = []
  for (const value of values) {
    results.push(work(value))
    if (results.length % AT_ONCE === 0) yield
  }
  return results
}
