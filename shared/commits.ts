import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import type { Logger } from './log.ts'

const versionsKey = (prefix: string) => `${prefix}:versions`
const channel = (prefix: string) => `${prefix}:commits`

const commitMessage = z.object({ dataset: z.string(), version: z.string() })

/** Tells every reader that a dataset's stored rows changed. Called after the insert, never before. */
export async function publishCommit(redis: Redis, prefix: string, dataset: string): Promise<void> {
  const version = randomUUID()
  await redis
    .multi()
    .hset(versionsKey(prefix), dataset, version)
    .publish(channel(prefix), JSON.stringify({ dataset, version }))
    .exec()
}

/** The current version of every dataset, as far as this process has heard. */
export interface CommitFeed {
  /** An opaque version that differs after every commit; `undefined` while Redis cannot be heard. */
  version(dataset: string): string | undefined
  close(): Promise<void>
}

/**
 * Follows commits over Redis. While the connection is away every version is unknown, so that nobody serves bytes whose
 * change it could not have heard of; after a reconnect the stored versions are read again.
 */
export async function createCommitFeed(
  subscriber: Redis,
  reader: Redis,
  prefix: string,
  log: Logger,
): Promise<CommitFeed> {
  const versions = new Map<string, string>()
  let heard = false
  const refresh = async () => {
    await subscriber.subscribe(channel(prefix))
    for (const [dataset, version] of Object.entries(await reader.hgetall(versionsKey(prefix)))) {
      versions.set(dataset, version)
    }
    heard = true
  }
  subscriber.on('message', (_channel, message) => {
    const parsed = commitMessage.safeParse(toJson(message))
    if (parsed.success) versions.set(parsed.data.dataset, parsed.data.version)
    else log.warn({ message }, 'a commit message that cannot be read')
  })
  subscriber.on('close', () => {
    heard = false
  })
  subscriber.on('ready', () => {
    refresh().catch((error: unknown) => log.warn({ reason: String(error) }, 'dataset versions cannot be read'))
  })
  await refresh()
  return {
    version: (dataset) => (heard ? (versions.get(dataset) ?? 'none') : undefined),
    close: async () => {
      await subscriber.quit()
    },
  }
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
