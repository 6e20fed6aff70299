import { DataError } from '../../shared/errors.ts'

/** A run stored what came and has to be tried again for `entities`, registry ids, that have no answer yet. */
export class PendingError extends DataError {
  readonly entities: readonly string[]

  constructor(cause: DataError, entities: readonly string[]) {
    const { retryAfterMs } = cause
    super(cause.code, `${entities.length} without an answer: ${cause.message}`, { cause, retryAfterMs })
    this.name = 'PendingError'
    this.entities = entities
  }
}
