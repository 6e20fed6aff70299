import { setTimeout as wait } from 'node:timers/promises'
import { ReplyError } from 'ioredis'
import type { Config } from '../config/config.ts'
import { DataError, toReason } from '../errors.ts'
import { createRedis, requireRedis } from '../queue/redis.ts'
import { type Database, isTransient, probe, toClickHouseCode } from '../store/store.ts'
import { createLog, type Logger } from '../telemetry/log.ts'

const RETRY_MS = 1_000
/** Frequent enough for a reader of the log, rare enough for an outage of a whole night. */
const LOG_INTERVAL_MS = 30_000
const ANSWER_WITHIN_MS = 3_000

interface Options {
  readonly log: Logger
  /** Ends the wait without an error. */
  readonly signal?: AbortSignal
}

/**
 * Waits until ClickHouse responds. A permanent refusal, such as a wrong password, counts as a response. Logs a warning
 * immediately and then every 30 seconds.
 */
export function untilClickHouseAnswers(db: Database, url: string, options: Options): Promise<void> {
  const check = async () => {
    try {
      await probe(db, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
    } catch (error) {
      if (isTransient(error) || toClickHouseCode(error) === undefined) throw error
    }
  }
  return untilPassed(`ClickHouse at ${new URL(url).host}`, check, options)
}

/**
 * Runs a startup step that needs ClickHouse. If ClickHouse fails temporarily or is out of space during the step, waits
 * until it responds and repeats the step.
 * @throws any permanent error of the step.
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
      if (!isTransient(error)) throw error
      log.warn({ reason: toReason(error) }, 'lost the connection to ClickHouse during the start')
      await wait(RETRY_MS)
    }
  }
}

/**
 * Waits until Redis responds.
 * @throws DataError `storage` if it refuses, for example because of a wrong password.
 */
export function untilRedisAnswers({ url }: Config['redis'], options: Options): Promise<void> {
  const silent = createLog('redis', 'silent')
  const check = async () => {
    // A separate connection with a silent log, so that its attempts are not logged.
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
      if (performance.now() - saidAt >= LOG_INTERVAL_MS) {
        saidAt = performance.now()
        log.warn({ store, reason: toReason(error) }, `waiting for ${store}`)
      }
      await wait(RETRY_MS, undefined, { signal }).catch(() => {})
    }
  }
}

const isRefusal = (error: unknown): boolean => error instanceof DataError && error.cause instanceof ReplyError
