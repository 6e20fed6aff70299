import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { ErrorReading, HttpRequest } from '../../http/request.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { toJsonValue } from '../answer.ts'
import { toNextDay } from '../plan-resets.ts'

export const COST = '$0.010 a user, $0.005 a post'

export interface XClient {
  /** One GET. Throws DataError, `provider_unconfigured` without a bearer token. */
  get(path: string, query: NonNullable<HttpRequest['query']>, signal: AbortSignal): Promise<unknown>
}

/** Opens the client that counts and posts share, with one rate limit (providers document, section 13). */
export function openX({ config, http }: ProviderContext): XClient {
  const { baseUrl, bearerToken, requestsPerMinute, timeoutMs, maxBytes } = config.providers.x
  const headers = bearerToken === undefined ? {} : { authorization: `Bearer ${bearerToken}` }
  const client = http.open({ provider: 'x', baseUrl, requestsPerMinute, timeoutMs, maxBytes, headers, readError })
  return {
    async get(path, query, signal) {
      if (bearerToken === undefined) throw new DataError('provider_unconfigured', 'x: X_BEARER_TOKEN is not set')
      return client.json({ path, query, signal })
    },
  }
}

/** The handle in the link of an account; undefined where there is no link. */
export function toHandle(link: string | null): string | undefined {
  return link === null ? undefined : /^https:\/\/(?:twitter|x)\.com\/([A-Za-z0-9_]{1,15})$/.exec(link)?.[1]
}

const problem = z.object({ type: z.string() })
const USAGE_CAPPED = /\/usage-capped$/

/**
 * Reads the time at which a rate limit ends from its header. That of a plan which is used up is not documented: it is asked
 * again on the next day. For all other statuses the client decides whether to try again.
 */
function readError(status: number, body: string, headers: Headers): ErrorReading | undefined {
  if (status === 401 || status === 403) return { code: 'provider_rejected', says: `${body} (check X_BEARER_TOKEN)` }
  if (status !== 429) return undefined
  const parsed = problem.safeParse(toJsonValue(body))
  if (parsed.success && USAGE_CAPPED.test(parsed.data.type)) {
    const says = `the plan's usage is capped: ${body}`
    return { code: 'provider_exhausted', says, retryAfterMs: toNextDay(Date.now()) }
  }
  return { code: 'provider_unavailable', says: body, retryAfterMs: toResetMs(headers.get('x-rate-limit-reset')) }
}

/** The wait until a Unix time in seconds; undefined for no time or a passed one. */
function toResetMs(header: string | null): number | undefined {
  const ms = /^\d+$/.test(header ?? '') ? Number(header) * 1000 - Date.now() : 0
  return ms > 0 ? ms : undefined
}
