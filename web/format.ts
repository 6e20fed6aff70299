/** How a number is formatted. */
export type Kind = 'usd' | 'count' | 'percent' | 'change' | 'share' | 'amount' | 'points' | 'usdChange' | 'amountChange'

const usd = { style: 'currency', currency: 'USD' } as const
/** Always two decimals, so that the numbers of a column are aligned. */
const COMPACT = { notation: 'compact', minimumFractionDigits: 2, maximumFractionDigits: 2 } as const

const FORMATS = {
  usdLarge: { ...usd, ...COMPACT },
  usdWholeDollars: { ...usd, maximumFractionDigits: 0 },
  usd: { ...usd, maximumFractionDigits: 2 },
  usdSmall: { ...usd, minimumSignificantDigits: 3, maximumSignificantDigits: 4 },
  usdWhole: { ...usd, maximumSignificantDigits: 17 },
  large: COMPACT,
  count: { maximumFractionDigits: 0 },
  small: { maximumSignificantDigits: 4 },
  whole: { maximumSignificantDigits: 17 },
  // Further digits would be artefacts of the multiplication by 100.
  shareWhole: { maximumSignificantDigits: 15 },
  percent: { maximumFractionDigits: 2, minimumFractionDigits: 2 },
  change: { maximumFractionDigits: 2, minimumFractionDigits: 2, signDisplay: 'exceptZero' },
} satisfies Readonly<Record<string, Intl.NumberFormatOptions>>

/** A value that is made on its first use. */
function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

const formatters = new Map<string, Intl.NumberFormat>()

/**
 * A formatter with these options. Formatters are made on their first use, because each takes a phone some 20 milliseconds.
 */
function make(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = JSON.stringify(options)
  const formatter = formatters.get(key) ?? new Intl.NumberFormat('en', options)
  formatters.set(key, formatter)
  return formatter
}

const format = (name: keyof typeof FORMATS, value: number) => make(FORMATS[name]).format(value)

function toUsd(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e6) return format('usdLarge', value)
  // Cents of ten thousand dollars are noise; zero has none.
  if (size >= 1e4 || size === 0) return format('usdWholeDollars', value)
  return format(size >= 1 ? 'usd' : 'usdSmall', value)
}

/** Kinds that are formatted as percents. */
const PERCENTS: readonly Kind[] = ['percent', 'change', 'share']
/** The number before its unit: shares are fractions of 1. */
const toNumber = (value: number, kind: Kind) => (kind === 'share' ? value * 100 : value)

const withUnit = (text: string, kind: Kind) =>
  kind === 'points' ? `${text} percentage points` : PERCENTS.includes(kind) ? `${text} %` : text

/** The smallest percentage that is displayed. */
const LEAST_PERCENT = 0.01

/** Formats percents; a small value is never displayed as 0: it is between 0 and `<0.01 %`, `<+0.01 %` or `>-0.01 %`. */
function toPercent(value: number, kind: 'percent' | 'change'): string {
  const isTiny = value !== 0 && Math.abs(value) < LEAST_PERCENT / 2
  if (!isTiny) return `${format(kind, value)} %`
  if (value < 0) return `>-${LEAST_PERCENT} %`
  return `<${kind === 'change' ? '+' : ''}${LEAST_PERCENT} %`
}

/** Never rounds up to 100 %. */
const toShare = (value: number) => toPercent(value < 1 ? Math.min(value * 100, 99.99) : value * 100, 'percent')

const toSigned = (value: number, kind: 'usd' | 'amount'): string => `${value > 0 ? '+' : ''}${toText(value, kind)}`

/** Formats percentage points; a small value is never displayed as 0. */
const toPoints = (value: number) => toPercent(value, 'change').replace('%', 'pp')

/** Formats a number in few characters. Percents are percents, shares are fractions of 1. */
export function toText(value: number, kind: Kind): string {
  if (kind === 'usd') return toUsd(value)
  if (kind === 'percent' || kind === 'change') return toPercent(value, kind)
  if (kind === 'share') return toShare(value)
  if (kind === 'points') return toPoints(value)
  if (kind === 'usdChange' || kind === 'amountChange') return toSigned(value, kind === 'usdChange' ? 'usd' : 'amount')
  if (kind === 'count') return Math.abs(value) >= 1e6 ? format('large', value) : format('count', value)
  return format(Math.abs(value) >= 1e4 ? 'large' : 'small', value)
}

/** Number of decimals that distinguish numbers one step apart; the step is 1, 2, 2.5 or 5 times a power of ten. */
function toDecimals(step: number): number {
  if (!(step > 0)) return 0
  const power = Math.floor(Math.log10(step) + 1e-9)
  const isQuarter = Math.abs(step / 10 ** power - 2.5) < 1e-6
  return Math.min(20, Math.max(0, (isQuarter ? 1 : 0) - power))
}

