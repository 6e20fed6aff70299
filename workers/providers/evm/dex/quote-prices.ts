import { z } from 'zod'
import type { HttpClient } from '../../../http/client.ts'
import { checkAnswer } from '../../answer.ts'
import { confidence, isSure } from '../../defillama/confidence.ts'
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

const point = z.object({ timestamp: z.number(), price: z.number() })
/** One point that makes no sense is one that is missing. */
const pointOrNone = point.nullable().catch(null)

const chartAnswer = z.object({
  coins: z.record(z.string(), z.object({ confidence, prices: z.array(pointOrNone) })),
})

type Point = z.infer<typeof point>

/** The price of a coin at a Unix second: the newest one at or before it, undefined when that is too old. */
export type PriceAt = (seconds: number) => number | undefined

/**
 * A coin's USD prices for the times from `from` to `to` (Unix seconds, both inclusive), from DefiLlama's chart in steps
 * of 5 minutes (providers document, section 3.2); none where the provider is not sure of them. The requests lie on a fixed grid and reach beyond both ends, so that
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
    for (const one of told.prices) if (one !== null && one.price > 0) points.push(one)
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
