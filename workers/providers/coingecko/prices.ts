import type { z } from 'zod'
import { coingeckoDeclaration } from '../../../shared/config/providers/coingecko.ts'
import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import { DataError } from '../../../shared/errors.ts'
import { toBatches } from '../../../shared/group-by.ts'
import { DAY_MS, HOUR_MS, INTERVAL_SECONDS, toBucketStart } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { HttpClient } from '../../http/client.ts'
import type { Candidate, Provider, Range, Run } from '../../job/define-job.ts'
import { checkAnswer, toUnknown } from '../answer.ts'
import type { PriceSource } from '../contracts/prices.ts'
import { toPages } from '../paging.ts'
import { fetchWithinBudget, requireHistory } from '../plan.ts'
import { type Batch, requestBatches, requestEach } from '../requests.ts'
import { CALLS_SETTING, openCoinGecko, toBudget, toPlanDays } from './client.ts'
import { chartAnswer, marketsAnswer, toHistoryRows, toLatestRows } from './markets.ts'

const MARKETS = '/coins/markets'
const COINS_PER_PAGE = 250

/** A coin's pages need many calls, and the limit is low. */
const CONCURRENCY = 1

const HOURLY_PAGE_MS = 90 * DAY_MS
/**
 * The provider returns 5-minute steps for the last day. One hour less for calls that wait for the limit, and one for
 * cutting at whole hours.
 */
const FINE_MS = DAY_MS - 2 * HOUR_MS

/** CoinGecko, with a Pro key, a Demo key or none (docs/providers.md, section 2). Only a Pro key has more than 365 days of history. */
export const coingecko: Provider<PriceSource, Token> = {
  name: 'coingecko',
  cost: coingeckoDeclaration.cost,
  covers: (token) => token.coingeckoId !== null,
  connect(context) {
    const client = openCoinGecko(context)
    const budget = toBudget(context.config)
    return {
      fetchLatest: (tokens, run) => {
        const latest = { name: 'coingecko', setting: CALLS_SETTING, tokensPerCall: COINS_PER_PAGE, db: context.db }
        return fetchWithinBudget(budget, tokens, latest, run, (requested) => fetchLatest(client, requested, run))
      },
      async fetchHistory(tokens, range, run) {
        requireHistory(budget, CALLS_SETTING)
        const { now: clock = Date.now } = context
        const now = clock()
        const pages = toChartPages(range, now)
        const requestedSeconds = INTERVAL_SECONDS[range.interval]
        for (const page of pages) if (page.seconds > requestedSeconds) run.noteStep(page, page.seconds)
        const plan: Plan = {
          from: toBucketStart(now - toPlanDays(context.config) * DAY_MS, '1d') + DAY_MS,
          beyond: undefined,
        }
        const fetchOne = (token: Token) => fetchHistory(client, token, pages, { ...run, range, plan, clock })
        return (await requestEach(tokens, fetchOne, { ...run, range, concurrency: CONCURRENCY })).flat()
      },
    }
  },
}

function fetchLatest(
  client: HttpClient,
  tokens: readonly Token[],
  { signal, refuse }: Pick<Run<unknown, Token>, 'signal' | 'refuse'>,
) {
  const batches = toBatches(tokens, COINS_PER_PAGE).map((entities) => ({ entities }))
  const fetchBatch = async ({ entities }: Batch<Token>) => {
    const query = {
      vs_currency: 'usd',
      ids: entities.map((token) => token.coingeckoId).join(','),
      per_page: COINS_PER_PAGE,
      page: 1,
      price_change_percentage: '1h,24h,7d,30d',
    }
    const answer = await client.json({ path: MARKETS, query, signal })
    return toLatestRows(checkAnswer(marketsAnswer, answer, { provider: 'coingecko', path: MARKETS }), entities)
  }
  return requestBatches(batches, fetchBatch, { refuse })
}

/**
 * Plan limits detected during a run. After one page was refused (`beyond`), pages are cut at `from` (Unix
 * milliseconds).
 */
interface Plan {
  readonly from: number
  beyond: DataError | undefined
}

