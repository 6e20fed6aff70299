/**
 * Why something failed, as a closed list, so that callers decide by code and never by message text.
 * - `config`: a setting is missing or malformed; naming it is the message's job.
 * - `provider_unavailable`: network error, timeout, 408, 429 or 5xx; worth another try.
 * - `provider_rejected`: the provider understood and refused (400, 401, 402, 403); the same may be asked again later.
 * - `provider_malformed`: the answer is not what the provider documents, as when it was cut off on its way.
 * - `provider_exhausted`: the plan or the budget is used up; `retryAfterMs` is the time to its reset, where it is known.
 * - `provider_unknown`: the provider has nothing under the entity's id; only another provider can help.
 * - `provider_unconfigured`: a setting that the provider needs is missing, such as its key; the message names it.
 * - `rows_rejected`: too large a share of a job's rows failed the dataset's schema.
 * - `payload`: a job's payload is malformed.
 * - `registry`: the curated records contradict themselves or their schema.
 * - `storage`: ClickHouse or Redis refused or could not be reached.
 * - `migration`: the database and the migration files disagree.
 * - `schema_too_old`: the database was made before the first release, and nothing upgrades it.
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

/** A failure with a code; `retryAfterMs` is the wait a provider asked for, `status` that of its HTTP answer. */
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

/** Whether a failure is about the provider, whomever it was asked for. */
export const isAboutProvider = ({ code }: DataError): boolean => ABOUT_PROVIDER.has(code)

/**
 * Whether the same attempt may succeed later, be it after somebody mended a key. What no provider knows or is set up for
 * stays as it is until the registry or the settings change. Unknown errors are programming errors and are not retried.
 */
export function isTransient(error: unknown): boolean {
  return error instanceof DataError && TRANSIENT.has(error.code)
}

/**
 * Of failures that may pass, the one that passes soonest, as far as is known: what asks for no wait does so at once. The
 * first of several alike; undefined of none.
 */
export function toSoonest(failures: readonly DataError[]): DataError | undefined {
  const waitOf = ({ retryAfterMs = 0 }: DataError) => retryAfterMs
  const [first, ...others] = failures
  return first && others.reduce((soonest, one) => (waitOf(one) < waitOf(soonest) ? one : soonest), first)
}

/** A one-line reason for a log line or a report. */
export function toReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
