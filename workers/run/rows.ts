import type { z } from 'zod'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { EARLIEST_MS } from '../../shared/intervals.ts'
import { toMs } from '../../shared/memo.ts'
import type { Lifetime } from '../../shared/registry/ends.ts'
import { type Candidate, type CheckedRows, type CheckLog, LEFT_OUT, type LeftOut } from '../job/define-job.ts'
import { toPlainCheck } from './plain-check.ts'

/** Tolerance for a provider's clock running ahead. A row in the far future would stay the newest row forever. */
const MOST_AHEAD_MS = 10 * 60_000

/**
 * Checks a provider's rows against the dataset's schema and the clock (`now`, Unix milliseconds). One bad value costs
 * as little as possible: a nullable member becomes null. Any other fault rejects its row and refuses its entity; all
 * other rows are returned. Every fault is counted by reason, logged and reported to `onRejected`.
 */
export function checkRows(
  dataset: Dataset,
  provider: string,
  candidates: readonly Candidate<object>[],
  options: { now: number } & CheckLog,
): CheckedRows {
  const rows: object[] = []
  const rejected = new Map<string, number>()
  const lostValues = new Map<string, number>()
  const refused = new Map<number, DataError>()
  const leftOut = new Map<number, LeftOut>()
  const leaveOut = (key: unknown, reason: string) => {
    if (typeof key === 'number') leftOut.set(key, { count: (leftOut.get(key)?.count ?? 0) + 1, reason })
  }
  let unreadable: string | undefined
  for (const candidate of candidates) {
    const { row, issue, lost } = parseRow(dataset, candidate)
    const fault = issue === undefined ? toTimeFault(dataset, row, options.now) : toShapeFault(issue)
    const faults = candidate[LEFT_OUT] ?? []
    const key = dataset.entity === undefined ? undefined : Reflect.get(candidate, dataset.entity)
    if (fault === undefined && row !== undefined) {
      rows.push(row)
      for (const one of [...lost, ...faults]) count(lostValues, one)
      for (const one of faults) leaveOut(key, `${provider}: ${one}`)
      continue
    }
    // An unreadable part of a response has no time and carries its own reason.
    const isRead = Reflect.get(candidate, dataset.series.time) !== undefined
    const reason = (isRead ? undefined : faults[0]) ?? fault ?? 'not a row'
    count(rejected, reason)
    const code = isSilent(candidate, issue) ? 'provider_unknown' : 'provider_malformed'
    leaveOut(key, `${provider}: ${reason}`)
    if (typeof key === 'number') refused.set(key, new DataError(code, `${provider}: ${reason}`))
    else unreadable ??= reason
  }
  report('values left out that cannot be', lostValues, 'left out: ')
  report('rows rejected', rejected, '')
  return { rows, rejected: candidates.length - rows.length, refused, leftOut, unreadable }

  function report(message: string, reasons: ReadonlyMap<string, number>, mark: string): void {
    if (reasons.size === 0) return
    const told = { dataset: dataset.name, provider, of: candidates.length, reasons: Object.fromEntries(reasons) }
    options.log.warn(told, message)
    for (const [reason, times] of reasons) options.onRejected?.(`${provider}: ${mark}${reason}`, times)
  }
}

/** Drops rows with a time at or after their entity's end. */
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

type Issue = z.core.$ZodIssue

interface ParsedRow {
  readonly row?: object | undefined
  /** The validation issue that rejected the row. */
  readonly issue?: Issue | undefined
  /** Members set to null, with the reason. */
  readonly lost: readonly string[]
}

/** Parses the row. Each nullable member with an invalid value becomes null. */
function parseRow(dataset: Dataset, candidate: object): ParsedRow {
  if (toPlainCheck(dataset.row)(candidate)) return { row: candidate, lost: [] }
  const parsed = dataset.row.safeParse(candidate)
  if (parsed.success) return { row: parsed.data, lost: [] }
  const { issues } = parsed.error
  const dispensable: ReadonlySet<unknown> = new Set(dataset.dispensable)
  if (!issues.every(({ path: [member, ...inner] }) => inner.length === 0 || dispensable.has(member)))
    return { issue: issues[0], lost: [] }
  const members = issues.map(({ path: [member] }) => {
    const isList = dispensable.has(member) && Array.isArray(Reflect.get(candidate, String(member)))
    return [String(member), isList ? [] : null]
  })
  const mended = dataset.row.safeParse({ ...candidate, ...Object.fromEntries(members) })
  if (mended.success) return { row: mended.data, lost: issues.map(toShapeFault) }
  const [left] = mended.error.issues
  return { issue: issues.find(({ path }) => path[0] === left?.path[0]) ?? left, lost: [] }
}

/** Returns whether the provider sent null for the member: it has no value, and a retry would return none either. */
function isSilent(candidate: object, issue: { path: readonly PropertyKey[] } | undefined): boolean {
  const [member] = issue?.path ?? []
  return issue?.path.length === 1 && member !== undefined && Reflect.get(candidate, member) === null
}

/** List indexes become `*`, so that faults of different elements count as one reason. */
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
