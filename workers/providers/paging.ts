import { INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import type { Range } from '../job/define-job.ts'

/** Cuts a range into ranges of at most `lengthMs`, oldest first. */
export function toPages(range: Range, lengthMs: number): Range[] {
  const pages: Range[] = []
  for (let from = range.from; from < range.to; from += lengthMs) {
    pages.push({ from, to: Math.min(from + lengthMs, range.to), interval: range.interval })
  }
  return pages
}

/** Returns how many steps of the interval begin in the range, counted from its start. */
export function countSteps({ from, to, interval }: Range): number {
  return Math.max(0, Math.ceil((to - from) / (INTERVAL_SECONDS[interval] * 1000)))
}

/**
 * Returns the first observation of each bucket inside the range, oldest first. Finer data is thinned, coarser data is
 * unchanged. `timeOf` is in Unix milliseconds.
 */
export function thin<T>(observations: readonly T[], timeOf: (observation: T) => number, range: Range): T[] {
  const inside = observations.filter((each) => timeOf(each) >= range.from && timeOf(each) < range.to)
  const firsts = new Map<number, T>()
  for (const each of inside.sort((a, b) => timeOf(a) - timeOf(b))) {
    const bucket = toBucketStart(timeOf(each), range.interval)
    if (!firsts.has(bucket)) firsts.set(bucket, each)
  }
  return [...firsts.values()]
}
