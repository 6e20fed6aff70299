/** An exact decimal number: `units` divided by ten to the power of `places`. Sums and products lose no digits. */
export interface Decimal {
  readonly units: bigint
  /** Never negative. */
  readonly places: number
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i

/** Parses a number's shortest text exactly; accepts the text of any finite number. */
export function toDecimal(text: string): Decimal {
  const [, sign = '', integerDigits, fraction = '', exponent = '0'] = NUMBER.exec(text) ?? []
  if (integerDigits === undefined) throw new RangeError(`not a decimal number: ${text}`)
  const units = BigInt(`${sign}${integerDigits}${fraction}`)
  const places = fraction.length - Number(exponent)
  return places >= 0 ? { units, places } : { units: units * 10n ** BigInt(-places), places: 0 }
}

export function plus(a: Decimal, b: Decimal): Decimal {
  const places = Math.max(a.places, b.places)
  return { units: toUnits(a, places) + toUnits(b, places), places }
}

export function times(a: Decimal, b: Decimal): Decimal {
  return { units: a.units * b.units, places: a.places + b.places }
}

/** Returns the quotient, truncated to `places`. `b` must not be zero. */
export function dividedBy(a: Decimal, b: Decimal, places: number): Decimal {
  const units = (a.units * 10n ** BigInt(b.places + places)) / (b.units * 10n ** BigInt(a.places))
  return { units, places }
}

/** Formats without an exponent and without trailing zeros. */
export function toText({ units, places }: Decimal): string {
  const sign = units < 0n ? '-' : ''
  const digits = String(units < 0n ? -units : units).padStart(places + 1, '0')
  const fraction = digits.slice(digits.length - places).replace(/0+$/, '')
  const integerPart = digits.slice(0, digits.length - places)
  return places === 0 || fraction === '' ? sign + integerPart : `${sign}${integerPart}.${fraction}`
}

function toUnits({ units, places }: Decimal, targetPlaces: number): bigint {
  return units * 10n ** BigInt(targetPlaces - places)
}
