import { z } from 'zod'
import { tokenPrice } from '../../../../shared/datasets/token-prices.ts'
import type { HttpClient } from '../../../http/client.ts'
import { asSent, checkAnswer, isTime, listOf, mapOf, orNull } from '../../answer.ts'
import { isSure } from '../../defillama/confidence.ts'
import { findLast } from './find-last.ts'

const STEP_SECONDS = 300
/**
 * How far from a step the provider looks for a price. Its prices are some minutes apart, at times of their own, and
 * without this it looks within a tenth of the step only.
 */
const SEARCH_WIDTH = '5m'
/** An older price is none: nothing is guessed. */
const OLDEST_SECONDS = 30 * 60
/** Points per call that the provider answers for one coin. */
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

/** A point that can be read, at a time and of a price that there can be. */
function toPoint({ timestamp, price }: z.infer<typeof point>): Point[] {
  const usd = orNull(tokenPrice, price)
  return typeof timestamp === 'number' && isTime(timestamp * 1000) && usd !== null ? [{ timestamp, price: usd }] : []
}

/** The price of a coin at a Unix second: the newest one at or before it, undefined when that is too old. */
export type PriceAt = (seconds: number) => number | undefined

/**
 * A coin's USD prices for the times from `from` to `to` (Unix seconds, both inclusive), from DefiLlama's chart in steps
 * of 5 minutes (docs/providers.md, section 3.2); none where the provider is not sure of them. The requests lie on a fixed grid and reach beyond both ends, so that
 * a time has the same price whatever range it is read in.
 */
export async function fetchPrices(
  client: HttpClient,
  coin: string,
  from: number,
  to: number,
  signal: AbortSignal,
): Promise<PriceAt> {
  const first = Math.floor((from - OLDEST_SECONDS) / STEP_SECONDS) * STEP_SECONDS
  // The provider answers with the observation nearest to each step, which may lie before it.
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

/** Looks prices up in a list of points in any order. */
function toPriceAt(points: readonly Point[]): PriceAt {
  const sorted = [...points].sort((a, b) => a.timestamp - b.timestamp)
  return (seconds) => {
    const point = findLast(sorted, ({ timestamp }) => timestamp <= seconds)
    return point !== undefined && seconds - point.timestamp <= OLDEST_SECONDS ? point.price : undefined
  }
}
