import type { z } from 'zod'
import type { Config } from '../../../shared/config/config.ts'
import type { Query } from '../../http/request.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import { type MonthBudget, toDayLimit, toMonthBudget } from '../month-budget.ts'
import { readError, throwSoftError } from './errors.ts'

/** The setting that limits the credits with a key. */
export const CREDITS_SETTING = 'COINMARKETCAP_CREDITS_PER_MONTH'

export const COST = `1 credit per 100 tokens or points, with a key up to ${CREDITS_SETTING}`

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
export function toBudget({ providers, worker }: Config): MonthBudget | undefined {
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
