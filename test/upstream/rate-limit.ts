import { DAY, MINUTE } from './world.ts'

/** How many requests a provider accepts in a calendar minute and on a day of UTC. Off for providers that are not named. */
export type Limits = Readonly<Record<string, { readonly perMinute?: number; readonly perDay?: number }>>

/** What plan `free` holds to: the days of plans, which tests at one time of one day can use up. */
export const FREE_PLANS: Limits = { moralis: { perDay: 800 } }

/**
 * What the providers' documents say of those who pay nothing: CoinGecko without a key, CoinMarketCap's Basic plan, whose
 * month is 15,000 credits, Ethplorer's free key, Moralis' 40,000 units of which a call is 50. Source: docs/providers.md.
 */
export const REAL_LIMITS: Limits = {
  coinmarketcap: { perMinute: 30, perDay: Math.floor(15_000 / 31) },
  coingecko: { perMinute: 5 },
  ethplorer: { perMinute: 20, perDay: 1_000 },
  ...FREE_PLANS,
  snapshot: { perMinute: 60 },
}

/** Counts requests by provider; says which of its limits a request is over, if any. */
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
