/** Bounds on provider values. A value beyond them is a mistake of the provider. A dataset's schema may be stricter. */

/** USD per token; no traded asset costs as much. */
export const MOST_PRICE_USD = 1e9

/** USD of one asset or one DAO: well above the largest treasury and the largest protocol. */
export const MOST_HELD_USD = 1e12

/** USD of a market: well above the market cap and the daily volume of any token. */
export const MOST_MARKET_USD = 1e15

/** Whole tokens: the largest supplies have 24 digits. */
export const MOST_TOKENS = 1e30

/** People: holders, members, followers. */
export const MOST_PEOPLE = 1e10
