import { HISTORY_START } from '../../shared/intervals.ts'

const EARLIEST_MS = Date.parse(HISTORY_START)
const ISO_DATE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?$/

/** The options of a command that is about a range of time, for `parseArgs`. */
export const RANGE_OPTIONS = { from: { type: 'string' }, to: { type: 'string' }, interval: { type: 'string' } } as const

/**
 * The Unix milliseconds of an ISO date or date-time that an operator gave for an option, read as UTC. What is wrong goes
 * to `mistakes`.
 */
export function toTime(option: string, text: string | undefined, mistakes: string[]): number | undefined {
  if (text === undefined) {
    mistakes.push(`${option} is required: an ISO date such as 2024-01-01`)
    return undefined
  }
  const iso = text.length > 10 && !text.endsWith('Z') ? `${text}Z` : text
  const ms = ISO_DATE.test(text) ? Date.parse(iso) : Number.NaN
  // Date.parse turns 30 February into 1 March; the day must come back as it was given.
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(text.slice(0, 10))) {
    mistakes.push(`${option} ${text} is not an ISO date or date-time`)
  } else if (ms < EARLIEST_MS)
    mistakes.push(`${option} ${text} is before ${HISTORY_START}: nothing is collected of what lies before`)
  else return ms
  return undefined
}
