/** How the weights of a basket are chosen at a rebalance. */
export const WEIGHTINGS = ['fixed', 'equal', 'marketCap'] as const
export type Weighting = (typeof WEIGHTINGS)[number]

export const REBALANCES = ['never', 'monthly', 'quarterly'] as const
export type Rebalance = (typeof REBALANCES)[number]

/** Why a candidate is not held after a rebalance. */
export const EXCLUSIONS = ['notYetListed', 'ended', 'noMarketCap', 'noPrice', 'belowTop', 'pegged', 'wrapped'] as const
export type Exclusion = (typeof EXCLUSIONS)[number]

/** Why a token leaves a basket between two rebalances. */
export const EXITS = ['ended', 'unpriced'] as const
export type ExitReason = (typeof EXITS)[number]

/** The rule of a basket. Fractions, not percentages. */
export interface Rule {
  readonly weights: Weighting
  /** The number of the largest candidates that are held; all of them without it. */
  readonly top?: number | undefined
  /** The largest weight of a token, with weights by market cap. */
  readonly cap?: number | undefined
  readonly rebalance: Rebalance
  /** Cost in basis points of the traded value: purchases plus sales. */
  readonly costBps: number
  /** Value of the basket on its first day. */
  readonly base: number
}

/** A token that a basket may hold. */
export interface Candidate {
  readonly id: string
  readonly symbol: string
  /** Its part of a fixed basket: positive, scaled to the sum of all parts. */
  readonly share?: number | undefined
  /** The first moment without the token (Unix milliseconds), if it has ended. */
  readonly until?: number | undefined
  /** Set if it follows the price of something else: such a token is not among the largest. */
  readonly kind?: 'pegged' | 'wrapped' | undefined
}

/**
 * Daily values of the candidates. A value is NaN if it is unknown; `prices[token * days.length + day]` is the first
 * price of a day.
 */
export interface Market {
  /** Starts of consecutive days in UTC, in Unix milliseconds. The first one is the day before the first allocation. */
  readonly days: readonly number[]
  /** In the order of their ids. */
  readonly candidates: readonly Candidate[]
  readonly prices: Float64Array
  readonly marketCaps: Float64Array
}
