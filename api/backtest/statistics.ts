import type { BasketDay } from './back-test.ts'
import { sum } from './sum.ts'

export const PERIODS_PER_YEAR = 365

/** The deepest fall from an earlier highest value, as a fraction (0 or less). Times are Unix milliseconds. */
export interface Drawdown {
  readonly value: number
  readonly peakAt: number
  readonly troughAt: number
  /** The first day with at least the value of the peak again; null if there is none yet. */
  readonly recoveredAt: number | null
}

/** Fractions, not percentages; null if there are too few values or they do not vary. */
export interface Statistics {
  readonly totalReturn: number | null
  readonly maxDrawdown: Drawdown | null
  readonly volatility: number | null
  readonly sharpe: number | null
  readonly trackingError: number | null
  readonly correlation: number | null
  /** Number of daily returns, and of those with a return of the Index. */
  readonly returns: number
  readonly returnsWithIndex: number
}

const mean = (values: readonly number[]) => sum(values) / values.length

/** The sample standard deviation; undefined for fewer than two values. */
function toDeviation(values: readonly number[]): number | undefined {
  if (values.length < 2) return undefined
  const middle = mean(values)
  return Math.sqrt(sum(values.map((value) => (value - middle) ** 2)) / (values.length - 1))
}

const toYearly = (deviation: number) => deviation * Math.sqrt(PERIODS_PER_YEAR)

/** Pearson's correlation; null if one side does not vary. */
function toCorrelation(pairs: readonly (readonly [number, number])[]): number | null {
  if (pairs.length < 2) return null
  const [a, b] = [mean(pairs.map(([one]) => one)), mean(pairs.map(([, other]) => other))]
  const together = sum(pairs.map(([one, other]) => (one - a) * (other - b)))
  const alone = Math.sqrt(sum(pairs.map(([one]) => (one - a) ** 2)) * sum(pairs.map(([, other]) => (other - b) ** 2)))
  return alone === 0 ? null : together / alone
}

/** Finds the deepest fall; the first day counts as a peak. Null without a known value. */
function toDrawdown(days: readonly BasketDay[]): Drawdown | null {
  const known = days.flatMap(({ at, nav }) => (nav === null ? [] : [{ at, nav }]))
  let peak = known[0]
  if (peak === undefined) return null
  let [deepest, top] = [{ value: 0, peakAt: peak.at, troughAt: peak.at }, peak.nav]
  for (const day of known) {
    if (day.nav > peak.nav) peak = day
    const value = day.nav / peak.nav - 1
    if (value < deepest.value) [deepest, top] = [{ value, peakAt: peak.at, troughAt: day.at }, peak.nav]
  }
  const recovered = known.find(({ at, nav }) => at >= deepest.troughAt && nav >= top)
  return { ...deepest, recoveredAt: recovered?.at ?? null }
}

/**
 * Computes the statistics of a basket, with the Index's values of the same days (null if unknown). Daily returns next
 * to a day without a value are left out. `totalReturn` and `maxDrawdown` use all known values.
 */
export function toStatistics(days: readonly BasketDay[], index: readonly (number | null)[]): Statistics {
  const returns = days.flatMap((day) => (day.return === null ? [] : [day.return]))
  const pairs = days.flatMap((day, place) => {
    const [before, now] = [index[place - 1] ?? null, index[place] ?? null]
    return day.return === null || before === null || now === null ? [] : [[day.return, now / before - 1] as const]
  })
  const deviation = toDeviation(returns)
  const apart = toDeviation(pairs.map(([own, other]) => own - other))
  const [first, last] = [days[0]?.nav ?? null, days.findLast(({ nav }) => nav !== null)?.nav ?? null]
  return {
    totalReturn: first === null || last === null ? null : last / first - 1,
    maxDrawdown: toDrawdown(days),
    volatility: deviation === undefined ? null : toYearly(deviation),
    sharpe:
      deviation === undefined || deviation === 0 ? null : (mean(returns) / deviation) * Math.sqrt(PERIODS_PER_YEAR),
    trackingError: apart === undefined ? null : toYearly(apart),
    correlation: toCorrelation(pairs),
    returns: returns.length,
    returnsWithIndex: pairs.length,
  }
}
