import type { z } from 'zod'
import type { Config } from '../../../shared/config/config.ts'
import type { Query } from '../../http/request.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import { type MonthBudget, toDayLimit, toMonthBudget } from '../month-budget.ts'
import { readError, throwSoftError } from './errors.ts'

/** The setting that bounds what is asked for with a key. */
export const CREDITS_SETTING = 'COINMARKETCAP_CREDITS_PER_MONTH'

export const COST = `1 credit per 100 tokens or points, with a key up to ${CREDITS_SETTING}`

export interface CoinMarketCap {
  readonly hasKey: boolean
  /** What the key's plan has for a day, in credits; undefined without a key. */
  readonly budget: MonthBudget | undefined
  /** Where a path is mirrored for those without a key. */
  toKeylessPath(path: string): string
  /**
   * An answer of the schema's shape; `credits` are what the plan bills, 1 by default.
   * @throws DataError for errors, which also arrive with status 200.
   */
  fetch<T>(path: string, query: Query, schema: z.ZodType<T>, signal: AbortSignal, credits?: number): Promise<T>
}

/** What the key's plan has for a day, in credits; undefined without a key. */
export function toBudget({ providers, worker }: Config): MonthBudget | undefined {
  const { creditsPerMonth } = providers.coinmarketcap
  return creditsPerMonth === undefined ? undefined : toMonthBudget(creditsPerMonth, worker.historyShare)
}

/** CoinMarketCap's host with its key, where there is one (docs/providers.md, section 1). */
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
