import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

/** Work that may pause after each step and returns a result. */
export type Steps<T> = Generator<void, T>

/** Runs all steps without a pause. */
export function runToEnd<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Runs work step by step and yields to the event loop after each step. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    await yieldToEventLoop()
  }
}

/** Number of values that take about ten milliseconds. */
const STEP_VALUES = 5_000

/** Like `values.map(work)`, in steps. */
export function* mapInSteps<T, Result>(values: readonly T[], work: (value: T) => Result): Steps<Result[]> {
  const results: Result[] = []
  for (const value of values) {
    results.push(work(value))
    if (results.length % STEP_VALUES === 0) yield
  }
  return results
}
