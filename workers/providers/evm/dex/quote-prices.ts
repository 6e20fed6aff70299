import { z } from 'zod'
import type { HttpClient } from '../../../http/client.ts'
import { checkAnswer } from '../../answer.ts'
import { findLast } from './find-last.ts'

const STEP_SECONDS = 300
/** An older price is none: nothing is guessed. */
const OLDEST_SECONDS = 30 * 60
/** Points per call that the provider answers for one coin. */
const POINTS_PER_CALL = 500

const chartAnswer = z.object({
  coins: z.record(z.string(), z.object({ prices: z.array(z.object({ timestamp: z.number(), price: z.number() })) })),
})

type Point = z.infer<typeof chartAnswer>['coins'][string]['prices'][number]

/** The price of a coin at a Unix second: the newest one at or before it, undefined when that is too old. */
export type PriceAt = (seconds: number) => number | undefined

/**
 * A coin's USD prices for the times from `from` to `to` (Unix seconds, both inclusive), from DefiLlama's chart in steps
 * of 5 minutes (providers document, section 3.2). The requests lie on a fixed grid and reach beyond both ends, so that
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
      query: { start, span: count, period: '5m' },
      signal,
    })
    const { coins } = checkAnswer(chartAnswer, answer, { provider: 'defillama-coins', path })
    for (const point of coins[coin]?.prices ?? []) if (point.price > 0) points.push(point)
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
