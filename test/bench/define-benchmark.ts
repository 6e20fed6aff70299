/** What the command line asks of every benchmark. */
export interface BenchContext {
  /** Small sizes, to try the benchmark itself: its figures mean little. */
  readonly quick: boolean
  /** Points of the largest generated table. */
  readonly rows: number
  /** Whether to measure PostgreSQL beside the engine where it is installed. */
  readonly postgres: boolean
  /** The folder of recorded provider data, which may be absent. */
  readonly dataDir: string
  /** A line of progress. */
  say(line: string): void
}

/** One measured figure. `unit` is what stands behind it in the table: `ms`, `B/point`, `req/s`. */
interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
}

export interface Target {
  /** As the table shows it: `<= 1.3x`. */
  readonly text: string
  readonly isMet: (value: number) => boolean
}

/** One line of the results: a figure alone, or `a` against `b`. */
export interface BenchRow {
  readonly what: string
  readonly a: Figure
  readonly b?: Figure
  /** `a / b`; the median over the rounds where there were rounds. */
  readonly ratio?: number
  /** Lowest and highest ratio of a round. */
  readonly spread?: readonly [number, number]
  /** How often both sides were measured in turn; absent for what does not vary, such as bytes. */
  readonly rounds?: number
  /** Judged by the ratio where there is one, else by the figure. */
  readonly target?: Target
  /** Why it is as it is; shown unless the target is met. */
  readonly reason?: string
}

/** Figures that no ratio tells. */
export interface BenchTable {
  readonly title: string
  readonly head: readonly string[]
  readonly body: readonly (readonly string[])[]
}

export interface Findings {
  readonly rows: readonly BenchRow[]
  readonly tables?: readonly BenchTable[]
  /** What a reader needs to know to read the figures: sizes, data, what the sides do. */
  readonly notes?: readonly string[]
}

export interface Benchmark {
  readonly name: string
  /** One sentence: what it tells. */
  readonly about: string
  /** What it found, or why it cannot run here. */
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
