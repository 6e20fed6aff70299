import { z } from 'zod'
import { tokenPrice } from '../../../../shared/datasets/token-prices.ts'
import type { HttpClient } from '../../../http/client.ts'
import { asSent, checkAnswer, isTime, listOf, orNull } from '../../answer.ts'
import { isSure } from '../../defillama/confidence.ts'
import { findLast } from './find-last.ts'

const STEP_SECONDS = 300
/**
 * Search width of the provider around each step. Its prices are some minutes apart at irregular times. By default, it
 * searches only a tenth of the step.
 */
const SEARCH_WIDTH = '5m'
/** Older prices are not used, because they would be guesses. */
const OLDEST_SECONDS = 30 * 60
/** The provider's limit of points per call for one coin. */
const POINTS_PER_CALL = 500

const point = z.object({ timestamp: asSent, price: asSent })
/** Each call is about one coin, so an unreadable coin is not an unreadable answer. */
const chart = z.object({ confidence: asSent, prices: listOf(point).optional() }).catch({ prices: [{}] })
const chartAnswer = z.object({ coins: z.record(z.string(), chart) })

interface Point {
  /** Unix seconds. */
  readonly timestamp: number
  readonly price: number
}

/** Returns the point if it has a plausible time and price. */
function toPoint({ timestamp, price }: z.infer<typeof point>): Point | undefined {
  const usd = orNull(tokenPrice, price)
  const isPlausible = typeof timestamp === 'number' && isTime(timestamp * 1000) && usd !== null
  return isPlausible ? { timestamp, price: usd } : undefined
}

const FAULT = 'defillama-coins: prices.*: expected a time and a price that can be'

/** Returns the price of a coin at a Unix second: the newest one at or before it, or undefined if that is too old. */
export interface PriceAt {
  (seconds: number): number | undefined
  /** Set if a price of the chart cannot be used. */
  readonly fault?: string | undefined
}

/**
 * Fetches a coin's USD prices from `from` to `to` (Unix seconds, both inclusive) from DefiLlama's chart in steps of 5
 * minutes (docs/providers.md, section 3.2). Empty if the provider's confidence is too low. Requests are on a fixed grid
 * and extend beyond both ends, so a time has the same price in every range.
 */
export async function fetchPrices(
  client: HttpClient,
  coin: string,
  from: number,
  to: number,
  signal: AbortSignal,
): Promise<PriceAt> {
  const first = Math.floor((from - OLDEST_SECONDS) / STEP_SECONDS) * STEP_SECONDS
  // The provider returns the observation nearest to each step, which may precede it.
  const last = (Math.floor(to / STEP_SECONDS) + 1) * STEP_SECONDS
  const points: Point[] = []
  let fault: string | undefined
  for (let start = first; start <= last; start += POINTS_PER_CALL * STEP_SECONDS) {
    const count = Math.min(POINTS_PER_CALL, (last - start) / STEP_SECONDS + 1)
    const path = `/chart/${coin}`
    const answer = await client.json({
      path,
      route: '/chart/{coins}',
      query: { start, span: count, period: '5m', searchWidth: SEARCH_WIDTH },
      signal,
    })
    const { coins } = checkAnswer(chartAnswer, answer, { provider: 'defillama-coins', path })
    const quote = coins[coin]
    if (quote === undefined || !isSure(quote.confidence)) continue
    for (const one of quote.prices ?? []) {
      const read = toPoint(one)
      if (read === undefined) fault = FAULT
      else points.push(read)
    }
  }
  return Object.assign(toPriceAt(points), { fault })
}

/** Returns a lookup of prices; the points may be unordered. */
function toPriceAt(points: readonly Point[]): (seconds: number) => number | undefined {
  const sorted = [...points].sort((a, b) => a.timestamp - b.timestamp)
  return (seconds) => {
    const point = findLast(sorted, ({ timestamp }) => timestamp <= seconds)
    return point !== undefined && seconds - point.timestamp <= OLDEST_SECONDS ? point.price : undefined
  }
}
