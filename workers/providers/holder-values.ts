/**
 * Shares come with two decimals or as floats. Their sum is rounded to this many decimals, so that no rounding error is
 * stored.
 */
const SUM_DECIMALS = 1e10

/** The sum of the shares in percent; null when one of them is not a number. */
export function sumShares(holders: readonly { readonly share: unknown }[]): number | null {
  let sum = 0
  for (const { share } of holders) {
    if (typeof share !== 'number') return null
    sum += share
  }
  return Math.round(sum * SUM_DECIMALS) / SUM_DECIMALS
}

/** Providers write addresses in mixed case. */
export function toLowerCase(address: unknown): unknown {
  return typeof address === 'string' ? address.toLowerCase() : address
}
