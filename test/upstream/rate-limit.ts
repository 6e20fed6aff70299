import { DAY, MINUTE } from './world.ts'

/** Request limits of providers per calendar minute and per UTC day. Providers without an entry have no limit. */
export type Limits = Readonly<Record<string, { readonly perMinute?: number; readonly perDay?: number }>>

/** Limits of the plan `free`: daily ones only, which tests can use up at one time of one day. */
export const FREE_PLANS: Limits = { moralis: { perDay: 800 } }

/**
 * Documented limits of free use: CoinGecko without a key, CoinMarketCap's Basic plan with 15,000 credits a month,
 * Ethplorer's free key, Moralis' 40,000 units at 50 per call. Source: docs/providers.md.
 */
export const REAL_LIMITS: Limits = {
  coinmarketcap: { perMinute: 30, perDay: Math.floor(15_000 / 31) },
  coingecko: { perMinute: 5 },
  ethplorer: { perMinute: 20, perDay: 1_000 },
  ...FREE_PLANS,
  snapshot: { perMinute: 60 },
}

/** Counts requests by provider; returns the limit that a request exceeds, if any. */
export function createRateLimit(limits: Limits): (provider: string, now: number) => 'minute' | 'day' | null {
  const used = new Map<string, number>()
  const isOver = (period: string, at: number, limit: number | undefined) => {
    if (limit === undefined) return false
    const key = `${period} ${at}`
    const count = (used.get(key) ?? 0) + 1
    used.set(key, count)
    return count > limit
  }
  return (provider, now) => {
    const { perMinute, perDay } = limits[provider] ?? {}
    if (isOver(`${provider} minute`, Math.floor(now / MINUTE), perMinute)) return 'minute'
    return isOver(`${provider} day`, Math.floor(now / DAY), perDay) ? 'day' : null
  }
}
