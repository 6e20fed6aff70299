import { toTable } from '../terminal/text-table.ts'
import type { Outcome, Part, Standing } from './outcome.ts'

const COLUMNS: readonly (readonly [Standing, string])[] = [
  ['covered', 'covered'],
  ['coarser', 'coarser'],
  ['nothing', 'nothing there'],
  ['unserved', 'unserved'],
  ['failed', 'failed'],
  ['missing', 'missing'],
  ['not renewed', 'not renewed'],
]

const SHOWN_NAMES = 5

/**
 * Formats outcomes as a table of bucket counts, with the number of entities in parentheses. Each reason follows below
 * with advice.
 */
export function toOutcomeTable(outcomes: readonly Outcome[]): string {
  const isAny = outcomes.some(({ parts }) => parts.some(({ standing }) => standing === 'not renewed'))
  const columns = COLUMNS.filter(([standing]) => isAny || standing !== 'not renewed')
  const rows = outcomes.map(({ title, parts }) => [title, ...columns.map(([standing]) => toCell(parts, standing))])
  const reasons = outcomes.flatMap((outcome) =>
    outcome.parts.filter(({ reason }) => reason !== '').map((part) => toReasonLines(outcome, part)),
  )
  return [toTable(['history', ...columns.map(([, name]) => name)], rows), ...reasons].join('\n')
}

function toCell(parts: readonly Part[], standing: Standing): string {
  const own = parts.filter((part) => part.standing === standing)
  const buckets = own.reduce((sum, part) => sum + part.buckets, 0)
  const entities = new Set(own.flatMap((part) => part.entities)).size
  return buckets === 0 ? '0' : `${buckets} (${entities})`
}

function toReasonLines({ title, computedFrom }: Outcome, { standing, reason, buckets, entities }: Part): string {
  const names = entities.slice(0, SHOWN_NAMES).join(', ')
  const more = entities.length > SHOWN_NAMES ? ` and ${entities.length - SHOWN_NAMES} more` : ''
  return `${title}: ${buckets} buckets ${standing} of ${names}${more}: ${reason}\n  ${toAdvice(standing, reason, computedFrom)}`
}

/** Matches a setting name in a reason, such as COINMARKETCAP_API_KEY. */
const SETTING = /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g

function toAdvice(standing: Standing, reason: string, computedFrom: readonly string[]): string {
  const settings = [...new Set(reason.match(SETTING) ?? [])]
  if (settings.length > 0) {
    const what = `set or check ${settings.join(' and ')} and restart the workers`
    return `${what}: then ${standing === 'not renewed' ? 'the same command tries it again' : 'it is collected by itself'}`
  }
  if (standing === 'failed') return 'it is retried automatically, with increasing delays; the same command retries now'
  if (standing === 'missing' || standing === 'not renewed') return 'the same command tries it again'
  if (computedFrom.length > 0)
    return `back-fill ${computedFrom.join(' and ')} of that time: then it is computed by itself`
  return 'no configured provider has it: set the key of another provider, or add its id to the registry'
}
