import { z } from 'zod'
import type { Config } from '../../../shared/config/config.ts'
import { isPaidCoinGecko } from '../../../shared/config/providers/coingecko.ts'
import type { ErrorReading, HttpClient } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { toJsonValue } from '../answer.ts'
import { type MonthBudget, toDayLimit, toMonthBudget } from '../plan.ts'

/** The setting that limits the calls with a key. */
export const CALLS_SETTING = 'COINGECKO_CALLS_PER_MONTH'

/** Opens the provider's host with the matching key header. */
export function openCoinGecko({ config, http }: Pick<ProviderContext, 'config' | 'http'>): HttpClient {
  const { apiKey, callsPerMonth: _, ...settings } = config.providers.coingecko
  const headers = apiKey === undefined ? {} : { [isPro(config) ? 'x-cg-pro-api-key' : 'x-cg-demo-api-key']: apiKey }
  const limit = toDayLimit(toBudget(config), CALLS_SETTING)
  return http.open({ provider: 'coingecko', ...settings, ...limit, headers, readError })
}

/** Returns the plan's budget in calls; undefined without a key. */
export function toBudget({ providers, worker }: Config): MonthBudget | undefined {
  const { callsPerMonth } = providers.coingecko
  return callsPerMonth === undefined ? undefined : toMonthBudget(callsPerMonth, worker.historyShare)
}

const isPro = ({ providers }: Config) => isPaidCoinGecko(providers.coingecko.baseUrl)

/** Days of history in the smallest plan of the host: two years with a paid key, or else one year. */
export const toPlanDays = (config: Config): number => (isPro(config) ? 730 : 365)

const errorStatus = z.object({ error_code: z.coerce.number(), error_message: z.string() })
const errorAnswer = z.union([
  z.object({ status: errorStatus }).transform(({ status }) => status),
  z.object({ error: z.object({ status: errorStatus }) }).transform(({ error }) => error.status),
])
const KEY_PROBLEMS: ReadonlySet<number> = new Set([10002, 10005, 10010, 10011])
/**
 * The requested time is before the plan's history. Without a paid key the history has 365 days, and only another key
 * has more.
 */
const BEYOND_PLAN = 10012

/**
 * Adds the relevant setting to the message; retries follow the default rules. Data outside of the plan is not requested
 * again until the settings change.
 */
function readError(status: number, body: string): ErrorReading | undefined {
  if (status === 408 || status === 429 || status >= 500) return undefined
  const parsed = errorAnswer.safeParse(toJsonValue(body))
  if (!parsed.success) return undefined
  const { error_code, error_message } = parsed.data
  if (error_code === BEYOND_PLAN) {
    const says = `error ${error_code}: ${error_message} (COINGECKO_API_KEY of a larger plan has more)`
    return { code: 'provider_unconfigured', says }
  }
  const hint = KEY_PROBLEMS.has(error_code) ? ' (check COINGECKO_API_KEY and COINGECKO_BASE_URL)' : ''
  return { code: 'provider_rejected', says: `error ${error_code}: ${error_message}${hint}` }
}
