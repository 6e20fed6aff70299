import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { toMs } from '../../shared/memo.ts'
import type { Lifetime } from '../../shared/registry/ends.ts'
import type { CheckedRows, CheckLog, LeftOut } from '../job/define-job.ts'
import { toPlainCheck } from './plain-check.ts'

/**
 * Of an entity with more malformed rows than this share nothing is trusted. Where most rows are malformed, and that of more
 * than this share of the entities, an answer as a whole is not, and nothing of it is stored.
 */
const MOST_REJECTED_SHARE = 0.5

/** Nothing that is collected was observed before the first block of the first chain, in January 2009. */
const EARLIEST_MS = Date.parse('2009-01-03T00:00:00Z')

/** How far a provider's clock may be ahead. A row of the far future would count as the newest one for ever. */
const MOST_AHEAD_MS = 10 * 60_000

/**
 * Checks a provider's candidate rows against the dataset's schema and the clock (`now`, Unix milliseconds). A row loses
 * only a value that cannot be, such as a negative volume, where the dataset names that member as dispensable; with any
 * other fault it is rejected, and its entity refused, with its other rows where most are malformed. All are counted by
 * reason, logged and told to `onRejected`.
 * @throws DataError `rows_rejected` with the reasons when more than half of the rows are malformed, and that of more than half
 *   of the entities: one entity's trouble is its own. A value that was not sent is none: it would not be there the next time.
 */
export function checkRows(
  dataset: Dataset,
  provider: string,
  candidates: readonly object[],
  options: { now: number } & CheckLog,
): CheckedRows {
  const good: object[] = []
  const malformed = new Map<number, Malformed>()
  const valueless = new Set<object>()
  const reasons = new Map<string, number>()
  const lostValues = new Map<string, number>()
  const refused = new Map<number, DataError>()
  const leftOut = new Map<number, LeftOut>()
  for (const candidate of candidates) {
    const { parsed, lost } = parseRow(dataset, candidate)
    const issue = parsed.error?.issues[0]
    const reason = issue === undefined ? toTimeFault(dataset, parsed.data, options.now) : toShapeFault(issue)
    if (reason !== undefined) {
      count(reasons, reason)
      const key = dataset.entity === undefined ? undefined : Reflect.get(candidate, dataset.entity)
      const code = isSilent(candidate, issue) ? 'provider_unknown' : 'provider_malformed'
      if (code === 'provider_unknown') valueless.add(candidate)
      const error = new DataError(code, `${provider}: ${reason}`)
      if (typeof key === 'number') {
        refused.set(key, error)
        leftOut.set(key, { count: (leftOut.get(key)?.count ?? 0) + 1, reason: error.message })
      }
      if (typeof key === 'number' && code === 'provider_malformed')
        malformed.set(key, { error, times: (malformed.get(key)?.times ?? 0) + 1 })
    } else if (parsed.data !== undefined) {
      good.push(parsed.data)
      for (const fault of lost) count(lostValues, fault)
    }
  }
  const distrusted = toDistrusted(dataset, candidates, malformed)
  const rows = good.filter((row) => !distrusted.has(Number(keyOf(dataset, row))))
  for (const [key, error] of distrusted) refused.set(key, error)
  if (rows.length < good.length) reasons.set(AMONG_MALFORMED, good.length - rows.length)
  const rejected = candidates.length - rows.length
  for (const [reason, times] of lostValues) options.onRejected?.(`${provider}: left out: ${reason}`, times)
  if (lostValues.size > 0) {
    const told = { dataset: dataset.name, provider, reasons: Object.fromEntries(lostValues) }
    options.log.warn(told, 'values left out that cannot be')
  }
  if (rejected === 0) return { rows, rejected, refused, leftOut }
  const told = {
    dataset: dataset.name,
    provider,
    rejected,
    of: candidates.length,
    reasons: Object.fromEntries(reasons),
  }
  options.log.warn(told, 'rows rejected')
  for (const [reason, times] of reasons) options.onRejected?.(`${provider}: ${reason}`, times)
  const valued = candidates.filter((candidate) => !valueless.has(candidate))
  if (!isDistrusted(dataset, valued, good)) return { rows, rejected, refused, leftOut }
  const list = [...reasons].map(([reason, times]) => `${times} x ${reason}`).join('; ')
  const text = `${dataset.name}: ${rejected} of ${candidates.length} rows of ${provider} rejected: ${list}`
  throw new DataError('rows_rejected', text)
}

/** How many rows of an entity are malformed, and why the last one is. */
interface Malformed {
  readonly times: number
  readonly error: DataError
}

const AMONG_MALFORMED = 'most other rows of its entity are malformed'

