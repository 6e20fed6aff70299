/**
 * Returns the last member of an ordered list for which a test holds. The test must hold for the first members and for
 * none after them.
 */
export function findLast<T>(sorted: readonly T[], holds: (member: T) => boolean): T | undefined {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(sorted[middle] as T)) low = middle + 1
    else high = middle
  }
  return sorted[low - 1]
}
