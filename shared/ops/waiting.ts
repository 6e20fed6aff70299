import { setTimeout as wait } from 'node:timers/promises'
import { ReplyError } from 'ioredis'
import type { Config } from '../config/config.ts'
import { DataError, toReason } from '../errors.ts'
import { createRedis, requireRedis } from '../queue/redis.ts'
import { type Database, isPassing, toClickHouseCode } from '../store/clickhouse.ts'
import { probe } from '../store/probe.ts'
import { createLog, type Logger } from '../telemetry/log.ts'

const TRY_AGAIN_MS = 1_000
/** Often enough for whoever looks at a log, seldom enough for a store that is away all night. */
const SAY_AGAIN_MS = 30_000
const ANSWER_WITHIN_MS = 3_000

interface Options {
  readonly log: Logger
  /** Ends the waiting, without an error. */
  readonly signal?: AbortSignal
}

/**
 * Waits until ClickHouse answers; that it refuses for good, such as a password, is an answer too. Says at once that it waits, and
 * then every half minute.
 */
export function untilClickHouseAnswers(db: Database, url: string, options: Options): Promise<void> {
  const check = async () => {
    try {
      await probe(db, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
    } catch (error) {
      if (isPassing(error) || toClickHouseCode(error) === undefined) throw error
    }
  }
  return untilPassed(`ClickHouse at ${new URL(url).host}`, check, options)
}

/**
 * Does a step of a part's start over ClickHouse. Where ClickHouse leaves, or has no room, in the middle of it the step is
 * done once more when it is back, as if it had been away from the beginning.
 * @throws whatever the step throws else: a refusal is an answer.
 */
export async function whenClickHouseAnswers<T>(
  db: Database,
  url: string,
  step: () => Promise<T>,
  { log }: Pick<Options, 'log'>,
): Promise<T> {
  for (;;) {
    await untilClickHouseAnswers(db, url, { log })
    try {
      return await step()
    } catch (error) {
      if (!isPassing(error)) throw error
      log.warn({ reason: toReason(error) }, 'ClickHouse left in the middle of the start')
      await wait(TRY_AGAIN_MS)
    }
  }
}

/**
 * Waits until Redis answers.
 * @throws DataError `storage` when it refuses, such as a password.
 */
export function untilRedisAnswers({ url }: Config['redis'], options: Options): Promise<void> {
  const silent = createLog('redis', 'silent')
  const check = async () => {
    // One of its own, which tells nothing of its tries.
    const redis = createRedis(url, silent)
    await requireRedis(redis)
    redis.disconnect()
  }
  return untilPassed('Redis', check, options)
}

async function untilPassed(store: string, check: () => Promise<void>, { log, signal }: Options): Promise<void> {
  let saidAt = Number.NEGATIVE_INFINITY
  while (!signal?.aborted) {
    try {
      await check()
      if (saidAt > 0) log.info({ store }, `${store} answers`)
      return
    } catch (error) {
      if (isRefusal(error)) throw error
      if (performance.now() - saidAt >= SAY_AGAIN_MS) {
        saidAt = performance.now()
        log.warn({ store, reason: toReason(error) }, `waiting for ${store}`)
      }
      await wait(TRY_AGAIN_MS, undefined, { signal }).catch(() => {})
    }
  }
}

const isRefusal = (error: unknown): boolean => error instanceof DataError && error.cause instanceof ReplyError
