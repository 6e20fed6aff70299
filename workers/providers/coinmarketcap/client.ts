import type { z } from 'zod'
import type { Query } from '../../http/request.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import { readError, throwSoftError } from './errors.ts'

export interface CoinMarketCap {
  readonly hasKey: boolean
  /** Where a path is mirrored for those without a key. */
  toKeylessPath(path: string): string
  /** An answer of the schema's shape. @throws DataError for errors, which also arrive with status 200. */
  fetch<T>(path: string, query: Query, schema: z.ZodType<T>, signal: AbortSignal): Promise<T>
}

/** CoinMarketCap's host with its key, where there is one (providers document, section 1). */
export function openCoinMarketCap({ config, http }: Pick<ProviderContext, 'config' | 'http'>): CoinMarketCap {
  const { apiKey, ...settings } = config.providers.coinmarketcap
  const hasKey = apiKey !== undefined
  const headers = hasKey ? { 'X-CMC_PRO_API_KEY': apiKey } : {}
  const client = http.open({ provider: 'coinmarketcap', ...settings, headers, readError })
  return {
    hasKey,
    toKeylessPath: (path) => (hasKey ? path : `/public-api${path}`),
    async fetch(path, query, schema, signal) {
      const answer = await client.json({ path, query, signal })
      throwSoftError(answer, path)
      return checkAnswer(schema, answer, { provider: 'coinmarketcap', path })
    },
  }
}
