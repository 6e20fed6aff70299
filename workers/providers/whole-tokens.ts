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
