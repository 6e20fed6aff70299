import { DataError } from '../../shared/errors.ts'

export type Redact = (text: string) => string

/**
 * The same failure without secrets, which a provider may have repeated in its answer. Its cause, which may hold the whole
 * of it, is left behind.
 */
export function toClean<E>(error: E, redact: Redact): E | DataError {
  if (!(error instanceof DataError) || redact(error.message) === error.message) return error
  return new DataError(error.code, redact(error.message), { retryAfterMs: error.retryAfterMs })
}
