import { createDayLimit } from './day-limit.ts'
import { createHistoryLimit } from './history-limit.ts'
import { createHourLimit } from './hour-limit.ts'
import { createRateLimit, type RateLimit } from './rate-limit.ts'
import type { HttpSettings } from './request.ts'

/** How limits are kept, and how much of them is for what. */
export interface LimitOptions {
  /** Makes a provider's limit; by default one that only this process keeps. */
  readonly createLimit?: (provider: string, perMinute: number, burst: number | undefined) => RateLimit
  /** The same for the hour; by default again one that only this process keeps. */
  readonly createHourLimit?: (provider: string, perHour: number) => RateLimit
  /** The same for the day. */
  readonly createDayLimit?: (provider: string, perDay: number, setting: string | undefined) => RateLimit
  /** How much of each limit repairing history may use, over 0 and at most 1; all of it by default. */
  readonly historyShare?: number
}

/** The limits of both lanes: of all a provider's requests, and of those that repair history. */
export function toLimits(settings: HttpSettings, options: LimitOptions): { whole: RateLimit; history: RateLimit } {
  const { provider, requestsPerMinute, requestsPerHour, requestsPerDay, burst } = settings
  const { historyShare = 1 } = options
  const whole = toLimit(settings, options)
  const perMinute = requestsPerMinute * historyShare
  const share = {
    provider: `${provider} (history)`,
    // Under one a minute it is one in several minutes.
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
 * The limits of a provider, one after the other. Those of the hour and the day come last, so that they count nothing that
 * was aborted while it waited for its turn in the rate limit; what they refuse has only taken such a turn.
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
