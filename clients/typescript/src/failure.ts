import type { components } from './schema.ts'

/** The service's problem details. */
export type Problem = components['schemas']['Problem']

/** The error code, for use in programs. */
export type ProblemCode = Problem['code']

/** The service returned an error. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  /** The HTTP status. */
  readonly status: number
  /** The service's problem details; undefined if an intermediary such as a proxy answered. */
  readonly problem: Problem | undefined
  readonly requestId: string | undefined
  /** Seconds from `Retry-After`, if the answer has it. */
  readonly retryAfter: number | undefined
  readonly url: string

  constructor(response: Response, problem: Problem | undefined, retryAfter: number | undefined) {
    super(problem?.detail ?? `The service answered ${response.status}`)
    this.status = response.status
    this.problem = problem
    this.requestId = response.headers.get('x-request-id') ?? undefined
    this.retryAfter = retryAfter
    this.url = response.url
  }

  get code(): ProblemCode | undefined {
    return this.problem?.code
  }
}

/** Another server answered instead of the service, such as the login page of a proxy. A retry would give the same. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError'
  readonly url: string
  readonly status: number
  /** The media type of the answer; an empty text if it has none. */
  readonly mediaType: string

  constructor({ url, status, type, text }: { url: string; status: number; type: string; text: string }) {
    const start = text.trimStart().slice(0, 60)
    super(
      `${url} answered ${status} with ${type || 'no media type'} instead of JSON, beginning with ${JSON.stringify(start)}: check baseUrl and the proxy before it`,
    )
    this.url = url
    this.status = status
    this.mediaType = type
  }
}

/** No answer or only an incomplete one arrived; `cause` is the error of `fetch`. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly url: string

  constructor(url: string, cause: unknown) {
    super(`No answer from ${new URL(url).origin}`, { cause })
    this.url = url
  }
}

/** `Retry-After` in seconds; the header may also contain a date. */
function toSeconds(text: string | null): number | undefined {
  if (text === null) return undefined
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

/** Undefined for an incomplete problem; the status is still known. */
function parseProblem(text: string): Problem | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Converts an error response to an error. */
export async function toProblemError(response: Response): Promise<ProblemError> {
  const text = await response.text()
  const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json') ?? false
  const problem = isProblem ? parseProblem(text) : undefined
  const retryAfter = toSeconds(response.headers.get('retry-after'))
  return new ProblemError(response, problem, retryAfter)
}
