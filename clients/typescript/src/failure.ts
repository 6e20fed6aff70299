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

/** The error of an answer that is none. */
export async function toProblemError(response: Response): Promise<ProblemError> {
  const text = await response.text()
  const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json') ?? false
  const retryAfter = toSeconds(response.headers.get('retry-after'))
  return new ProblemError(response, isProblem ? JSON.parse(text) : undefined, retryAfter)
}
