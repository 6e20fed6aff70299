/** The sum of numbers with the rounding errors of all additions (Neumaier's compensated summation). */
export function sum(values: Iterable<number>): number {
  let [total, lost] = [0, 0]
  for (const value of values) {
    const next = total + value
    lost += Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total
    total = next
  }
  return total + lost
}
