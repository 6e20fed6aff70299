const DATE = /^(\d{4})-(\d\d)-(\d\d)$/
const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?$/
const UNIX = /^\d{1,13}$/

/** Unix numbers from here on are milliseconds: as seconds they would lie beyond the year 5000. */
const FIRST_MILLISECONDS = 100_000_000_000
/** The last moment that a four-digit year can say. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** A calendar day that exists: `Date` would turn 30 February into 2 March. */
function isRealDay(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

/**
 * Unix milliseconds of a time as clients write it (docs/contract.md, section 2): ISO date, ISO date-time (UTC unless it has an
 * offset), Unix seconds or Unix milliseconds. Undefined for anything else.
 */
export function parseTime(text: string): number | undefined {
  if (UNIX.test(text)) {
    const number = Number(text)
    const ms = number >= FIRST_MILLISECONDS ? number : number * 1000
    return ms <= LAST_MS ? ms : undefined
  }
  const parts = DATE.exec(text) ?? DATE_TIME.exec(text)
  if (!parts || !isRealDay(Number(parts[1]), Number(parts[2]), Number(parts[3]))) return undefined
  if (parts[4] === undefined) return Date.UTC(Number(parts[1]), Number(parts[2]) - 1, Number(parts[3]))
  const [hour, minute, second] = [Number(parts[4]), Number(parts[5]), Number(parts[6] ?? 0)]
  if (hour > 23 || minute > 59 || second > 59) return undefined
  const ms = Date.parse(parts[8] === undefined ? `${text}Z` : text)
  // An offset may lead beyond the last moment.
  return ms <= LAST_MS ? ms : undefined
}
