/** How many requests a provider accepts in a calendar minute. Off for providers that are not named. */
export type Limits = Readonly<Record<string, { readonly perMinute: number }>>

/** Counts requests by provider and minute; true once a request is over its provider's limit. */
export function createRateLimit(limits: Limits): (provider: string, now: number) => boolean {
  const used = new Map<string, { minute: number; count: number }>()
  return (provider, now) => {
    const limit = limits[provider]
    if (!limit) return false
    const minute = Math.floor(now / 60_000)
    const known = used.get(provider)
    const count = known?.minute === minute ? known.count + 1 : 1
    used.set(provider, { minute, count })
    return count > limit.perMinute
  }
}
