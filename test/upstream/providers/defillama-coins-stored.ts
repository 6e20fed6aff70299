import { toNoiseKey, unit } from '../noise.ts'
import type { Asset, History, Quote } from '../world.ts'

/** A price as the provider stores it: `at` is its own time, in Unix milliseconds. */
export interface StoredPrice {
  readonly at: number
  readonly price: number
}

/** It stores a price some time after it was true, and not every one. */
const LEAST_LAG_MS = 40_000
const MOST_LAG_MS = 200_000
const MISSED = 0.15
/** No lag is longer, and it does not miss more in a row. */
const LOOKED_AT = 6

/**
 * The stored price nearest to `at`, no further from it than `widthMs`; null if there is none. Times are irregular, as
 * they are with the provider: a coin is written when its own source was read.
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
  for (let looked = 0; looked < LOOKED_AT; looked += 1) {
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

/** How sure the provider is of a price: of a coin that no price list has, it only knows what small pools say. */
export function toConfidence({ coingeckoId }: Asset): number {
  return coingeckoId === null ? 0.42 : 0.99
}