/** Formats a number for an axis, with enough digits to distinguish it from the next one, a step away. */
export function toMark(value: number, kind: Kind, step: number): string {
  const [number, size] = [toNumber(value, kind), Math.abs(toNumber(value, kind))]
  const isLarge = size >= 1e4
  const needed = toDecimals(toNumber(step, kind) / (isLarge ? 1000 ** Math.floor(Math.log10(size) / 3) : 1))
  // Cents have two digits: $11.80.
  const decimals = kind === 'usd' && !isLarge && needed === 1 ? 2 : needed
  const text = make({
    ...(kind === 'usd' ? usd : {}),
    ...(isLarge ? { notation: 'compact' } : {}),
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }).format(number)
  return withUnit(text, kind)
}

const countDigits = (text: string) => text.replaceAll(/\D/g, '').length

/** Formats a number in few characters, or in more if it would equal others that are about a step away. */
export function toDistinct(value: number, kind: Kind, step: number): string {
  const usual = toText(value, kind)
  // Counts below a million are shown with all digits, and decimals cannot distinguish whole numbers.
  if (kind === 'count' && Number.isInteger(value) && Math.abs(value) < 1e6) return usual
  const finer = toMark(value, kind, step)
  const readsAsNothing = value !== 0 && !/[1-9]/.test(finer)
  return countDigits(finer) > countDigits(usual) && !readsAsNothing ? finer : usual
}

/** Formats a number with all its digits. */
export function toFullNumber(value: number, kind: Kind): string {
  if (kind === 'usd' || kind === 'usdChange') return format('usdWhole', value)
  const text = format(kind === 'share' ? 'shareWhole' : 'whole', toNumber(value, kind))
  return withUnit(text, kind)
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

// Without Intl: its first date takes a phone a fifth of a second.
/** Formats the parts of a UTC time: `12:02`, `10 Mar`, `Mar 2024`, `10 Mar 2024`. */
export const toHour = (at: Date) => at.toISOString().slice('2024-03-10T'.length, '2024-03-10T12:02'.length)
export const toDayOfYear = (at: Date) => `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`
export const toMonth = (at: Date) => `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`
export const toDay = (at: Date) => `${toDayOfYear(at)} ${at.getUTCFullYear()}`
export const toUtc = (at: Date) => `${toDay(at)}, ${toHour(at)} UTC`

const ISO_TIME = /(?<!\d)\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z)?(?!\d)/g

/** A text of the service with its times in the form of the page. */
export const readTimes = (text: string): string =>
  text.replaceAll(ISO_TIME, (iso) => {
    const at = new Date(iso)
    return Number.isNaN(at.getTime()) ? iso : iso.includes('T') ? toUtc(at) : toDay(at)
  })

const LOCAL = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' }))

/** Formats a time in the reader's time zone and language. */
export const toLocal = (at: Date) => LOCAL().format(at)

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** Formats a duration in its largest unit: `3 hours`. */
export function toLength(seconds: number): string {
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) ?? (['second', 1] as const)
  return make({ style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 0 }).format(Math.floor(seconds / size))
}

/** Formats a distance as `5m ago` or `in 11h`, without Intl: its first relative time takes a phone a fifth of a second. */
function toDistance(seconds: number): string {
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? (['second', 1] as const)
  const count = Math.trunc(seconds / size)
  const text = `${Math.abs(count) < 1000 ? Math.abs(count) : format('count', Math.abs(count))}${unit[0]}`
  return count < 0 || Object.is(count, -0) ? `${text} ago` : `in ${text}`
}

/** Formats the age of a time, at least 0. */
export const toAgo = (at: Date, now: number): string => toDistance(Math.min(-0, (at.getTime() - now) / 1000))
/** Formats the distance to a coming time. */
export const toUntil = (at: Date, now: number): string => toDistance((at.getTime() - now) / 1000)

/** Formats a number of things: `1 gap`, `9 gaps`. */
export const toCounted = (count: number, noun: string) => `${toText(count, 'count')} ${noun}${count === 1 ? '' : 's'}`

/** Shortens a hex text to `0x1f98…f984`. */
export const toShort = (hex: string) => (hex.length > 13 ? `${hex.slice(0, 6)}…${hex.slice(-4)}` : hex)

type VoteChoice = number | readonly number[] | Readonly<Record<string, number>> | string | null

const isPlaces = (choice: object): choice is readonly number[] => Array.isArray(choice)

/** A vote's choice by the names of the proposal's choices. */
export function describeChoice(choice: VoteChoice, choices: readonly string[]): string | undefined {
  const nameOf = (place: number) => choices[place - 1] ?? `choice ${place}`
  if (choice === null) return undefined
  if (typeof choice === 'number') return nameOf(choice)
  if (typeof choice === 'string') return 'secret until the vote ends'
  if (isPlaces(choice)) return choice.map(nameOf).join(', ')
  const weights = Object.entries(choice).map(([place, weight]) => [nameOf(Number(place)), weight] as const)
  const total = weights.reduce((sum, [, weight]) => sum + weight, 0)
  return weights.map(([name, weight]) => `${name} ${total > 0 ? toText(weight / total, 'share') : weight}`).join(', ')
}

/** A number of bytes. */
export const toSize = (bytes: number) =>
  bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
