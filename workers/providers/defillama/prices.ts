import { z } from 'zod'
import { toBatches } from '../../../shared/batches.ts'
import { tokenPrice } from '../../../shared/datasets/token-prices.ts'
import { HOUR_MS } from '../../../shared/intervals.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { asSent, checkAnswer, isTime, listOf, mapOf, orNull } from '../answer.ts'
import { openDefiLlamaCoins } from './client.ts'
import { isSure } from './confidence.ts'

/** Token prices in USD by chain and contract; what the provider does not know, or is not sure of, is absent. */
export interface TokenPrices {
  /** By the coins' names (`toCoin`). */
  now(coins: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, number>>
  /** By coin, then by the times asked for (Unix milliseconds). Asked of those coins only that have a price now. */
  past(
    coins: readonly string[],
    times: readonly number[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>>
}

/** Chains that DefiLlama calls otherwise than the registry does. */
const CHAINS: Readonly<Record<string, string>> = { bnb: 'bsc', avalanche: 'avax', gnosis: 'xdai' }

/** A URL under 4 kB holds about this many coins (docs/providers.md, section 3.2). */
const COINS_PER_CALL = 70
/** And this many times, which are asked for one coin after the other. */
const TIMES_PER_CALL = 180
/** A price further from the time asked for is another time's. */
const NEAR_HOURS = 12
const NEAR_MS = NEAR_HOURS * HOUR_MS
/** Without it the provider looks within half of that only. */
const SEARCH_WIDTH = `${NEAR_HOURS}h`

const point = z.object({ timestamp: asSent, price: asSent, confidence: asSent })
const currentAnswer = z.object({ coins: mapOf(point) })
const batchAnswer = z.object({ coins: mapOf(z.object({ prices: listOf(point).optional() })) })

/** A price that the provider is sure of, with its time in Unix milliseconds. */
interface SurePrice {
  readonly at: number
  readonly price: number
}

/** Those that can be read, at times and prices that there can be. */
function toSure(points: readonly z.infer<typeof point>[]): SurePrice[] {
  return points.flatMap(({ timestamp, price, confidence }) => {
    const [at, usd] = [Number(timestamp ?? Number.NaN) * 1000, orNull(tokenPrice, price)]
    return isTime(at) && usd !== null && isSure(confidence) ? [{ at, price: usd }] : []
  })
}

/** The address that other providers write for a chain's own coin, and what this one writes. */
const COIN_PLACEHOLDER = `0x${'e'.repeat(40)}`
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

/** The provider's name of a contract. */
export function toCoin(chain: string, contract: string): string {
  return `${CHAINS[chain] ?? chain}:${contract === COIN_PLACEHOLDER ? ZERO_ADDRESS : contract}`
}

/** DefiLlama's coin prices (docs/providers.md, section 3.2). */
export function openPrices(context: Pick<ProviderContext, 'config' | 'http' | 'now'>): TokenPrices {
  const { now: clock = Date.now } = context
  const client = openDefiLlamaCoins(context)

  async function now(coins: readonly string[], signal: AbortSignal) {
    const prices = new Map<string, number>()
    for (const batch of toBatches(coins, COINS_PER_CALL)) {
      const path = `/prices/current/${batch.join(',')}`
      const route = '/prices/current/{coins}'
      const answer = await client.json({ path, route, signal })
      const found = checkAnswer(currentAnswer, answer, { provider: 'defillama-coins', path: route })
      for (const [coin, told] of Object.entries(found.coins))
        for (const { at, price } of toSure([told])) if (clock() - at <= NEAR_MS) prices.set(coin, price)
    }
    return prices
  }

  async function pastOf(coin: string, times: readonly number[], signal: AbortSignal) {
    const prices = new Map<number, number>()
    for (const batch of toBatches(times, TIMES_PER_CALL)) {
      const wanted = { [coin]: batch.map((time) => Math.floor(time / 1000)) }
      const query = { coins: JSON.stringify(wanted), searchWidth: SEARCH_WIDTH }
      const answer = await client.json({ path: '/batchHistorical', query, signal })
      const found = checkAnswer(batchAnswer, answer, { provider: 'defillama-coins', path: '/batchHistorical' })
      const points = toSure(found.coins[coin]?.prices ?? [])
      for (const time of batch) {
        const near = nearest(points, time)
        if (near !== undefined && Math.abs(near.at - time) <= NEAR_MS) prices.set(time, near.price)
      }
    }
    return prices
  }

  return {
    now,
    async past(coins, times, signal) {
      const known = await now(coins, signal)
      const past = new Map<string, ReadonlyMap<number, number>>()
      for (const coin of known.keys()) past.set(coin, await pastOf(coin, times, signal))
      return past
    },
  }
}

function nearest(points: readonly SurePrice[], time: number): SurePrice | undefined {
  const distance = ({ at }: SurePrice) => Math.abs(at - time)
  return points.reduce<SurePrice | undefined>(
    (best, point) => (best === undefined || distance(point) < distance(best) ? point : best),
    undefined,
  )
}
