import { z } from 'zod'
import { DataError } from '../../../shared/errors.ts'
import type { ErrorReading } from '../../http/request.ts'
import { toJsonValue } from '../answer.ts'
import { toNextDay, toNextMonth } from '../plan-resets.ts'

const statusOf = z.object({ status: z.object({ error_code: z.coerce.number(), error_message: z.string().nullish() }) })

/**
 * Limits that pass within minutes, by CoinMarketCap's code. The code decides, because the HTTP status is 429 for these
 * and for the lasting ones below.
 */
const PASSING_LIMITS: Readonly<Record<number, string>> = { 1008: 'minute', 1011: 'IP', 1022: 'anonymous' }
/** Limits that last until the next period, and how long that is: trying again before would only be refused again. */
const LASTING_LIMITS: Readonly<Record<number, { name: string; toReset: (now: number) => number }>> = {
  1009: { name: 'daily', toReset: toNextDay },
  1010: { name: 'monthly', toReset: toNextMonth },
}

/** The plan does not have what was asked for: the key is right, and only a larger plan helps. */
const BEYOND_PLAN = 1006

/**
 * What an error answer means, by CoinMarketCap's codes (docs/providers.md, section 1.4). What the plan does not have is not
 * asked for again until the settings change.
 */
export function readError(status: number, body: string): ErrorReading | undefined {
  const error = toError(body)
  const says = error?.message ?? ''
  const passing = PASSING_LIMITS[error?.code ?? 0]
  if (passing) return { code: 'provider_unavailable', says: `${passing} limit reached: ${says}` }
  const lasting = LASTING_LIMITS[error?.code ?? 0]
  if (lasting) {
    const retryAfterMs = lasting.toReset(Date.now())
    return { code: 'provider_exhausted', says: `${lasting.name} limit reached: ${says}`, retryAfterMs }
  }
  if (error?.code === BEYOND_PLAN) {
    return { code: 'provider_unconfigured', says: `${says} (a larger plan of COINMARKETCAP_API_KEY has it)` }
  }
  if (status === 401 || status === 402 || status === 403) {
    return { code: 'provider_rejected', says: `${says === '' ? 'no access' : says} (check COINMARKETCAP_API_KEY)` }
  }
  return undefined
}

/**
 * Errors also arrive with status 200.
 * @throws DataError `provider_unavailable` for limits that pass within minutes, `provider_exhausted` for those of a day or a
 *   month, `provider_unconfigured` for what the plan does not have, `provider_rejected` for any other error code.
 */
export function throwSoftError(answer: unknown, path: string): void {
  const parsed = statusOf.safeParse(answer)
  if (!parsed.success || parsed.data.status.error_code === 0) return
  const { error_code, error_message } = parsed.data.status
  const reading = readError(200, JSON.stringify({ status: parsed.data.status }))
  const says = reading?.says ?? `error ${error_code}: ${error_message ?? 'no message'}`
  const retryAfterMs = reading?.retryAfterMs
  throw new DataError(reading?.code ?? 'provider_rejected', `coinmarketcap ${path}: ${says}`, { retryAfterMs })
}

function toError(body: string): { code: number; message: string } | undefined {
  const parsed = statusOf.safeParse(toJsonValue(body))
  if (!parsed.success) return undefined
  const { error_code, error_message } = parsed.data.status
  return { code: error_code, message: error_message ?? '' }
}
