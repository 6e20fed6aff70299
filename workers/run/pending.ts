import { DataError } from '../../shared/errors.ts'
import type { JobReport } from '../../shared/queue/queues.ts'

/**
 * Partial failure: the run stored the available rows (see `report`) and must be retried for `entities` (registry ids),
 * which have no answer yet.
 */
export class PendingError extends DataError {
  readonly entities: readonly string[]
  readonly report: JobReport
  /** Whether the run made progress, so that the next attempt has less to do. */
  readonly cameFurther: boolean

  constructor(
    cause: DataError,
    { entities, report, cameFurther }: Pick<PendingError, 'entities' | 'report' | 'cameFurther'>,
  ) {
    const { retryAfterMs } = cause
    super(cause.code, `${entities.length} without an answer: ${cause.message}`, { cause, retryAfterMs })
    this.name = 'PendingError'
    this.entities = entities
    this.report = report
    this.cameFurther = cameFurther
  }
}
