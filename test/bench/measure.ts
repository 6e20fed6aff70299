import type { BenchRow, Target } from './define-benchmark.ts'

/** One of two things that are compared; `measure` does it once and returns its figure. */
export interface Side {
  readonly name: string
  measure(): Promise<number>
}

interface Comparison {
  readonly what: string
  readonly unit: string
  readonly a: Side
  readonly b: Side
  /** An odd number, so that the median is a measured one. */
  readonly rounds: number
  readonly target?: Target
  readonly reason?: string
}

/**
 * Measures both sides in turn, one after the other in every round, so that whatever else loads the machine loads both.
 * The side that goes first changes with the round. One round before them warms both up and does not count.
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

/** The same side against itself: ratios that are no further from 1 than this mean nothing. */
export function compareWithItself(side: Side, unit: string, rounds: number): Promise<BenchRow> {
  return compare({ what: 'A/A: the noise', unit, a: side, b: side, rounds })
}

/** A side whose figure is how long `work` takes, in milliseconds: the median of `times` in one go. */
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

/** The middle one; of an even number the mean of both in the middle. NaN of nothing. */
export function toMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}
