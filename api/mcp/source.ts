import { z } from 'zod'
import type { Config } from '../../shared/config/config.ts'
import { toReason } from '../../shared/errors.ts'
import { createProxiedFetch } from '../../shared/proxied-fetch.ts'
import type { OpenApi } from '../openapi/shape.ts'

/** The response to a request for a path of the API. */
export interface Reply {
  readonly text: string
  readonly headers: Headers
}

/** The data source of the tools: this process itself, or a remote API. */
export interface Source {
  /** Base URL for people to open, without a trailing slash. */
  readonly base: string
  /** Unix milliseconds. */
  now(): number
  document(): Promise<OpenApi>
  /**
   * Requests a path with its query.
   * @throws Refused
   */
  request(path: string, signal: AbortSignal): Promise<Reply>
}

const problem = z.object({
  code: z.string(),
  detail: z.string(),
  param: z.string().optional(),
  allowed: z.array(z.string()).optional(),
  candidates: z.array(z.object({ id: z.string(), name: z.string() })).optional(),
})

type ApiProblem = z.infer<typeof problem>

/** A request that was answered with an error, with the API's reason (docs/contract.md, section 5). */
export class Refused extends Error {
  readonly problem: ApiProblem
  /** Seconds after which a retry may help; undefined if a retry does not help. */
  readonly retryAfter: string | undefined

  constructor(apiProblem: ApiProblem, retryAfter?: string) {
    super(apiProblem.detail)
    this.name = 'Refused'
    this.problem = apiProblem
    this.retryAfter = retryAfter
  }
}

/**
 * Converts an error response. An error response of another type than `application/problem+json` comes from an
 * intermediary, such as a proxy.
 */
function toRefused({ status, headers }: Response, text: string): Refused {
  const isProblem = headers.get('content-type')?.startsWith('application/problem+json') ?? false
  const apiProblem = isProblem
    ? problem.parse(JSON.parse(text))
    : { code: 'unavailable', detail: `The service was not reached: status ${status}.` }
  return new Refused(apiProblem, headers.get('retry-after') ?? undefined)
}

/** A source for the API at a base URL, with an optional key and the proxies of the settings. */
export function createRemoteSource(
  base: string,
  { key, proxy }: Pick<Config, 'proxy'> & { key?: string | undefined },
): Source {
  const proxiedFetch = createProxiedFetch(proxy)
  const headers = key === undefined ? {} : { 'X-API-Key': key }
  const send = async (path: string, signal: AbortSignal) => {
    try {
      const response = await (proxiedFetch ?? fetch)(new URL(base + path), { headers, signal })
      return { response, text: await response.text() }
    } catch (error) {
      signal.throwIfAborted()
      throw new Refused({ code: 'unavailable', detail: `Nobody answers at ${base}: ${toReason(error)}` })
    }
  }
  const request = async (path: string, signal: AbortSignal): Promise<Reply> => {
    const { response, text } = await send(path, signal)
    if (!response.ok) throw toRefused(response, text)
    if (response.headers.get('content-type')?.startsWith('text/html'))
      throw new Refused({ code: 'unavailable', detail: `What answers at ${base} is no API of dao-data.` })
    return { text, headers: response.headers }
  }
  let document: OpenApi | undefined
  return {
    base,
    now: Date.now,
    document: async () => {
      document ??= JSON.parse((await request('/openapi.json', AbortSignal.timeout(30_000))).text) as OpenApi
      return document
    },
    request,
  }
}
