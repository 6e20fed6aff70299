import { DataError } from '../../shared/errors.ts'
import type { JobReport } from '../../shared/queue/queues.ts'

/** A run stored what came, as `report` says, and is tried again for `entities`, registry ids, that have no answer yet. */
export class PendingError extends DataError {
  readonly entities: readonly string[]
  readonly report: JobReport
  /** Whether it brought some of what was missing, so that the next try has less to do. */
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
