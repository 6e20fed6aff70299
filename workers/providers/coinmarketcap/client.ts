import { z } from 'zod'
import type { Config } from '../../../shared/config/config.ts'
import { DataError } from '../../../shared/errors.ts'
import type { ErrorReading, Query } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer, toJsonValue } from '../answer.ts'
import { type MonthBudget, toDayLimit, toMonthBudget } from '../plan.ts'
import { toNextDay, toNextMonth } from '../plan-resets.ts'

/** The setting that limits the credits with a key. */
export const CREDITS_SETTING = 'COINMARKETCAP_CREDITS_PER_MONTH'

export interface CoinMarketCap {
  readonly hasKey: boolean
  /** The plan's budget in credits; undefined without a key. */
  readonly budget: MonthBudget | undefined
  /** Returns the path of the keyless mirror, or the path itself with a key. */
  toKeylessPath(path: string): string
  /**
   * Fetches a response and validates it. `credits` are billed by the plan, default 1.
   * @throws DataError for errors, which also arrive with status 200.
   */
  fetch<T>(path: string, query: Query, schema: z.ZodType<T>, signal: AbortSignal, credits?: number): Promise<T>
}

/** Returns the plan's budget in credits; undefined without a key. */
function toBudget({ providers, worker }: Config): MonthBudget | undefined {
  const { creditsPerMonth } = providers.coinmarketcap
  return creditsPerMonth === undefined ? undefined : toMonthBudget(creditsPerMonth, worker.historyShare)
}

/** Opens CoinMarketCap with the key, if there is one (docs/providers.md, section 1). */
export function openCoinMarketCap({ config, http }: Pick<ProviderContext, 'config' | 'http'>): CoinMarketCap {
  const { apiKey, creditsPerMonth: _, ...settings } = config.providers.coinmarketcap
  const budget = toBudget(config)
  const hasKey = apiKey !== undefined
  const headers = hasKey ? { 'X-CMC_PRO_API_KEY': apiKey } : {}
  const client = http.open({
    provider: 'coinmarketcap',
    ...settings,
    ...toDayLimit(budget, CREDITS_SETTING),
    headers,
    readError,
  })
  return {
    hasKey,
    budget,
    toKeylessPath: (path) => (hasKey ? path : `/public-api${path}`),
    async fetch(path, query, schema, signal, credits = 1) {
      const answer = await client.json({ path, query, signal, units: credits })
      throwSoftError(answer, path)
      return checkAnswer(schema, answer, { provider: 'coinmarketcap', path })
    },
  }
}

const statusOf = z.object({ status: z.object({ error_code: z.coerce.number(), error_message: z.string().nullish() }) })

/**
 * Limits that end within minutes, by CoinMarketCap's code. The HTTP status is 429 for these and for the lasting limits
 * below, so the code decides.
 */
const SHORT_LIMITS: Readonly<Record<number, string>> = { 1008: 'minute', 1011: 'IP', 1022: 'anonymous' }
/** Limits that last until the next period, with the time until then. A retry before that would be refused. */
const PERIOD_LIMITS: Readonly<Record<number, { name: string; toReset: (now: number) => number }>> = {
  1009: { name: 'daily', toReset: toNextDay },
  1010: { name: 'monthly', toReset: toNextMonth },
}

/** The plan does not include the requested data: the key is valid, and only a larger plan helps. */
const BEYOND_PLAN = 1006

/**
 * Interprets an error response by CoinMarketCap's codes (docs/providers.md, section 1.4). Data outside of the plan is
 * not requested again until the settings change.
 */
export function readError(status: number, body: string): ErrorReading | undefined {
  const error = toError(body)
  const says = error?.message ?? ''
  const shortLimit = SHORT_LIMITS[error?.code ?? 0]
  if (shortLimit) return { code: 'provider_unavailable', says: `${shortLimit} limit reached: ${says}` }
  const periodLimit = PERIOD_LIMITS[error?.code ?? 0]
  if (periodLimit) {
    const retryAfterMs = periodLimit.toReset(Date.now())
    return { code: 'provider_exhausted', says: `${periodLimit.name} limit reached: ${says}`, retryAfterMs }
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
 * Detects errors with status 200.
 * @throws DataError `provider_unavailable` for limits that end within minutes, `provider_exhausted` for daily or
 *   monthly limits, `provider_unconfigured` for data outside of the plan, `provider_rejected` for any other error code.
 */
function throwSoftError(answer: unknown, path: string): void {
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
