import type { Redis } from 'ioredis'
import { toReason } from './errors.ts'
import type { Logger } from './log.ts'

const channel = (prefix: string) => `${prefix}:commits`

/** Tells every reader that a dataset's stored rows changed. Called after the insert, never before. */
export async function publishCommit(redis: Redis, prefix: string, dataset: string): Promise<void> {
  await redis.publish(channel(prefix), dataset)
}

/** The current version of every dataset, as far as this process has heard. */
export interface CommitFeed {
  /** An opaque version that differs after every commit; `undefined` while Redis cannot be heard. */
  version(dataset: string): string | undefined
  /** Stops listening, at once, whether Redis is there or not. */
  close(): void
}

/** How often a silent connection is asked whether it still stands; the subscriber's socket timeout bounds the answer. */
const PING_MS = 2_000

/**
 * Follows commits over Redis, from when the connection stands; `subscriber` is the feed's own. While the connection is
 * away every version is unknown, so that nobody serves bytes whose change it could not have heard of. Every subscription
 * begins new versions of everything: what was published in between needs no looking up.
 */
export function createCommitFeed(subscriber: Redis, prefix: string, log: Logger): CommitFeed {
  const versions = new Map<string, string>()
  let subscriptions = 0
  let commits = 0
  let heardSince: string | undefined
  const listen = async () => {
    try {
      await subscriber.subscribe(channel(prefix))
      versions.clear()
      subscriptions++
      heardSince = String(subscriptions)
    } catch (error) {
      log.warn({ reason: toReason(error) }, 'commits cannot be followed')
      subscriber.disconnect(true)
    }
  }
  subscriber.on('ready', listen)
  subscriber.on('close', () => {
    heardSince = undefined
  })
  subscriber.on('message', (_channel, dataset: string) => {
    commits++
    versions.set(dataset, `${subscriptions}.${commits}`)
  })
  // Behind a proxy or a dropped route a connection can die without a word: only a missing answer tells.
  const pings = setInterval(() => {
    if (heardSince === undefined) return
    subscriber.ping().catch((error: unknown) => log.debug({ reason: toReason(error) }, 'no answer from redis'))
  }, PING_MS)
  return {
    version: (dataset) => (heardSince === undefined ? undefined : (versions.get(dataset) ?? heardSince)),
    close: () => {
      clearInterval(pings)
      subscriber.disconnect()
    },
  }
}
