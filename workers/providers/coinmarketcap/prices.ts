import { coinmarketcapDeclaration } from '../../../shared/config/providers/coinmarketcap.ts'
import { DataError } from '../../../shared/errors.ts'
import { toBatches } from '../../../shared/group-by.ts'
import { DAY_MS, INTERVAL_SECONDS, toBucketStart } from '../../../shared/intervals.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import type { Provider, Range, Run } from '../../job/define-job.ts'
import { toUnknown } from '../answer.ts'
import type { PriceSource } from '../contracts/prices.ts'
import { countSteps, toPages } from '../paging.ts'
import { fetchWithinBudget, requireHistory } from '../plan.ts'
import { type Batch, requestBatches } from '../requests.ts'
import { type CoinMarketCap, CREDITS_SETTING, openCoinMarketCap } from './client.ts'
import { historicalAnswer, latestAnswer, splitFaulty, toHistoryRows, toLatestRows } from './quotes.ts'

const LATEST = '/v3/cryptocurrency/quotes/latest'
const HISTORICAL = '/v3/cryptocurrency/quotes/historical'
/** Every hundred ids cost one credit, and so does every hundred points of history. */
const IDS_PER_CALL = 100
const POINTS_PER_CREDIT = 100
/** The provider's limit for one coin. */
const POINTS_PER_COIN = 10_000
/** Our limit, which keeps a response within a few megabytes. */
const POINTS_PER_CALL = 20_000
/**
 * Days of history that the plans include, smallest plan first: at steps shorter than a day (`fine`), and at daily
 * steps.
 */
const PLAN_DAYS = { fine: [30, 90, 365], daily: [365, 3 * 365] }

/**
 * CoinMarketCap Pro API (docs/providers.md, section 1). Without a key, only the latest quotes are available, from the
 * keyless mirror; history is `provider_unconfigured`. The monthly credits of a key are spread over the slots. The
 * largest tokens get their newest prices from here, the others from the next provider.
 */
export const coinmarketcap: Provider<PriceSource, Token> = {
  name: 'coinmarketcap',
  cost: coinmarketcapDeclaration.cost,
  covers: (token) => token.cmcId !== null,
  connect(context) {
    const client = openCoinMarketCap(context)
    const { budget } = client
    const { now = Date.now } = context
    return {
      fetchLatest: (tokens, run) => {
        const latest = { name: 'coinmarketcap', setting: CREDITS_SETTING, tokensPerCall: IDS_PER_CALL, db: context.db }
        return fetchWithinBudget(budget, tokens, latest, run, (requested) => fetchLatest(client, requested, run))
      },
      async fetchHistory(tokens, range, run) {
        requireHistory(budget, CREDITS_SETTING)
        if (client.hasKey) return fetchHistory(client, tokens, range, { ...run, now: now() })
        const message = `coinmarketcap ${HISTORICAL}: COINMARKETCAP_API_KEY is needed for history`
        throw new DataError('provider_unconfigured', message)
      },
    }
  },
}

type RequestRun = Pick<Run<unknown, Token>, 'signal' | 'refuse'>

function fetchLatest(client: CoinMarketCap, tokens: readonly Token[], { signal, refuse }: RequestRun) {
  const batches = toBatches(tokens, IDS_PER_CALL).map((entities) => ({ entities }))
  const fetchBatch = async ({ entities }: Batch<Token>) => {
    const query = { id: toIds(entities), convert: 'USD' }
    const coins = await client.fetch(client.toKeylessPath(LATEST), query, latestAnswer, signal)
    refuseFaulty(coins, entities, refuse)
    return toLatestRows(coins, entities)
  }
  return requestBatches(batches, fetchBatch, { refuse })
}

/**
 * A coin that is in no response of the range is unknown to the provider. A coin that is listed without quotes has no
 * history.
 */
