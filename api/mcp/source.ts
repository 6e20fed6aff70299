import { z } from 'zod'
import { toReason } from '../../shared/errors.ts'
import type { OpenApi } from '../openapi/shape.ts'

/** What a path of the interface was answered with. */
export interface Reply {
  readonly text: string
  readonly headers: Headers
}

/** Whom the tools ask: this process itself, or an API elsewhere. */
export interface Source {
  /** Where people open what was asked for, without a slash at its end. */
  readonly base: string
  /** Unix milliseconds. */
  now(): number
  document(): Promise<OpenApi>
  /**
   * Asks for a path with its query.
   * @throws Refused
   */
  ask(path: string, signal: AbortSignal): Promise<Reply>
}

const problem = z.object({
  code: z.string(),
  detail: z.string(),
  allowed: z.array(z.string()).optional(),
  candidates: z.array(z.object({ id: z.string(), name: z.string() })).optional(),
})

type ToldProblem = z.infer<typeof problem>

/** A request that was not answered with data, as the interface says why (docs/contract.md, section 5). */
export class Refused extends Error {
  readonly problem: ToldProblem
  /** After how many seconds to ask again, where that helps. */
  readonly retryAfter: string | undefined

  constructor(told: ToldProblem, retryAfter?: string) {
    super(told.detail)
    this.name = 'Refused'
    this.problem = told
    this.retryAfter = retryAfter
  }
}

/** What a failed answer says; one that is no problem+json is of somebody in between, such as a proxy. */
function toRefused({ status, headers }: Response, text: string): Refused {
  const isProblem = headers.get('content-type')?.startsWith('application/problem+json') ?? false
  const told = isProblem
    ? problem.parse(JSON.parse(text))
    : { code: 'unavailable', detail: `The service was not reached: status ${status}.` }
  return new Refused(told, headers.get('retry-after') ?? undefined)
}

/** An API at an address, asked with a key where there is one. */
export function createRemoteSource(base: string, key?: string): Source {
  const headers = key === undefined ? {} : { 'X-API-Key': key }
  const send = async (path: string, signal: AbortSignal) => {
    try {
      const response = await fetch(base + path, { headers, signal })
      return { response, text: await response.text() }
    } catch (error) {
      signal.throwIfAborted()
      throw new Refused({ code: 'unavailable', detail: `Nobody answers at ${base}: ${toReason(error)}` })
    }
  }
  const ask = async (path: string, signal: AbortSignal): Promise<Reply> => {
    const { response, text } = await send(path, signal)
    if (!response.ok) throw toRefused(response, text)
    if (response.headers.get('content-type')?.startsWith('text/html'))
      throw new Refused({ code: 'unavailable', detail: `What answers at ${base} is no API of dao-data.` })
    return { text, headers: response.headers }
  }
  let known: OpenApi | undefined
  return {
    base,
    now: Date.now,
    document: async () => {
      known ??= JSON.parse((await ask('/openapi.json', AbortSignal.timeout(30_000))).text) as OpenApi
      return known
    },
    ask,
  }
}
