import { toBatches } from '../../../shared/batches.ts'
import { DataError } from '../../../shared/errors.ts'
import { INTERVAL_SECONDS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Provider, Range, Run } from '../../job/define-job.ts'
import { askBatches, type Batch } from '../ask-batches.ts'
import type { PriceSource } from '../contracts/prices.ts'
import { countSteps, toPages } from '../paging.ts'
import { type CoinMarketCap, openCoinMarketCap } from './client.ts'
import { historicalAnswer, latestAnswer, splitFaulty, toHistoryRows, toLatestRows } from './quotes.ts'

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
 * keyless mirror; history is then `provider_unconfigured`.
 */
export const coinmarketcap: Provider<PriceSource, Token> = {
  name: 'coinmarketcap',
  covers: (token) => token.cmcId !== null,
  connect(context) {
    const client = openCoinMarketCap(context)
    return {
      fetchLatest: (tokens, run) => fetchLatest(client, tokens, run),
      fetchHistory(tokens, range, run) {
        if (client.hasKey) return fetchHistory(client, tokens, range, run)
        const message = `coinmarketcap ${HISTORICAL}: COINMARKETCAP_API_KEY is needed for history`
        return Promise.reject(new DataError('provider_unconfigured', message))
      },
    }
  },
}

type AskRun = Pick<Run<unknown, Token>, 'signal' | 'refuse'>

function fetchLatest(client: CoinMarketCap, tokens: readonly Token[], { signal, refuse }: AskRun) {
  const batches = toBatches(tokens, IDS_PER_CALL).map((entities) => ({ entities }))
  const ask = async ({ entities }: Batch<Token>) => {
    const query = { id: toIds(entities), convert: 'USD' }
    const coins = await client.fetch(client.toKeylessPath(LATEST), query, latestAnswer, signal)
    refuseFaulty(coins, entities, refuse)
    return toLatestRows(coins, entities)
  }
  return askBatches(batches, ask, { refuse })
}

function fetchHistory(client: CoinMarketCap, tokens: readonly Token[], range: Range, { signal, refuse }: AskRun) {
  const stepMs = INTERVAL_SECONDS[range.interval] * 1000
  const pages = toPages(range, (POINTS_PER_COIN - 1) * stepMs)
  const batches = pages.flatMap((page) => {
    const coins = Math.min(IDS_PER_CALL, Math.max(1, Math.floor(POINTS_PER_CALL / countSteps(page))))
    return toBatches(tokens, coins).map((entities) => ({ entities, page }))
  })
  const ask = async ({ entities, page }: Batch<Token> & { page: Range }) => {
    const query = {
      id: toIds(entities),
      // The provider's start is exclusive: its first step is the one after it.
      time_start: new Date(page.from - stepMs).toISOString(),
      // The provider's end is inclusive and counts whole seconds.
      time_end: new Date(page.to - 1000).toISOString(),
      interval: page.interval,
      // Without it the provider's default of ten points may apply. One more, in case the start counts after all.
      count: countSteps(page) + 1,
      convert: 'USD',
    }
    const coins = await client.fetch(HISTORICAL, query, historicalAnswer, signal)
    refuseFaulty(coins, entities, refuse)
    return toHistoryRows(coins, entities, page)
  }
  return askBatches(batches, ask, { refuse })
}

/** One coin that cannot be read costs its own token its rows, and not those that share a call with it. */
function refuseFaulty(
  coins: Parameters<typeof splitFaulty>[0],
  tokens: readonly Token[],
  refuse: AskRun['refuse'],
): void {
  for (const { id, fault } of splitFaulty(coins).faulty) {
    const token = tokens.find(({ cmcId }) => cmcId === id)
    if (token !== undefined) refuse(token, new DataError('provider_malformed', `coinmarketcap ${id}: ${fault}`))
  }
}

function toIds(tokens: readonly Token[]): string {
  return tokens.map((token) => token.cmcId).join(',')
}