const keyOf = ({ entity }: Dataset, row: object): unknown =>
  entity === undefined ? undefined : Reflect.get(row, entity)

function countByEntity(dataset: Dataset, rows: readonly object[]): Map<unknown, number> {
  const counts = new Map<unknown, number>()
  for (const row of rows) counts.set(keyOf(dataset, row), (counts.get(keyOf(dataset, row)) ?? 0) + 1)
  return counts
}

/**
 * The entities of which most rows are malformed, and why. A value that was not sent says nothing of the others; nor does
 * one event of the next, and an event that is left out would never be asked for again.
 */
function toDistrusted(
  dataset: Dataset,
  candidates: readonly object[],
  malformed: ReadonlyMap<number, Malformed>,
): Map<number, DataError> {
  if (malformed.size === 0 || dataset.resumes) return new Map()
  const given = countByEntity(dataset, candidates)
  const most = [...malformed].filter(([key, { times }]) => times > (given.get(key) ?? 0) * MOST_REJECTED_SHARE)
  return new Map(most.map(([key, { error }]) => [key, error]))
}

/** Whether most of an answer's rows that have a value are malformed, and that not of a few entities only. */
function isDistrusted(dataset: Dataset, valued: readonly object[], good: readonly object[]): boolean {
  if (valued.length - good.length <= valued.length * MOST_REJECTED_SHARE) return false
  const [given, kept] = [countByEntity(dataset, valued), countByEntity(dataset, good)]
  const bad = [...given].filter(([key, count]) => count - (kept.get(key) ?? 0) > count * MOST_REJECTED_SHARE)
  return bad.length > given.size * MOST_REJECTED_SHARE
}

/** Rows without those of a time at which their entity was no more. */
export function withoutLater(
  { entity, series }: Dataset,
  rows: readonly object[],
  entities: readonly (Lifetime & { readonly key: number })[],
): readonly object[] {
  const ended = new Map(entities.flatMap(({ key, until }) => (until === undefined ? [] : [[key, until]])))
  if (entity === undefined || ended.size === 0) return rows
  return rows.filter((row) => {
    const until = ended.get(Number(Reflect.get(row, entity)))
    return until === undefined || toMs(String(Reflect.get(row, series.time))) < until
  })
}

const count = (reasons: Map<string, number>, reason: string) => void reasons.set(reason, (reasons.get(reason) ?? 0) + 1)

/** Faults of a value that has the right type. */
const IMPLAUSIBLE: ReadonlySet<string> = new Set(['too_small', 'too_big', 'invalid_format', 'custom'])

/** The row, without those dispensable values that are outside what can be; `lost` says which. */
function parseRow(dataset: Dataset, candidate: object) {
  if (toPlainCheck(dataset.row)(candidate)) return { parsed: { data: candidate, error: undefined }, lost: [] }
  const parsed = dataset.row.safeParse(candidate)
  const issues = parsed.error?.issues ?? []
  const dispensable: ReadonlySet<unknown> = new Set(issues.length === 0 ? [] : dataset.dispensable)
  const isLost = ({ code, path }: (typeof issues)[number]) => IMPLAUSIBLE.has(code) && dispensable.has(path[0])
  if (issues.length === 0 || !issues.every(isLost)) return { parsed, lost: [] }
  const members = issues.map(({ path: [member] }) => {
    const isList = Array.isArray(Reflect.get(candidate, String(member)))
    return [String(member), isList ? [] : null]
  })
  const mended = dataset.row.safeParse({ ...candidate, ...Object.fromEntries(members) })
  return { parsed: mended, lost: issues.map(toShapeFault) }
}

/** Whether the fault is that the provider sent nothing: it has no value, and would have none when asked again. */
function isSilent(candidate: object, issue: { path: readonly PropertyKey[] } | undefined): boolean {
  const [member] = issue?.path ?? []
  return issue?.path.length === 1 && member !== undefined && Reflect.get(candidate, member) === null
}

/** Indexes within a list become `*`: otherwise every index would be a reason of its own. */
function toShapeFault({ path, message }: { path: readonly PropertyKey[]; message: string }): string {
  return `${path.map((part) => (typeof part === 'number' ? '*' : String(part))).join('.')}: ${message}`
}

function toTimeFault(dataset: Dataset, row: object | undefined, now: number): string | undefined {
  const column = dataset.series.time
  const text = row === undefined ? undefined : Reflect.get(row, column)
  if (typeof text !== 'string') return undefined
  const time = toMs(text)
  if (time < EARLIEST_MS) return `${column}: earlier than anything that can have been observed`
  return time > now + MOST_AHEAD_MS ? `${column}: in the future` : undefined
}
