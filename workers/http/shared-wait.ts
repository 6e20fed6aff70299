import type { Redis } from 'ioredis'
import { toReason } from '../../shared/errors.ts'
import type { Logger } from '../../shared/telemetry/log.ts'

/** Context of a limit shared between processes. */
export interface SharedBy {
  /** For commands; its key prefix is `prefix`. */
  readonly redis: Redis
  readonly prefix: string
  readonly log: Logger
}

/** A Lua script that takes requests from a limit and returns the wait in milliseconds. */
interface Taking {
  readonly script: string
  readonly key: string
  /** Constant arguments; the arguments of a call follow. */
  readonly args: readonly number[]
}

const ANSWER_WITHIN_MS = 2_000

/** Returns the Redis key of a provider's limit. */
export const toSharedKey = (prefix: string, key: string, provider: string): string => `${prefix}:${key}:{${provider}}`

/**
 * Runs a limit's script in the shared Redis. Returns undefined while Redis is unavailable. Each process then enforces
 * the limit separately, which is logged once.
 */
export function createSharedWait(
  provider: string,
  { script, key, args }: Taking,
  { redis, prefix, log }: SharedBy,
): (...more: readonly number[]) => Promise<number | undefined> {
  let isAlone = false
  return async (...more) => {
    // On a broken connection the command would wait until it is restored.
    if (isAlone && redis.status !== 'ready') return undefined
    try {
      const answer = redis.eval(script, 1, toSharedKey(prefix, key, provider), ...args, ...more)
      const waitMs = Number(await withDeadline(answer))
      if (isAlone) log.info({ provider }, 'the rate limit is shared again')
      isAlone = false
      return waitMs
    } catch (error) {
      const reason = toReason(error)
      if (!isAlone) log.warn({ provider, reason }, 'Redis is away: each process keeps the rate limit for itself')
      isAlone = true
      return undefined
    }
  }
}

async function withDeadline<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_WITHIN_MS} ms`)), ANSWER_WITHIN_MS)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
