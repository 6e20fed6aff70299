import { HISTORY_START } from '../../shared/intervals.ts'

const EARLIEST_MS = Date.parse(HISTORY_START)
const ISO_DATE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?$/

/** `parseArgs` options of a command that takes a time range. */
export const RANGE_OPTIONS = { from: { type: 'string' }, to: { type: 'string' }, interval: { type: 'string' } } as const

/**
 * Parses an ISO date or date-time of a command-line option as UTC and returns Unix milliseconds. Errors are added to
 * `mistakes`.
 */
export function toTime(option: string, text: string | undefined, mistakes: string[]): number | undefined {
  if (text === undefined) {
    mistakes.push(`${option} is required: an ISO date such as 2024-01-01`)
    return undefined
  }
  const iso = text.length > 10 && !text.endsWith('Z') ? `${text}Z` : text
  const ms = ISO_DATE.test(text) ? Date.parse(iso) : Number.NaN
  // Date.parse turns 30 February into 1 March, so the day is compared with the input.
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(text.slice(0, 10))) {
    mistakes.push(`${option} ${text} is not an ISO date or date-time`)
  } else if (ms < EARLIEST_MS)
    mistakes.push(`${option} ${text} is before ${HISTORY_START}: nothing is collected of what lies before`)
  else return ms
  return undefined
}
