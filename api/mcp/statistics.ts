import { type Json, shorten, valueAt } from './table.ts'

/** Summary of a series' column over its known points; undefined if there is none. */
export function toStatistics(times: readonly string[], values: readonly unknown[]): Json | undefined {
  const points = values.flatMap((value, index) =>
    typeof value === 'number' ? [{ at: times[index] ?? '', value }] : [],
  )
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const min = points.reduce((best, one) => (one.value < best.value ? one : best))
  const max = points.reduce((best, one) => (one.value > best.value ? one : best))
  const change = last.value - first.value
  const statistics = {
    first,
    last,
    min,
    max,
    change,
    changePercent: first.value === 0 ? null : (100 * change) / first.value,
  }
  return shorten(statistics, 0) as Json
}

/** Ranges of buckets without any value: both ends are starts of buckets. */
export function findGaps(times: readonly string[], records: readonly Json[], members: readonly string[]) {
  const gaps: { from: string; to: string; buckets: number }[] = []
  let isOpen = false
  for (const [index, record] of records.entries()) {
    const isMissing = members.every((path) => valueAt(record, path) === null)
    const at = times[index] ?? ''
    const last = gaps.at(-1)
    if (isMissing && isOpen && last !== undefined) {
      last.to = at
      last.buckets += 1
    } else if (isMissing) gaps.push({ from: at, to: at, buckets: 1 })
    isOpen = isMissing
  }
  return gaps
}
