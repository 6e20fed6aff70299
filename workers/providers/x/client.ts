import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import { DAY_MS } from '../../../shared/intervals.ts'
import type { ErrorReading, HttpRequest } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { toJsonValue } from '../answer.ts'
import { toNextDay } from '../plan-resets.ts'

export interface XClient {
  /** Sends a GET. Throws DataError, `provider_unconfigured` without a bearer token. */
  get(path: string, query: NonNullable<HttpRequest['query']>, signal: AbortSignal): Promise<unknown>
}

/** Opens the client shared by counts and posts, with one rate limit (docs/providers.md, section 13). */
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

/** Returns the handle in an account's link; undefined if there is no link. */
export function toHandle(link: string | null): string | undefined {
  return link === null ? undefined : /^https:\/\/(?:twitter|x)\.com\/([A-Za-z0-9_]{1,15})$/.exec(link)?.[1]
}

const problem = z.object({
  type: z.string().catch(''),
  title: z.string().catch(''),
  reset_date: z.string().optional().catch(undefined),
})
const USAGE_CAPPED = /\/usage-capped$/
const NO_CREDITS = /\/credits(?:-depleted)?$/
const SPEND_CAP = 'SpendCapReached'
const LIFT_CAP =
  'the spending limit is reached: raise it in the Developer Console of X, or wait for the next billing cycle'
const BUY_CREDITS = 'there are no credits left: buy some in the Developer Console of X'

/**
 * Distinguishes an exhausted plan from a refused key. A spending limit ends on its `reset_date`. The time at which
 * credits are bought is unknown, and so is the reset of a plan's usage: X is queried again on the next day. A rate
 * limit has its reset in a header. For all other statuses, the client's default retry rules apply.
 */
function readError(status: number, body: string, headers: Headers): ErrorReading | undefined {
  const now = Date.now()
  const { type = '', title = '', reset_date } = problem.safeParse(toJsonValue(body)).data ?? {}
  const toExhausted = (hint: string, retryAfterMs = toNextDay(now)) =>
    ({ code: 'provider_exhausted', says: `${hint} (${body})`, retryAfterMs }) as const
  if (title === SPEND_CAP) return toExhausted(LIFT_CAP, toDateMs(reset_date, now))
  if (status === 402 || NO_CREDITS.test(type)) return toExhausted(BUY_CREDITS, toDateMs(reset_date, now))
  if (status === 401 || status === 403) return { code: 'provider_rejected', says: `${body} (check X_BEARER_TOKEN)` }
  if (status !== 429) return undefined
  if (USAGE_CAPPED.test(type)) return toExhausted("the plan's usage is capped")
  return { code: 'provider_unavailable', says: body, retryAfterMs: toResetMs(headers.get('x-rate-limit-reset')) }
}

/** A billing cycle is one month. */
const LONGEST_CYCLE_MS = 32 * DAY_MS

/** Returns the wait until a UTC date; undefined for no date, a past date, and one beyond a billing cycle. */
function toDateMs(date: string | undefined, now: number): number | undefined {
  const ms = Date.parse(date ?? '') - now
  return ms > 0 && ms <= LONGEST_CYCLE_MS ? ms : undefined
}

/** Returns the wait until a Unix time in seconds; undefined for no time, a past time, and one beyond a day. */
function toResetMs(header: string | null): number | undefined {
  const ms = /^\d+$/.test(header ?? '') ? Number(header) * 1000 - Date.now() : 0
  return ms > 0 && ms <= DAY_MS ? ms : undefined
}
