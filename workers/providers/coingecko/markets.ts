import { z } from 'zod'
import type { TokenPriceRow } from '../../../shared/datasets/token-prices.ts'
import type { Token } from '../../../shared/registry/entities.ts'
import { type Candidate, OMITTED, type Range } from '../../job/define-job.ts'
import { asSent, isTime, listOf, toIso, toUnreadable } from '../answer.ts'
import { thin } from '../paging.ts'

/** Coins/markets (docs/providers.md, section 2). */
export const marketsAnswer = listOf(
  z.object({
    id: asSent,
    current_price: asSent,
    total_volume: asSent,
    market_cap: asSent,
    total_supply: asSent,
    circulating_supply: asSent,
    max_supply: asSent,
    fully_diluted_valuation: asSent,
    price_change_percentage_24h: asSent,
    price_change_percentage_1h_in_currency: asSent,
    price_change_percentage_24h_in_currency: asSent,
    price_change_percentage_7d_in_currency: asSent,
    price_change_percentage_30d_in_currency: asSent,
    last_updated: asSent,
  }),
)

const points = z.array(z.unknown())

/** Market_chart/range: three series of [Unix milliseconds, value] (docs/providers.md, section 2). */
export const chartAnswer = z.object({ prices: points, market_caps: points.catch([]), total_volumes: points.catch([]) })

type Point = readonly [ms: number, value: unknown]

const isPoint = (value: unknown): value is Point => Array.isArray(value) && value.length === 2 && isTime(value[0])

/** Values that the provider never has: changes over 60 and 90 days, change of volume, total value locked. */
const NEVER_PROVIDED = { volume_change_24h: null, percent_change_60d: null, percent_change_90d: null, tvl: null }

/** Returns one row for each requested coin. */
export function toLatestRows(
  coins: z.infer<typeof marketsAnswer>,
  tokens: readonly Token[],
): Candidate<TokenPriceRow>[] {
  const tokenByCoin = new Map<unknown, Token>(tokens.map((token) => [token.coingeckoId, token]))
  return coins.flatMap((coin) => {
    if (typeof coin.id !== 'string') return [toUnreadable<TokenPriceRow>('id: expected the id of a coin')]
    const token = tokenByCoin.get(coin.id)
    if (!token) return []
    const change24h = coin.price_change_percentage_24h_in_currency ?? coin.price_change_percentage_24h
    const row: Candidate<TokenPriceRow> = {
      ...NEVER_PROVIDED,
      token: token.key,
      observed_at: toIso(coin.last_updated),
      is_latest: true,
      price: coin.current_price ?? null,
      volume_24h: coin.total_volume ?? null,
      market_cap: coin.market_cap ?? null,
      total_supply: coin.total_supply ?? null,
      circulating_supply: coin.circulating_supply ?? null,
      max_supply: coin.max_supply ?? null,
      fully_diluted_market_cap: coin.fully_diluted_valuation ?? null,
      percent_change_1h: coin.price_change_percentage_1h_in_currency ?? null,
      percent_change_24h: change24h ?? null,
      percent_change_7d: coin.price_change_percentage_7d_in_currency ?? null,
      percent_change_30d: coin.price_change_percentage_30d_in_currency ?? null,
    }
    return [row]
  })
}

/**
 * Returns one row for the first price of each bucket of the range, with the market cap and volume of the same
 * millisecond. Supplies are null: market cap divided by price would be a guess.
 */
export function toHistoryRows(
  charts: readonly z.infer<typeof chartAnswer>[],
  token: Token,
  range: Range,
): Candidate<TokenPriceRow>[] {
  const marketCaps = new Map(charts.flatMap((chart) => chart.market_caps.filter(isPoint)))
  const volumes = new Map(charts.flatMap((chart) => chart.total_volumes.filter(isPoint)))
  const prices = charts.flatMap((chart) => chart.prices)
  const unreadable = prices.filter((point) => !isPoint(point))
  const chartPoints = charts.flatMap((chart) => [...chart.market_caps, ...chart.total_volumes])
  const lost = chartPoints
    .filter((point) => !isPoint(point))
    .map(() => 'market_caps, total_volumes: expected a time and a value')
  const faults = unreadable.map(() => toUnreadable<TokenPriceRow>(UNREADABLE_POINT, { token: token.key }))
  const rows = thin(prices.filter(isPoint), ([ms]) => ms, range).map(([ms, price]) => ({
    ...NEVER_PROVIDED,
    token: token.key,
    observed_at: toIso(ms),
    is_latest: false,
    price,
    volume_24h: volumes.get(ms) ?? null,
    market_cap: marketCaps.get(ms) ?? null,
    total_supply: null,
    circulating_supply: null,
    max_supply: null,
    fully_diluted_market_cap: null,
    percent_change_1h: null,
    percent_change_24h: null,
    percent_change_7d: null,
    percent_change_30d: null,
  }))
  const [first, ...later] = rows
  return first === undefined || lost.length === 0
    ? [...rows, ...faults]
    : [{ ...first, [OMITTED]: lost }, ...later, ...faults]
}

const UNREADABLE_POINT = 'prices.*: expected a time and a price'
