import type { components } from './schema.ts'

/** Why the service refused, as it tells it. */
export type Problem = components['schemas']['Problem']

/** What went wrong, for programs to decide by. */
export type ProblemCode = Problem['code']

/** The service answered that it cannot, or that it will not. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  /** The HTTP status. */
  readonly status: number
  /** The service's own words; undefined where something before it answered, as a proxy does. */
  readonly problem: Problem | undefined
  readonly requestId: string | undefined
  /** In how many seconds to ask again, where the answer says so. */
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

/** Something else answered in place of the service, as the login page of a proxy does: asking again would bring the same. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError'
  readonly url: string
  readonly status: number
  /** The media type that came; an empty text if the answer names none. */
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

/** No answer came, or not a whole one: `cause` is what `fetch` says. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly url: string

  constructor(url: string, cause: unknown) {
    super(`No answer from ${new URL(url).origin}`, { cause })
    this.url = url
  }
}

/** `Retry-After` in seconds, which may be told as a time. */
function toSeconds(text: string | null): number | undefined {
  if (text === null) return undefined
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

/** A problem that a proxy cut short tells nothing; the status still does. */
function parseProblem(text: string): Problem | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The error of an answer that is none. */
export async function toProblemError(response: Response): Promise<ProblemError> {
  const text = await response.text()
  const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json') ?? false
  const problem = isProblem ? parseProblem(text) : undefined
  const retryAfter = toSeconds(response.headers.get('retry-after'))
  return new ProblemError(response, problem, retryAfter)
}
