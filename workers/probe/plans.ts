import type { Redis } from 'ioredis'
import { createHttpClients, type HttpSettings, readTakenOfDay } from '../http/client.ts'
import type { ProviderContext } from '../job/define-job.ts'
import { jobs } from '../jobs/list.ts'

/** A plan that the workers spread over its days: the requests per day and those left today, in billed requests. */
export interface DayPlan {
  readonly provider: string
  readonly perDay: number
  readonly remaining: number
}

/** Returns the daily request limit of each provider that has one, by provider name. */
export function findDayLimits(context: Omit<ProviderContext, 'http'>): ReadonlyMap<string, number> {
  const limits = new Map<string, number>()
  const { open } = createHttpClients({ log: context.log })
  const http = {
    open(settings: HttpSettings) {
      if (settings.requestsPerDay !== undefined) limits.set(settings.provider, settings.requestsPerDay)
      return open(settings)
    },
  }
  for (const job of jobs) job.connect({ ...context, http })
  return limits
}

/** Reads the plans of the providers, as counted by all workers in Redis. `now` is in Unix milliseconds. */
export async function readDayPlans(
  context: Omit<ProviderContext, 'http'>,
  redis: Redis,
  now: number,
): Promise<DayPlan[]> {
  const plans: DayPlan[] = []
  for (const [provider, perDay] of findDayLimits(context)) {
    const taken = await readTakenOfDay(redis, context.config.redis.prefix, { provider, now })
    plans.push({ provider, perDay, remaining: Math.max(0, perDay - taken) })
  }
  return plans
}
