import { toNoiseKey, unit } from '../noise.ts'
import type { Asset, History, Quote } from '../world.ts'

/** A price as stored by the provider: `at` is its observation time, in Unix milliseconds. */
export interface StoredPrice {
  readonly at: number
  readonly price: number
}

/** The provider stores prices with a lag, and misses some. */
const LEAST_LAG_MS = 40_000
const MOST_LAG_MS = 200_000
const MISSED = 0.15
/** Exceeds the longest lag and the longest run of misses. */
const MAX_CANDIDATES = 6

/**
 * The stored price closest to `at` within `widthMs`; null if there is none. Times are irregular, as with the provider:
 * a coin is stored when its source was read.
 */
export function nearestStored(asset: Asset, history: History, at: number, widthMs: number): StoredPrice | null {
  const key = toNoiseKey(0, asset.id)
  const found: StoredPrice[] = []
  const add = (quote: Quote | null) => {
    if (quote === null || unit(key, quote.at / 60_000) < MISSED) return
    const lag = Math.round(LEAST_LAG_MS + unit(key, -quote.at / 60_000) * (MOST_LAG_MS - LEAST_LAG_MS))
    found.push({ at: quote.at + lag, price: quote.price })
  }
  let before = history.lastAt(at)
  let after = history.firstIn(at + 1, at + widthMs + 1)
  for (let candidate = 0; candidate < MAX_CANDIDATES; candidate += 1) {
    add(before)
    add(after)
    before = before && history.lastAt(before.at - 1)
    after = after && history.firstIn(after.at + 1, at + widthMs + 1)
  }
  return found.reduce<StoredPrice | null>((best, one) => {
    const distance = Math.abs(one.at - at)
    if (distance > widthMs || (best !== null && distance >= Math.abs(best.at - at))) return best
    return one
  }, null)
}

/**
 * The provider's confidence in a price: low for coins that are on no price list, because small pools are the only
 * source.
 */
export function toConfidence({ coingeckoId }: Asset): number {
  return coingeckoId === null ? 0.42 : 0.99
}
