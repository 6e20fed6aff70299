import { createDayLimit } from './day-limit.ts'
import { createHistoryLimit } from './history-limit.ts'
import { createHourLimit } from './hour-limit.ts'
import { createRateLimit, type RateLimit } from './rate-limit.ts'
import type { HttpSettings } from './request.ts'

/** Factories of the limits, and the share of history. */
export interface LimitOptions {
  /** Creates a provider's limit; default: a limit of this process only. */
  readonly createLimit?: (provider: string, perMinute: number, burst: number | undefined) => RateLimit
  /** Creates the hourly limit; default: a limit of this process only. */
  readonly createHourLimit?: (provider: string, perHour: number) => RateLimit
  /** Creates the daily limit; default: a limit of this process only. */
  readonly createDayLimit?: (provider: string, perDay: number, setting: string | undefined) => RateLimit
  /** Share of each limit that history may use, greater than 0 and at most 1; default 1. */
  readonly historyShare?: number
}

/** The whole limit of a provider, and the limit of its history requests. */
export function toLimits(settings: HttpSettings, options: LimitOptions): { whole: RateLimit; history: RateLimit } {
  const { provider, requestsPerMinute, requestsPerHour, requestsPerDay, burst } = settings
  const { historyShare = 1 } = options
  const whole = toLimit(settings, options)
  const perMinute = requestsPerMinute * historyShare
  const share = {
    provider: `${provider} (history)`,
    // Less than one request per minute becomes one request in several minutes.
    requestsPerMinute: perMinute < 1 ? perMinute : Math.floor(perMinute),
    burst,
    requestsPerHour: toShare(requestsPerHour, historyShare),
    daySetting: settings.daySetting,
    requestsPerDay: toLower(toShare(requestsPerDay, historyShare), settings.historyRequestsPerDay),
  }
  return { whole, history: createHistoryLimit(toLimit(share, options), whole) }
}

const toShare = (count: number | undefined, share: number) =>
  count === undefined ? undefined : Math.max(1, Math.floor(count * share))

const toLower = (count: number | undefined, most = Number.POSITIVE_INFINITY) =>
  count === undefined ? undefined : Math.min(count, most)

interface Limited {
  readonly provider: string
  readonly requestsPerMinute: number
  readonly burst?: number | undefined
  readonly requestsPerHour?: number | undefined
  readonly requestsPerDay?: number | undefined
  readonly daySetting?: string | undefined
}

/**
 * Combines the limits of a provider in sequence. The hourly and daily limits come last, so that they do not count a
 * request that was aborted while it waited for the rate limit. A request that they refuse has used only a turn of the
 * rate limit.
 */
function toLimit(limited: Limited, options: LimitOptions): RateLimit {
  const { provider, requestsPerMinute, burst, requestsPerHour, requestsPerDay, daySetting } = limited
  const limits = [
    options.createLimit?.(provider, requestsPerMinute, burst) ?? createRateLimit(requestsPerMinute, burst),
  ]
  if (requestsPerHour !== undefined)
    limits.push(options.createHourLimit?.(provider, requestsPerHour) ?? createHourLimit(provider, requestsPerHour))
  if (requestsPerDay !== undefined)
    limits.push(
      options.createDayLimit?.(provider, requestsPerDay, daySetting) ??
        createDayLimit(provider, requestsPerDay, daySetting),
    )
  return {
    take: async (signal, cost, units) => {
      for (const limit of limits) await limit.take(signal, cost, units)
    },
  }
}
