import { DataError } from '../../shared/errors.ts'
import type { JobReport } from '../../shared/queue/queues.ts'

/** A run stored what came, as `report` says, and is tried again for `entities`, registry ids, that have no answer yet. */
export class PendingError extends DataError {
  readonly entities: readonly string[]
  readonly report: JobReport

  constructor(cause: DataError, entities: readonly string[], report: JobReport) {
    const { retryAfterMs } = cause
    super(cause.code, `${entities.length} without an answer: ${cause.message}`, { cause, retryAfterMs })
    this.name = 'PendingError'
    this.entities = entities
    this.report = report
  }
}