interface ChartRun extends Pick<Run<unknown, Token>, 'signal' | 'refuse'> {
  readonly range: Range
  readonly plan: Plan
  readonly clock: () => number
}

/**
 * Fetches one coin's history. If the plan has only the newer part, its rows are returned and the token is refused for
 * the rest.
 */
async function fetchHistory(
  client: HttpClient,
  token: Token,
  pages: readonly ChartPage[],
  { range, plan, clock, signal, refuse }: ChartRun,
): Promise<Candidate<TokenPriceRow>[]> {
  const charts: z.infer<typeof chartAnswer>[] = []
  let beyond: DataError | undefined
  const fetchPage = async (page: ChartPage) => {
    try {
      charts.push(await fetchChart(client, token, page, clock, signal))
    } catch (error) {
      if (!(error instanceof DataError) || error.code !== 'provider_unconfigured') throw error
      beyond = error
      plan.beyond = error
    }
  }
  for (const page of pages) {
    const isWithin = page.from >= plan.from
    if (isWithin || plan.beyond === undefined) await fetchPage(page)
    if (isWithin || plan.beyond === undefined) continue
    beyond = toBeyondPlan(plan)
    if (page.to > plan.from) await fetchPage({ ...page, from: plan.from })
  }
  // Thrown if there is no data at all, so that other coins are not requested for the same time.
  if (beyond !== undefined && charts.length === 0) throw beyond
  if (beyond !== undefined) refuse(token, beyond)
  return toHistoryRows(charts, token, range)
}

/** The error for a token that was not requested beyond the plan, because another token was refused there. */
const toBeyondPlan = ({ from }: Plan) =>
  new DataError(
    'provider_unconfigured',
    `coingecko: its plan has no history before ${new Date(from).toISOString()} (COINGECKO_API_KEY of a larger plan has more)`,
  )

/** A page with the provider's step for it. */
interface ChartPage extends Range {
  readonly seconds: number
}

/**
 * Splits a range at `now` into pages. Each page is as long as possible at the requested step, or at the nearest step
 * that the provider has. The provider chooses the step by the page's length: hours up to 90 days, days beyond that, and
 * 5 minutes only within one day that ends now (docs/providers.md, section 2). For steps finer than an hour, the last
 * day is therefore a separate page; older days always have hourly steps.
 */
function toChartPages(range: Range, now: number): ChartPage[] {
  const stepMs = INTERVAL_SECONDS[range.interval] * 1000
  const fineFrom = toBucketStart(now - FINE_MS, '1h')
  const toPage = (part: Range): ChartPage => {
    const isLong = part.to - part.from > HOURLY_PAGE_MS
    return { ...part, seconds: INTERVAL_SECONDS[isLong ? '1d' : part.from >= fineFrom ? '5m' : '1h'] }
  }
  if (stepMs >= DAY_MS) return [toPage(range)]
  const split = stepMs >= HOUR_MS ? range.to : Math.min(range.to, Math.max(range.from, fineFrom))
  return [...toPages({ ...range, to: split }, HOURLY_PAGE_MS), ...toPages({ ...range, from: split }, DAY_MS)].map(
    toPage,
  )
}

/** Fetches one coin's chart. @throws DataError `provider_unknown` if the provider does not know the coin. */
async function fetchChart(
  client: HttpClient,
  token: Token,
  { from, to, seconds }: ChartPage,
  clock: () => number,
  signal: AbortSignal,
) {
  const path = `/coins/${encodeURIComponent(token.coingeckoId ?? '')}/market_chart/range`
  const route = '/coins/{id}/market_chart/range'
  // A page that ends before now would have hourly steps. The surplus after its end is removed later.
  const end = seconds === INTERVAL_SECONDS['5m'] ? clock() : to
  const query = { vs_currency: 'usd', from: Math.floor(from / 1000), to: Math.ceil(end / 1000) }
  const answer = await client.json({ path, route, query, signal, absent: [404] })
  if (answer === undefined) throw toUnknown('coingecko', path)
  return checkAnswer(chartAnswer, answer, { provider: 'coingecko', path })
}
