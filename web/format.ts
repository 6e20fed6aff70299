/** How a number is written. */
export type Kind = 'usd' | 'count' | 'percent' | 'change' | 'share' | 'amount'

const make = (options: Intl.NumberFormatOptions) => new Intl.NumberFormat('en', options)

const usd = { style: 'currency', currency: 'USD' } as const
const COMPACT = { notation: 'compact', maximumFractionDigits: 2 } as const

const FORMATS = {
  usdLarge: make({ ...usd, ...COMPACT }),
  usd: make({ ...usd, maximumFractionDigits: 2 }),
  usdSmall: make({ ...usd, minimumSignificantDigits: 3, maximumSignificantDigits: 4 }),
  usdWhole: make({ ...usd, maximumSignificantDigits: 17 }),
  large: make(COMPACT),
  count: make({ maximumFractionDigits: 0 }),
  small: make({ maximumSignificantDigits: 4 }),
  whole: make({ maximumSignificantDigits: 17 }),
  percent: make({ maximumFractionDigits: 2, minimumFractionDigits: 2 }),
  change: make({ maximumFractionDigits: 2, minimumFractionDigits: 2, signDisplay: 'exceptZero' }),
}

function toUsd(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e6) return FORMATS.usdLarge.format(value)
  return (size >= 1 || size === 0 ? FORMATS.usd : FORMATS.usdSmall).format(value)
}

/** A number in few characters. Percents are percents, shares are fractions of 1. */
export function toText(value: number, kind: Kind): string {
  if (kind === 'usd') return toUsd(value)
  if (kind === 'percent') return `${FORMATS.percent.format(value)} %`
  if (kind === 'change') return `${FORMATS.change.format(value)} %`
  if (kind === 'share') return `${FORMATS.percent.format(value * 100)} %`
  if (kind === 'count') return Math.abs(value) >= 1e6 ? FORMATS.large.format(value) : FORMATS.count.format(value)
  return (Math.abs(value) >= 1e4 ? FORMATS.large : FORMATS.small).format(value)
}

/** A number beside an axis, where there is little room. */
export function toMark(value: number, kind: Kind): string {
  if (kind === 'usd' && Math.abs(value) >= 1e4) return FORMATS.usdLarge.format(value)
  return kind === 'count' && Math.abs(value) >= 1e4 ? FORMATS.large.format(value) : toText(value, kind)
}

/** A number with all its digits. */
export const toWhole = (value: number, kind: Kind) =>
  kind === 'usd' ? FORMATS.usdWhole.format(value) : FORMATS.whole.format(value)

const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' })
const AGO = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' })

export const toUtc = (at: Date) => `${TIME.format(at)} UTC`
/** In the reader's own time zone and language. */
export const toLocal = (at: Date) => LOCAL.format(at)

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** A length of time in its largest unit: `3 hours`. */
export function toLength(seconds: number): string {
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) ?? (['second', 1] as const)
  return make({ style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 0 }).format(Math.floor(seconds / size))
}

export function toAgo(at: Date, now: number): string {
  const seconds = Math.max(0, (now - at.getTime()) / 1000)
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) ?? (['second', 1] as const)
  return AGO.format(-Math.floor(seconds / size), unit)
}

/** `0x1f98…f984` */
export const toShort = (hex: string) => (hex.length > 13 ? `${hex.slice(0, 6)}…${hex.slice(-4)}` : hex)
