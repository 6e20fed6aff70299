import type { ErrorCode } from '../../shared/errors.ts'

/** The parameters of a request; those that are undefined are left out. */
export type Query = Readonly<Record<string, string | number | undefined>>

/** How one provider's host is spoken to. */
export interface HttpSettings {
  readonly provider: string
  readonly baseUrl: string
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Secrets that no message may repeat, besides the keys in headers and in the query's members with such names, and
   * those in the base URL.
   */
  readonly secrets?: readonly string[]
  /** For a whole answer, body included; each retry has it anew. */
  readonly timeoutMs: number
  /** The largest body, after decompression. */
  readonly maxBytes: number
  /** Shared by all clients of one provider's name; the first to open in a process sets it. */
  readonly requestsPerMinute: number
  /** How many of them may go at once, for a provider that counts by the second too; a fifth by default. */
  readonly burst?: number
  /**
   * Likewise, for a provider that counts by the hour too. When they are used up, requests fail until the hour is over.
   */
  readonly requestsPerHour?: number
  /** Likewise, for a plan that begins anew at midnight UTC. */
  readonly requestsPerDay?: number
  /** The setting that the number is from, for messages. */
  readonly daySetting?: string
  /** How many of those of a day history may use at most, where most of them are planned for what is new. */
  readonly historyRequestsPerDay?: number
  /** The provider's own reading of its error answers, where the status alone misleads. */
  readonly readError?: (status: number, body: string, headers: Headers) => ErrorReading | undefined
}

/** What an error answer may mean (shared/errors.ts). */
export type ErrorAnswer = Extract<
  ErrorCode,
  'provider_unavailable' | 'provider_rejected' | 'provider_exhausted' | 'provider_unconfigured'
>

/**
 * What an error answer means: `provider_unavailable` is worth another try at once. `says` replaces the excerpt of the
 * body, `retryAfterMs` the `Retry-After` header.
 */
export interface ErrorReading {
  readonly code: ErrorAnswer
  readonly says: string
  readonly retryAfterMs?: number | undefined
}

export interface HttpRequest {
  /** Appended to the base URL; begins with a slash. */
  readonly path: string
  /** The path with placeholders for ids, by which calls are counted; `path` where it has none. */
  readonly route?: string
  readonly query?: Query
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  readonly signal: AbortSignal
  /** Statuses that say "there is no such thing", to which the answer is undefined. */
  readonly absent?: readonly number[]
  /** Error statuses whose body is an answer like that of a success; to one that is no JSON `json` answers undefined. */
  readonly answers?: readonly number[]
  /**
   * Whether JSON that comes with an error status is an answer: one of `answers` whose body is none has the answer undefined,
   * and any other status is a failure unless its body is one.
   */
  readonly isAnswer?: (body: unknown, status: number) => boolean
  /** How many times the usual cap its answer may be large; 1 by default. */
  readonly timesMaxBytes?: number
  /** How often the request is sent again after a transient failure, 3 by default. */
  readonly retries?: number
  /** How many requests the provider bills it as, such as the calls of a batch; 1 by default. */
  readonly cost?: number
  /** How many units of a day's plan it is billed as, where that is another number; `cost` by default. */
  readonly units?: number
}

/** One request and what came back, as bytes on the wire but for the secrets in it. */
export interface Exchange {
  readonly provider: string
  readonly method: 'GET' | 'POST'
  /** Where it went, with its query. */
  readonly url: string
  /** What was sent as JSON. */
  readonly sent: unknown
  readonly status: number
  readonly contentType: string | null
  readonly body: string
}
