import { toBatches } from '../../../shared/batches.ts'
import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import { DAY_MS, HOUR_MS, INTERVAL_SECONDS } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Candidate, Provider, Range } from '../../job/define-job.ts'
import { checkAnswer } from '../answer.ts'
import type { PriceSource } from '../contracts/prices.ts'
import { toPages } from '../paging.ts'
import { openCoinGecko } from './client.ts'
import { chartAnswer, marketsAnswer, toHistoryRows, toLatestRows } from './markets.ts'

const MARKETS = '/coins/markets'
const COINS_PER_PAGE = 250

const HOURLY_PAGE_MS = 90 * DAY_MS

/** CoinGecko, with a Pro key, a Demo key or none (providers document, section 2). A Demo key has 365 days of history. */
export const coingecko: Provider<PriceSource, Token> = {
  name: 'coingecko',
  covers: (token) => token.coingeckoId !== null,
  connect(context) {
    const client = openCoinGecko(context)
    return {
      fetchLatest: (tokens, signal) => fetchLatest(client, tokens, signal),
      fetchHistory: (tokens, range, signal) => fetchHistory(client, tokens, range, signal),
    }
  },
}

async function fetchLatest(client: HttpClient, tokens: readonly Token[], signal: AbortSignal) {
  const rows: Candidate<TokenPriceRow>[] = []
  for (const batch of toBatches(tokens, COINS_PER_PAGE)) {
    const query = {
      vs_currency: 'usd',
      ids: batch.map((token) => token.coingeckoId).join(','),
      per_page: COINS_PER_PAGE,
      page: 1,
      price_change_percentage: '1h,24h,7d,30d',
    }
    const answer = await client.json({ path: MARKETS, query, signal })
    rows.push(...toLatestRows(checkAnswer(marketsAnswer, answer, { provider: 'coingecko', path: MARKETS }), batch))
  }
  return rows
}

async function fetchHistory(client: HttpClient, tokens: readonly Token[], range: Range, signal: AbortSignal) {
  const rows: Candidate<TokenPriceRow>[][] = []
  for (const token of tokens) {
    const charts = []
    for (const page of toChartPages(range)) {
      const chart = await fetchChart(client, token, page, signal)
      if (chart) charts.push(chart)
    }
    rows.push(toHistoryRows(charts, token, range))
  }
  return rows.flat()
}

/**
 * The pages of a range, each as long as the provider answers it at the step that is asked for, or at the nearest it
 * has. The provider picks the step by the page's length: hours up to 90 days, days beyond, and 5 minutes only within a
 * day that ends now (providers document, section 2). So for a finer step than hours only the last day is a page of its
 * own; older days come by the hour in any case.
 */
function toChartPages(range: Range): Range[] {
  const stepMs = INTERVAL_SECONDS[range.interval] * 1000
  if (stepMs >= DAY_MS) return toPages(range, Number.POSITIVE_INFINITY)
  const lastDay = stepMs >= HOUR_MS ? range.to : Math.max(range.from, range.to - DAY_MS)
  return [...toPages({ ...range, to: lastDay }, HOURLY_PAGE_MS), ...toPages({ ...range, from: lastDay }, DAY_MS)]
}

/** One coin's chart; undefined for a coin that the provider does not know. */
async function fetchChart(client: HttpClient, token: Token, page: Range, signal: AbortSignal) {
  const path = `/coins/${encodeURIComponent(token.coingeckoId ?? '')}/market_chart/range`
  const route = '/coins/{id}/market_chart/range'
  const query = { vs_currency: 'usd', from: Math.floor(page.from / 1000), to: Math.ceil(page.to / 1000) }
  const answer = await client.json({ path, route, query, signal, absent: [404] })
  return answer === undefined ? undefined : checkAnswer(chartAnswer, answer, { provider: 'coingecko', path })
}
