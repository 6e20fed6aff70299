import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import { readTakenOfDay } from '../http/client.ts'
import { toBudget as toCoinGeckoBudget } from '../providers/coingecko/client.ts'
import { toBudget as toCoinMarketCapBudget } from '../providers/coinmarketcap/client.ts'
import { toCallsPerDay } from '../providers/moralis/budget.ts'

/** A plan that the workers spread over its days: the requests per day and those left today, in billed requests. */
export interface DayPlan {
  readonly provider: string
  readonly perDay: number
  readonly remaining: number
}

/**
 * Reads the plans of the providers that have a key, as counted by all workers in Redis. `now` is in Unix milliseconds.
 */
export async function readDayPlans(config: Config, redis: Redis, now: number): Promise<DayPlan[]> {
  const perDay = {
    coinmarketcap: toCoinMarketCapBudget(config)?.perDay,
    coingecko: toCoinGeckoBudget(config)?.perDay,
    moralis: config.providers.moralis.apiKey === undefined ? undefined : toCallsPerDay(config),
  }
  const plans: DayPlan[] = []
  for (const [provider, count] of Object.entries(perDay)) {
    if (count === undefined) continue
    const taken = await readTakenOfDay(redis, config.redis.prefix, { provider, now })
    plans.push({ provider, perDay: count, remaining: Math.max(0, count - taken) })
  }
  return plans
}
