import { toBatches } from '../../../shared/batches.ts'
import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import { DataError } from '../../../shared/errors.ts'
import { INTERVAL_SECONDS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate, Provider, ProviderContext, Range } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import type { PriceSource } from '../contracts/prices.ts'
import type { HttpClient } from '../http/client.ts'
import { countSteps, toPages } from '../paging.ts'
import { readError, throwSoftError } from './errors.ts'
import { historicalAnswer, latestAnswer, toHistoryRows, toLatestRows } from './quotes.ts'

const LATEST = '/v3/cryptocurrency/quotes/latest'
const HISTORICAL = '/v3/cryptocurrency/quotes/historical'
/** Every hundred ids cost a credit. */
const IDS_PER_CALL = 100
/** What the provider allows for one coin. */
const POINTS_PER_COIN = 10_000
/** A bound of our own, so that an answer stays within a few megabytes. */
const POINTS_PER_CALL = 20_000

/**
 * CoinMarketCap Pro API (providers document, section 1). Without a key only the latest quotes can be had, from the
 * keyless mirror; history is then `provider_rejected`.
 */
export const coinmarketcap: Provider<PriceSource, Token> = {
  name: 'coinmarketcap',
  covers: (token) => token.cmcId !== null,
  connect(context) {
    const { client, hasKey, toKeylessPath } = openCoinMarketCap(context)
    const latestPath = toKeylessPath(LATEST)
    return {
      fetchLatest: (tokens, signal) => fetchLatest(client, latestPath, tokens, signal),
      fetchHistory(tokens, range, signal) {
        if (hasKey) return fetchHistory(client, tokens, range, signal)
        const message = `coinmarketcap ${HISTORICAL}: COINMARKETCAP_API_KEY is needed for history`
        return Promise.reject(new DataError('provider_rejected', message))
      },
    }
  },
}

/** The provider's host with its key; `toKeylessPath` is where a path is mirrored for those without one. */
export function openCoinMarketCap({ config, http }: ProviderContext) {
  const { apiKey, ...settings } = config.providers.coinmarketcap
  const hasKey = apiKey !== undefined
  const headers = hasKey ? { 'X-CMC_PRO_API_KEY': apiKey } : {}
  return {
    client: http.open({ provider: 'coinmarketcap', ...settings, headers, readError }),
    hasKey,
    toKeylessPath: (path: string) => (hasKey ? path : `/public-api${path}`),
  }
}

async function fetchLatest(client: HttpClient, path: string, tokens: readonly Token[], signal: AbortSignal) {
  const rows: Candidate<TokenPriceRow>[] = []
  for (const batch of toBatches(tokens, IDS_PER_CALL)) {
    const answer = await client.json({ path, query: { id: toIds(batch), convert: 'USD' }, signal })
    throwSoftError(answer, path)
    rows.push(...toLatestRows(checkAnswer(latestAnswer, answer, { provider: 'coinmarketcap', path }), batch))
  }
  return rows
}

async function fetchHistory(client: HttpClient, tokens: readonly Token[], range: Range, signal: AbortSignal) {
  const pages: Candidate<TokenPriceRow>[][] = []
  for (const page of toPages(range, POINTS_PER_COIN * INTERVAL_SECONDS[range.interval] * 1000)) {
    const points = countSteps(page)
    const coins = Math.min(IDS_PER_CALL, Math.max(1, Math.floor(POINTS_PER_CALL / points)))
    for (const batch of toBatches(tokens, coins)) {
      const query = {
        id: toIds(batch),
        time_start: new Date(page.from).toISOString(),
        // The provider's end is inclusive and counts whole seconds.
        time_end: new Date(page.to - 1000).toISOString(),
        interval: page.interval,
        // Without it the provider's default of ten points may apply.
        count: points,
        convert: 'USD',
      }
      const answer = await client.json({ path: HISTORICAL, query, signal })
      throwSoftError(answer, HISTORICAL)
      const coinsFound = checkAnswer(historicalAnswer, answer, { provider: 'coinmarketcap', path: HISTORICAL })
      pages.push(toHistoryRows(coinsFound, batch, page))
    }
  }
  return pages.flat()
}

function toIds(tokens: readonly Token[]): string {
  return tokens.map((token) => token.cmcId).join(',')
}
