/** Options of the command line for every benchmark. */
export interface BenchContext {
  /** Small sizes, to test the benchmark itself: the figures mean little. */
  readonly quick: boolean
  /** Points of the largest generated table. */
  readonly rows: number
  /** Whether to measure an installed PostgreSQL too. */
  readonly postgres: boolean
  /** The folder of recorded provider data, which may be missing. */
  readonly dataDir: string
  /** Prints a line of progress. */
  say(line: string): void
}

/** One measured figure. `unit` follows the value in the table: `ms`, `B/point`, `req/s`. */
interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
}

export interface Target {
  /** The text in the table: `<= 1.3x`. */
  readonly text: string
  readonly isMet: (value: number) => boolean
}

/** One line of the results: a figure alone, or `a` against `b`. */
export interface BenchRow {
  readonly what: string
  readonly a: Figure
  readonly b?: Figure
  /** `a / b`; with several rounds the median. */
  readonly ratio?: number
  /** Lowest and highest ratio of a round. */
  readonly spread?: readonly [number, number]
  /** Number of measurements of each side; absent for constants, such as bytes. */
  readonly rounds?: number
  /** Compared with the ratio if there is one, else with the figure. */
  readonly target?: Target
  /** The explanation of a missed target. */
  readonly reason?: string
}

/** Figures that are not ratios. */
export interface BenchTable {
  readonly title: string
  readonly head: readonly string[]
  readonly body: readonly (readonly string[])[]
}

export interface Findings {
  readonly rows: readonly BenchRow[]
  readonly tables?: readonly BenchTable[]
  /** Sizes, data, and the work of each side, for the reader. */
  readonly notes?: readonly string[]
}

export interface Benchmark {
  readonly name: string
  /** A one-sentence description. */
  readonly about: string
  /** The results, or the reason why it cannot run here. */
  run(context: BenchContext): Promise<Findings | { readonly skipped: string }>
}

export const atMost = (most: number, unit = 'x'): Target => ({
  text: `<= ${most}${unit}`,
  isMet: (value) => value <= most,
})

export const atLeast = (least: number, unit = 'x'): Target => ({
  text: `>= ${least}${unit}`,
  isMet: (value) => value >= least,
})
