import type { BenchRow, Target } from './define-benchmark.ts'

/** One side of a comparison; `measure` runs it once and returns its figure. */
export interface Side {
  readonly name: string
  measure(): Promise<number>
}

interface Comparison {
  readonly what: string
  readonly unit: string
  readonly a: Side
  readonly b: Side
  /** An odd number, so that the median is a measured value. */
  readonly rounds: number
  readonly target?: Target
  readonly reason?: string
}

/**
 * Measures both sides alternately in every round, so that other load on the machine affects both. The first side
 * alternates too. One uncounted round warms both up.
 */
export async function compare({ what, unit, a, b, rounds, target, reason }: Comparison): Promise<BenchRow> {
  if (rounds % 2 === 0)
    throw new RangeError(`${what}: ${rounds} rounds have no median of their own, take an odd number`)
  const measured: { a: number; b: number }[] = []
  for (let round = -1; round < rounds; round += 1) {
    const aFirst = round % 2 === 0
    const first = await (aFirst ? a : b).measure()
    const second = await (aFirst ? b : a).measure()
    if (round >= 0) measured.push(aFirst ? { a: first, b: second } : { a: second, b: first })
  }
  const ratios = measured.map((pair) => pair.a / pair.b)
  return {
    what,
    a: { name: a.name, value: toMedian(measured.map((pair) => pair.a)), unit },
    b: { name: b.name, value: toMedian(measured.map((pair) => pair.b)), unit },
    ratio: toMedian(ratios),
    spread: [Math.min(...ratios), Math.max(...ratios)],
    rounds,
    ...(target === undefined ? {} : { target }),
    ...(reason === undefined ? {} : { reason }),
  }
}

/** The same side against itself: the range of ratios that is only noise. */
export function compareWithItself(side: Side, unit: string, rounds: number): Promise<BenchRow> {
  return compare({ what: 'A/A: the noise', unit, a: side, b: side, rounds })
}

/** A side with the duration of `work` in milliseconds as its figure: the median of `times` runs. */
export function timed(name: string, work: () => Promise<unknown>, times = 1): Side {
  return {
    name,
    measure: async () => {
      const taken: number[] = []
      for (let time = 0; time < times; time += 1) {
        const startedAt = performance.now()
        await work()
        taken.push(performance.now() - startedAt)
      }
      return toMedian(taken)
    },
  }
}

/** The median; of an even number the mean of the two middle values, NaN without values. */
export function toMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}
