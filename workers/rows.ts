import type { Dataset } from '../shared/datasets/define.ts'
import { DataError } from '../shared/errors.ts'
import type { Logger } from '../shared/log.ts'

/** Above this share of rejected rows the answer as a whole is not trusted and nothing of it is stored. */
const MOST_REJECTED_SHARE = 0.5

/**
 * Checks candidate rows against the dataset's schema; rejected ones are counted by reason, logged and told to
 * `onRejected`.
 * @throws DataError `rows_rejected` with the reasons when more than half fail.
 */
export function checkRows(
  dataset: Dataset,
  candidates: readonly { row: object; provider: string }[],
  log: Logger,
  onRejected?: (reason: string, rows: number) => void,
): { rows: object[]; rejected: number } {
  const rows: object[] = []
  const reasons = new Map<string, number>()
  for (const { row, provider } of candidates) {
    const parsed = dataset.row.safeParse(row)
    if (parsed.success) rows.push(parsed.data)
    else {
      const issue = parsed.error.issues[0]
      // Of a list it is the column that matters: each index for itself would be a reason of its own.
      const column = issue?.path.map((part) => (typeof part === 'number' ? '*' : String(part))).join('.')
      const reason = `${provider}: ${column}: ${issue?.message}`
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    }
  }
  const rejected = candidates.length - rows.length
  if (rejected > 0) {
    const told = Object.fromEntries(reasons)
    log.warn({ dataset: dataset.name, rejected, of: candidates.length, reasons: told }, 'rows rejected')
    for (const [reason, count] of reasons) onRejected?.(reason, count)
    if (rejected > candidates.length * MOST_REJECTED_SHARE) {
      const list = [...reasons].map(([reason, count]) => `${count} x ${reason}`).join('; ')
      throw new DataError(
        'rows_rejected',
        `${dataset.name}: ${rejected} of ${candidates.length} rows rejected: ${list}`,
      )
    }
  }
  return { rows, rejected }
}
