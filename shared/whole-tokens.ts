/**
 * SQL for an integer in base units as a number of whole tokens. Its digits are parsed, so that the result is the nearest
 * number: a sum of rounded numbers is often another one.
 */
export const toWholeTokens = (units: string, decimals: string): string =>
  `toFloat64(concat(toString(${units}), 'e-', toString(${decimals})))`
