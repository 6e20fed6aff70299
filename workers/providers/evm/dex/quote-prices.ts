import { z } from 'zod'
import { tokenPrice } from '../../../../shared/datasets/token-prices.ts'
import type { HttpClient } from '../../../http/client.ts'
import { asSent, checkAnswer, isTime, listOf, mapOf, orNull } from '../../answer.ts'
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
const chartAnswer = z.object({
  coins: mapOf(z.object({ confidence: asSent, prices: listOf(point).optional() })),
})

interface Point {
  /** Unix seconds. */
  readonly timestamp: number
  readonly price: number
}

/** Returns the point if it has a plausible time and price. */
function toPoint({ timestamp, price }: z.infer<typeof point>): Point[] {
  const usd = orNull(tokenPrice, price)
  return typeof timestamp === 'number' && isTime(timestamp * 1000) && usd !== null ? [{ timestamp, price: usd }] : []
}

/** Returns the price of a coin at a Unix second: the newest one at or before it, or undefined if that is too old. */
export type PriceAt = (seconds: number) => number | undefined

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
    const told = coins[coin]
    if (told === undefined || !isSure(told.confidence)) continue
    points.push(...(told.prices ?? []).flatMap(toPoint))
  }
  return toPriceAt(points)
}

/** Returns a lookup of prices; the points may be unordered. */
function toPriceAt(points: readonly Point[]): PriceAt {
  const sorted = [...points].sort((a, b) => a.timestamp - b.timestamp)
  return (seconds) => {
    const point = findLast(sorted, ({ timestamp }) => timestamp <= seconds)
    return point !== undefined && seconds - point.timestamp <= OLDEST_SECONDS ? point.price : undefined
  }
}
