import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

export interface CheckedRows {
  readonly rows: object[]
  readonly rejected: number
}

/** Above this share of rejected rows an answer as a whole is not trusted and nothing of it is stored. */
const MOST_REJECTED_SHARE = 0.5

/** Nothing that is collected was observed before the first block of the first chain, in January 2009. */
const EARLIEST_MS = Date.parse('2009-01-03T00:00:00Z')

/** How far a provider's clock may be ahead. A row of the far future would count as the newest one for ever. */
const MOST_AHEAD_MS = 10 * 60_000

/**
 * Checks a provider's candidate rows against the dataset's schema and the clock (`now`, Unix milliseconds); rejected
 * ones are counted by reason, logged and told to `onRejected`.
 * @throws DataError `rows_rejected` with the reasons when more than half fail.
 */
export function checkRows(
  dataset: Dataset,
  provider: string,
  candidates: readonly object[],
  options: { now: number; log: Logger; onRejected?: (reason: string, rows: number) => void },
): CheckedRows {
  const rows: object[] = []
  const reasons = new Map<string, number>()
  for (const candidate of candidates) {
    const parsed = dataset.row.safeParse(candidate)
    const issue = parsed.error?.issues[0]
    const reason = issue === undefined ? toTimeFault(dataset, parsed.data, options.now) : toShapeFault(issue)
    if (reason !== undefined) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    else if (parsed.data !== undefined) rows.push(parsed.data)
  }
  const rejected = candidates.length - rows.length
  if (rejected === 0) return { rows, rejected }
  const told = {
    dataset: dataset.name,
    provider,
    rejected,
    of: candidates.length,
    reasons: Object.fromEntries(reasons),
  }
  options.log.warn(told, 'rows rejected')
  for (const [reason, count] of reasons) options.onRejected?.(`${provider}: ${reason}`, count)
  if (rejected <= candidates.length * MOST_REJECTED_SHARE) return { rows, rejected }
  const list = [...reasons].map(([reason, count]) => `${count} x ${reason}`).join('; ')
  const text = `${dataset.name}: ${rejected} of ${candidates.length} rows of ${provider} rejected: ${list}`
  throw new DataError('rows_rejected', text)
}

/** Indexes within a list become `*`: otherwise every index would be a reason of its own. */
function toShapeFault({ path, message }: { path: readonly PropertyKey[]; message: string }): string {
  return `${path.map((part) => (typeof part === 'number' ? '*' : String(part))).join('.')}: ${message}`
}

function toTimeFault(dataset: Dataset, row: object | undefined, now: number): string | undefined {
  const column = dataset.series.time
  const text = row === undefined ? undefined : Reflect.get(row, column)
  if (typeof text !== 'string') return undefined
  const time = Date.parse(text)
  if (time < EARLIEST_MS) return `${column}: earlier than anything that can have been observed`
  return time > now + MOST_AHEAD_MS ? `${column}: in the future` : undefined
}
