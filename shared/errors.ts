/**
 * The reason of a failure, as a closed list. Callers decide by code, never by message text.
 * - `config`: a setting is missing or malformed; the message names it.
 * - `provider_unavailable`: network error, timeout, 408, 429 or 5xx; a retry may succeed.
 * - `provider_rejected`: the provider refused the request (400, 401, 402, 403); the same request may succeed later.
 * - `provider_malformed`: the response does not match the provider's documentation, for example because it was
 * truncated.
 * - `provider_exhausted`: the plan or the budget is used up; `retryAfterMs` is the time until its reset, if known.
 * - `provider_unknown`: the provider has no data for the entity's id; only another provider can help.
 * - `provider_unconfigured`: a setting that the provider needs is missing, such as its key; the message names it.
 * - `rows_rejected`: too large a share of a job's rows failed the dataset's schema.
 * - `payload`: a job's payload is malformed.
 * - `registry`: the curated records contradict themselves or their schema.
 * - `storage`: ClickHouse or Redis refused or was unreachable.
 * - `migration`: the database and the migration files disagree.
 * - `schema_too_old`: the database was created before the first release and cannot be upgraded.
 */
export type ErrorCode =
  | 'config'
  | 'provider_unavailable'
  | 'provider_rejected'
  | 'provider_malformed'
  | 'provider_exhausted'
  | 'provider_unknown'
  | 'provider_unconfigured'
  | 'rows_rejected'
  | 'payload'
  | 'registry'
  | 'storage'
  | 'migration'
  | 'schema_too_old'

const TRANSIENT: ReadonlySet<ErrorCode> = new Set([
  'provider_unavailable',
  'provider_rejected',
  'provider_malformed',
  'provider_exhausted',
  'rows_rejected',
  'storage',
])

const ABOUT_PROVIDER: ReadonlySet<ErrorCode> = new Set([
  'provider_rejected',
  'provider_exhausted',
  'provider_unconfigured',
])

/** A failure with a code. `retryAfterMs` is the wait that the provider requested, `status` its HTTP status. */
export class DataError extends Error {
  readonly code: ErrorCode
  readonly retryAfterMs: number | undefined
  readonly status: number | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number | undefined; status?: number | undefined } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'DataError'
    this.code = code
    this.retryAfterMs = options.retryAfterMs
    this.status = options.status
  }
}

/** Whether a failure concerns the whole provider and not one entity. */
export const isAboutProvider = ({ code }: DataError): boolean => ABOUT_PROVIDER.has(code)

/**
 * Whether the same attempt may succeed later, for example after an operator corrects a key. A missing entity or setting
 * is permanent until the registry or the settings change. Unknown errors are programming errors and are not retried.
 */
export function isTransient(error: unknown): boolean {
  return error instanceof DataError && TRANSIENT.has(error.code)
}

/**
 * Returns the failure with the shortest wait, the first of equals; undefined if there are no failures. A missing
 * `retryAfterMs` means no wait.
 */
export function findShortestWait(failures: readonly DataError[]): DataError | undefined {
  const waitOf = ({ retryAfterMs = 0 }: DataError) => retryAfterMs
  const [first, ...rest] = failures
  return first && rest.reduce((shortest, one) => (waitOf(one) < waitOf(shortest) ? one : shortest), first)
}

/** A one-line reason for a log line or a report. */
export function toReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
