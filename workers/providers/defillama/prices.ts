import { z } from 'zod'
import { tokenPrice } from '../../../shared/datasets/token-prices.ts'
import { NATIVE_COIN } from '../../../shared/datasets/treasury.ts'
import { toBatches } from '../../../shared/group-by.ts'
import { HOUR_MS } from '../../../shared/intervals.ts'
import type { HttpClient } from '../../http/client.ts'
import type { ProviderContext } from '../../job/define-job.ts'
import { asSent, checkAnswer, isTime, listOf, mapOf, orNull } from '../answer.ts'
import { openDefiLlamaCoins } from './client.ts'
import { isSure } from './confidence.ts'

/** Prices, and the reason for each coin with a price that cannot be used. */
interface Found<T> {
  readonly prices: ReadonlyMap<string, T>
  readonly faults: ReadonlyMap<string, string>
}

/** Token prices in USD by chain and contract. Unknown prices, and those with too little confidence, are absent. */
export interface TokenPrices {
  /** Returns current prices by coin name (`toCoin`). */
  now(coins: readonly string[], signal: AbortSignal): Promise<Found<number>>
  /**
   * Returns past prices by coin and requested time (Unix milliseconds). Only coins with a current price are requested,
   * and those whose current price cannot be used.
   */
  past(
    coins: readonly string[],
    times: readonly number[],
    signal: AbortSignal,
  ): Promise<Found<ReadonlyMap<number, number>>>
}

/** Chains with other names at DefiLlama than in the registry. */
const CHAINS: Readonly<Record<string, string>> = { bnb: 'bsc', avalanche: 'avax', gnosis: 'xdai' }

/** A URL under 4 kB holds about this many coins (docs/providers.md, section 3.2). */
const COINS_PER_CALL = 70
/** Number of times per call; coins are requested in sequence. */
const TIMES_PER_CALL = 180
/** Prices further from the requested time are not used. */
const NEAR_HOURS = 12
const NEAR_MS = NEAR_HOURS * HOUR_MS
/** The provider's default is only half of that. */
const SEARCH_WIDTH = `${NEAR_HOURS}h`

const point = z.object({ timestamp: asSent, price: asSent, confidence: asSent })
const currentAnswer = z.object({ coins: mapOf(point) })
/** Each call is about one coin, so an unreadable coin is not an unreadable answer. */
const pastPrices = z.object({ prices: listOf(point).optional() }).catch({ prices: [{}] })
const batchAnswer = z.object({ coins: z.record(z.string(), pastPrices) })

/** A price with sufficient confidence, and its time in Unix milliseconds. */
interface SurePrice {
  readonly at: number
  readonly price: number
}

const FAULT = 'defillama-coins: prices.*: expected a time and a price that can be'

/** Returns the points with sufficient confidence, and a fault if a point has no plausible time and price. */
function toSure(points: readonly z.infer<typeof point>[]): { sure: SurePrice[]; fault: string | undefined } {
  const sure: SurePrice[] = []
  let fault: string | undefined
  for (const { timestamp, price, confidence } of points) {
    const [at, usd] = [Number(timestamp ?? Number.NaN) * 1000, orNull(tokenPrice, price)]
    if (!isTime(at) || usd === null) fault = FAULT
    else if (isSure(confidence)) sure.push({ at, price: usd })
  }
  return { sure, fault }
}

/** The contract that this provider has for the native coin of a chain. */
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

/** Returns the provider's name of a contract. */
export function toCoin(chain: string, contract: string): string {
  return `${CHAINS[chain] ?? chain}:${contract === NATIVE_COIN ? ZERO_ADDRESS : contract}`
}

/** Fetches the current prices of coins with sufficient confidence, at the times of the provider. */
export async function fetchCurrent(
  client: HttpClient,
  coins: readonly string[],
  signal: AbortSignal,
): Promise<Found<SurePrice>> {
  const [prices, faults] = [new Map<string, SurePrice>(), new Map<string, string>()]
  for (const batch of toBatches(coins, COINS_PER_CALL)) {
    const path = `/prices/current/${batch.join(',')}`
    const route = '/prices/current/{coins}'
    const answer = await client.json({ path, route, signal })
    const found = checkAnswer(currentAnswer, answer, { provider: 'defillama-coins', path: route })
    for (const [coin, quote] of Object.entries(found.coins)) {
      const { sure, fault } = toSure([quote])
      if (fault !== undefined) faults.set(coin, fault)
      for (const one of sure) prices.set(coin, one)
    }
  }
  return { prices, faults }
}

/** DefiLlama's coin prices (docs/providers.md, section 3.2). */
export function openPrices(context: Pick<ProviderContext, 'config' | 'http' | 'now'>): TokenPrices {
  const { now: clock = Date.now } = context
  const client = openDefiLlamaCoins(context)

  async function now(coins: readonly string[], signal: AbortSignal) {
    const prices = new Map<string, number>()
    const current = await fetchCurrent(client, coins, signal)
    for (const [coin, { at, price }] of current.prices) if (clock() - at <= NEAR_MS) prices.set(coin, price)
    return { prices, faults: current.faults }
  }

  async function pastOf(coin: string, times: readonly number[], signal: AbortSignal) {
    const prices = new Map<number, number>()
    let fault: string | undefined
    for (const batch of toBatches(times, TIMES_PER_CALL)) {
      const seconds = { [coin]: batch.map((time) => Math.floor(time / 1000)) }
      const query = { coins: JSON.stringify(seconds), searchWidth: SEARCH_WIDTH }
      const answer = await client.json({ path: '/batchHistorical', query, signal })
      const found = checkAnswer(batchAnswer, answer, { provider: 'defillama-coins', path: '/batchHistorical' })
      const points = toSure(found.coins[coin]?.prices ?? [])
      fault ??= points.fault
      for (const time of batch) {
        const near = nearest(points.sure, time)
        if (near !== undefined && Math.abs(near.at - time) <= NEAR_MS) prices.set(time, near.price)
      }
    }
    return { prices, fault }
  }

  return {
    now,
    async past(coins, times, signal) {
      const current = await now(coins, signal)
      const [prices, faults] = [new Map<string, ReadonlyMap<number, number>>(), new Map<string, string>()]
      for (const coin of new Set([...current.prices.keys(), ...current.faults.keys()])) {
        const found = await pastOf(coin, times, signal)
        prices.set(coin, found.prices)
        if (found.fault !== undefined) faults.set(coin, found.fault)
      }
      return { prices, faults }
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