async function fetchHistory(
  client: CoinMarketCap,
  tokens: readonly Token[],
  range: Range,
  { signal, refuse: refuseToken, now }: RequestRun & { readonly now: number },
) {
  const unlisted = new Set(tokens)
  const refuse: RequestRun['refuse'] = (token, reason) => {
    unlisted.delete(token)
    refuseToken(token, reason)
  }
  const stepMs = INTERVAL_SECONDS[range.interval] * 1000
  const fetchBatch = async ({ entities, page }: HistoryBatch) => {
    const query = {
      id: toIds(entities),
      // The provider's start is exclusive, so it is one step before the page.
      time_start: new Date(page.from - stepMs).toISOString(),
      // The provider's end is inclusive and has a resolution of seconds.
      time_end: new Date(page.to - 1000).toISOString(),
      interval: page.interval,
      // Without `count`, the provider's default of ten points may apply. One more, in case the start is included.
      count: countSteps(page) + 1,
      convert: 'USD',
    }
    const credits = Math.ceil((entities.length * countSteps(page)) / POINTS_PER_CREDIT)
    const coins = await client.fetch(HISTORICAL, query, historicalAnswer, signal, credits)
    const listed = new Set<string | null | undefined>(coins.map(({ id }) => id))
    for (const token of entities) if (listed.has(token.cmcId)) unlisted.delete(token)
    refuseFaulty(coins, entities, refuse)
    return toHistoryRows(coins, entities, page)
  }
  const rows = await requestBatches(toHistoryBatches(client, tokens, range, now), fetchBatch, { refuse })
  for (const token of unlisted) refuseToken(token, toUnknown('coinmarketcap', `${HISTORICAL}?id=${token.cmcId}`))
  return rows
}

interface HistoryBatch extends Batch<Token> {
  readonly page: Range
}

/**
 * Splits a range into calls within the point limits of the provider, the plan and this program. The newest come first,
 * and no call crosses the history limit of a plan. A refused call ends the requests, and all data of the plan has been
 * fetched by then.
 */
function toHistoryBatches(client: CoinMarketCap, tokens: readonly Token[], range: Range, now: number): HistoryBatch[] {
  const mostPoints = Math.min(POINTS_PER_CALL, toMostCredits(client) * POINTS_PER_CREDIT)
  const lengthMs = Math.min(POINTS_PER_COIN - 1, mostPoints) * INTERVAL_SECONDS[range.interval] * 1000
  const pages = cutAtPlans(range, now).flatMap((part) => toPages(part, lengthMs))
  return pages.toReversed().flatMap((page) => {
    const coins = Math.min(IDS_PER_CALL, Math.max(1, Math.floor(mostPoints / countSteps(page))))
    return toBatches(tokens, coins).map((entities) => ({ entities, page }))
  })
}

/** Splits a range at the history limits of the plans, oldest first. */
function cutAtPlans(range: Range, now: number): Range[] {
  const stepMs = INTERVAL_SECONDS[range.interval] * 1000
  const days = stepMs < DAY_MS ? PLAN_DAYS.fine : PLAN_DAYS.daily
  // A call starts one step before its page.
  const depths = days.map((count) => toBucketStart(now - count * DAY_MS, range.interval) + Math.max(DAY_MS, 2 * stepMs))
  const cuts = [range.from, ...depths.filter((at) => at > range.from && at < range.to).toReversed(), range.to]
  return cuts.slice(1).map((to, index) => ({ ...range, from: cuts[index] ?? range.from, to }))
}

/**
 * Returns the credits of one history call: half of a day's budget, because a call above the whole budget would never be
 * made.
 */
const toMostCredits = ({ budget }: CoinMarketCap): number =>
  budget === undefined ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(budget.historyPerDay / 2))

/** An unreadable coin costs only its token's rows, not those of other tokens in the same response. */
function refuseFaulty(
  coins: Parameters<typeof splitFaulty>[0],
  tokens: readonly Token[],
  refuse: RequestRun['refuse'],
): void {
  for (const { id, fault } of splitFaulty(coins).faulty) {
    const token = tokens.find(({ cmcId }) => cmcId === id)
    if (token !== undefined) refuse(token, new DataError('provider_malformed', `coinmarketcap ${id}: ${fault}`))
  }
}

function toIds(tokens: readonly Token[]): string {
  return tokens.map((token) => token.cmcId).join(',')
}
