/**
 * Converts a balance in base units, a decimal string or a number with or without an exponent, to whole tokens. The
 * decimal point is moved in the text, so that only the final conversion rounds, to the nearest number. Undefined and
 * invalid balances return null.
 */
export function toTokenUnits(baseUnits: unknown, decimals: number): number | null {
  if (typeof baseUnits !== 'string' && typeof baseUnits !== 'number') return null
  const [, digits, exponent = '0'] = /^(\d+(?:\.\d+)?)(?:e([+-]?\d+))?$/i.exec(String(baseUnits)) ?? []
  return digits === undefined ? null : Number(`${digits}e${Number(exponent) - decimals}`)
}
