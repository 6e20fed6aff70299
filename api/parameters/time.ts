/** A blank before an offset without a sign is a `+` that was not percent-encoded in the URL. */
const OFFSET = / ?(?<sign>[+-])(?<hours>\d\d):?(?<minutes>\d\d)| {1,2}(?<blankHours>\d\d):?(?<blankMinutes>\d\d)/
const CLOCK = /[T ](?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d)(?:\.(?<fraction>\d{1,9}))?)?/
const ISO = new RegExp(`^(?<year>\\d{4})-(?<month>\\d\\d)-(?<day>\\d\\d)(?:${CLOCK.source}(?:Z|${OFFSET.source})?)?$`)
const UNIX_SECONDS = /^\d{9,10}$/
const UNIX_MILLISECONDS = /^\d{13}$/
/** Forms without separators, which would be other times if they were read as Unix numbers. */
const COMPACT = /^(\d{4})(\d\d)(\d\d)(?:[T ]?(\d\d)(\d\d)(\d\d)?Z?)?$/

/** The last time with a four-digit year. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** The forms of a time in a request. */
export const TIME_FORMS =
  'ISO date, ISO date-time, Unix seconds (9 or 10 digits) or Unix milliseconds (13 digits); UTC.'

/** Whether a calendar day exists: `Date` would turn 30 February into 2 March. */
function isRealDay(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

/**
 * Parses a client's time to Unix milliseconds (docs/contract.md, section 2): ISO date, ISO date-time (UTC unless it has
 * an offset), Unix seconds or Unix milliseconds. Undefined for other text.
 */
export function parseTime(text: string): number | undefined {
  if (UNIX_SECONDS.test(text)) return Number(text) * 1000
  if (UNIX_MILLISECONDS.test(text)) return Number(text)
  const parts = ISO.exec(text)?.groups
  if (parts === undefined) return undefined
  const { year, month, day, hour = '00', minute = '00', second = '00', fraction = '0', sign = '+' } = parts
  if (!isRealDay(Number(year), Number(month), Number(day))) return undefined
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  const { hours = parts.blankHours, minutes = parts.blankMinutes } = parts
  const offset = hours === undefined ? 'Z' : `${sign}${hours}:${minutes}`
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction}${offset}`)
  // An offset may move the time after the last one.
  return ms <= LAST_MS ? ms : undefined
}

/** The ISO form of a time without separators; undefined if the text is none. */
export function suggestTime(text: string): string | undefined {
  const [, year, month, day, hour, minute, second = '00'] = COMPACT.exec(text) ?? []
  const iso = `${year}-${month}-${day}${hour === undefined ? '' : `T${hour}:${minute}:${second}Z`}`
  return parseTime(iso) === undefined ? undefined : iso
}

/** Why a text is no time, as the rest of a sentence that begins with the parameter's name. */
export function explainTime(text: string): string {
  const suggestion = suggestTime(text)
  const hint = suggestion === undefined ? '' : ` Did you mean ${suggestion}?`
  return `must be a time that exists, as ${TIME_FORMS}${hint}`
}
