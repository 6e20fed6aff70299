import { toBatches } from '../../../shared/batches.ts'
import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import { DataError } from '../../../shared/errors.ts'
import { INTERVAL_SECONDS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Candidate, Provider, Range } from '../../job/define-job.ts'
import type { PriceSource } from '../contracts/prices.ts'
import { countSteps, toPages } from '../paging.ts'
import { type CoinMarketCap, openCoinMarketCap } from './client.ts'
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
    const client = openCoinMarketCap(context)
    return {
      fetchLatest: (tokens, signal) => fetchLatest(client, tokens, signal),
      fetchHistory(tokens, range, signal) {
        if (client.hasKey) return fetchHistory(client, tokens, range, signal)
        const message = `coinmarketcap ${HISTORICAL}: COINMARKETCAP_API_KEY is needed for history`
        return Promise.reject(new DataError('provider_rejected', message))
      },
    }
  },
}

async function fetchLatest(client: CoinMarketCap, tokens: readonly Token[], signal: AbortSignal) {
  const rows: Candidate<TokenPriceRow>[] = []
  for (const batch of toBatches(tokens, IDS_PER_CALL)) {
    const query = { id: toIds(batch), convert: 'USD' }
    rows.push(...toLatestRows(await client.fetch(client.toKeylessPath(LATEST), query, latestAnswer, signal), batch))
  }
  return rows
}

async function fetchHistory(client: CoinMarketCap, tokens: readonly Token[], range: Range, signal: AbortSignal) {
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
      pages.push(toHistoryRows(await client.fetch(HISTORICAL, query, historicalAnswer, signal), batch, page))
    }
  }
  return pages.flat()
}

function toIds(tokens: readonly Token[]): string {
  return tokens.map((token) => token.cmcId).join(',')
}
