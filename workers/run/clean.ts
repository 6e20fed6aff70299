import { DataError } from '../../shared/errors.ts'

export type Redact = (text: string) => string

/**
 * Returns the same failure with secrets redacted, because providers may repeat them in a response. The cause is
 * dropped: it may contain the whole response.
 */
export function toClean<E>(error: E, redact: Redact): E | DataError {
  if (!(error instanceof DataError) || redact(error.message) === error.message) return error
  return new DataError(error.code, redact(error.message), { retryAfterMs: error.retryAfterMs })
}
