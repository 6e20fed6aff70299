/** Shares have two decimals or a float's; this many are kept of their sum, so that no rounding dust is stored. */
const SUM_DECIMALS = 1e10

/**
 * A balance in base units, as a decimal string or a number with or without an exponent, in whole tokens. The point is
 * moved in the decimal text, so that the only rounding is the last one, to the nearest number. Undefined and what is no
 * balance come back as null.
 */
export function toWholeTokens(baseUnits: unknown, decimals: number): number | null {
  if (typeof baseUnits !== 'string' && typeof baseUnits !== 'number') return null
  const [, digits, exponent = '0'] = /^(\d+(?:\.\d+)?)(?:e([+-]?\d+))?$/i.exec(String(baseUnits)) ?? []
  return digits === undefined ? null : Number(`${digits}e${Number(exponent) - decimals}`)
}

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
