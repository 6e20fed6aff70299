import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { toReason } from '../errors.ts'
import { toJson } from '../json.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Database } from './clickhouse.ts'

const channel = (prefix: string) => `${prefix}:commits`

export const toStreamKey = (prefix: string) => `${prefix}:commit-log`

/** Two weeks of scheduled collection. A back-fill writes one change event per chunk. */
export const MAX_STREAMED_CHANGES = 20_000
/**
 * A change event of a dataset's stored rows: the range of its times (inclusive, Unix milliseconds), and the number of
 * tokens or DAOs. Absent members mean any.
 */
const changeEvent = z.object({
  dataset: z.string(),
  from: z.number().optional(),
  to: z.number().optional(),
  entities: z.number().optional(),
  /** Identifies the change event on every transport. */
  id: z.string().optional(),
})

export type ChangeEvent = z.infer<typeof changeEvent>

/** The job of each dataset's newest change event in `job_state`, for processes without a connection to Redis. */
const STATE_JOB = 'commits'

/**
 * Announces a change of a dataset's stored rows. Call it after the insert. Writes the event to ClickHouse, publishes
 * it, and appends it to the stream last: clients of the stream request new data immediately, so the API must have
 * evicted its caches before.
 */
export async function publishChange(
  stores: { db: Database; redis: Redis; prefix: string },
  content: ChangeEvent,
): Promise<void> {
  const change = { ...content, id: randomUUID() }
  await stores.db.command({
    name: 'record-change',
    sql: 'INSERT INTO job_state SELECT {job: String}, {dataset: String}, {value: String}, now64(3)',
    params: { job: STATE_JOB, dataset: change.dataset, value: change.id },
  })
  await stores.redis.publish(channel(stores.prefix), JSON.stringify(change))
  await appendToStream(stores.redis, stores.prefix, change)
}

/** A change event as stored and as served by the API. Times are ISO 8601; `to` is exclusive. */
export const streamedChange = z.object({
  dataset: z.string(),
  asOf: z.string().nullable(),
  entities: z.number().nullable(),
  from: z.string().nullable(),
  to: z.string().nullable(),
  /** Identifies the change event on every transport. */
  id: z.string().optional(),
})

/** Appends a change event. Redis assigns increasing versions for all writers. */
export async function appendToStream(redis: Redis, prefix: string, change: ChangeEvent): Promise<void> {
  const toTime = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  const logged = {
    dataset: change.dataset,
    asOf: toTime(change.to),
    entities: change.entities ?? null,
    from: toTime(change.from),
    to: toTime(change.to === undefined ? undefined : change.to + 1),
    id: change.id,
  } satisfies z.infer<typeof streamedChange>
  await redis.xadd(toStreamKey(prefix), 'MAXLEN', '~', MAX_STREAMED_CHANGES, '*', 'change', JSON.stringify(logged))
}

/** The newest version of every dataset that this process knows. */
export interface ChangeFeed {
  /** An opaque version, different after every change event; undefined without a source. */
  version(dataset: string): string | undefined
  /** The current source: Redis (immediate), records in ClickHouse (a second later), or none. */
  readonly source: 'redis' | 'records' | 'nobody'
  /** The time when this process received the version, in Unix milliseconds. */
  since(dataset: string): number
  /** Increases with every version change, so that one comparison detects any change. */
  readonly changes: number
  /** Registers a callback for changes. `undefined` means that any data may have changed. */
  follow(listener: (change: ChangeEvent | undefined) => void): void
  /** Accepts a change event from another transport. An event counts once, regardless of the transport. */
  receive(change: Pick<ChangeEvent, 'dataset' | 'id'>): void
  /** Renews every version, because data may have changed without an event. */
  renew(): void
  /** Stops immediately, even without Redis. */
  close(): void
}

/** Interval of pings on an idle connection. The subscriber's socket timeout limits the wait for a reply. */
const PING_MS = 2_000
/** Poll interval for recorded events while Redis is unreachable. */
const POLL_MS = 1_000

const recorded = z.object({ dataset: z.string(), value: z.string() })

async function readRecorded(db: Database): Promise<Map<string, string>> {
  const rows = await db.rows({
    name: 'commits',
    sql: 'SELECT name AS dataset, value FROM job_state FINAL WHERE job = {job: String}',
    params: { job: STATE_JOB },
    settings: { max_threads: 1 },
    schema: recorded,
    signal: AbortSignal.timeout(5 * POLL_MS),
  })
  return new Map(rows.map(({ dataset, value }) => [dataset, value]))
}

/**
 * Limit on remembered event ids. The limit exceeds the number of events that arrive while one transport lags behind the
 * other.
 */
const MOST_REMEMBERED = 1_000

interface Version {
  readonly version: string
  /** The time when this process received it, in Unix milliseconds. */
  readonly since: number
}

/** The known versions and their current source. */
function createVersions(now: () => number) {
  const versions = new Map<string, Version>()
  const listeners: ((change: ChangeEvent | undefined) => void)[] = []
  /** The version of datasets without an event since the source started. */
  let base: Version | undefined
  let source: ChangeFeed['source'] = 'nobody'
  let changes = 0
  const seenIds = new Set<string>()
  /** Whether an event is received for the first time. */
  const isNews = (id: string | undefined): boolean => {
    if (id === undefined) return true
    if (seenIds.has(id)) return false
    const [oldest] = seenIds
    if (oldest !== undefined && seenIds.size >= MOST_REMEMBERED) seenIds.delete(oldest)
    seenIds.add(id)
    return true
  }
  const notify = (change: ChangeEvent | undefined) => {
    changes++
    for (const listener of listeners) listener(change)
  }
  return {
    get source() {
      return source
    },
    get changes() {
      return changes
    },
    of: (dataset: string) => versions.get(dataset) ?? base,
    follow: (listener: (change: ChangeEvent | undefined) => void) => void listeners.push(listener),
    /** Switches the source. Earlier events are unknown, so every version changes. */
    begin: (from: ChangeFeed['source']) => {
      source = from
      versions.clear()
      base = from === 'nobody' ? undefined : { version: `${from}.${changes}`, since: now() }
      notify(undefined)
    },
    heard: ({ id, ...change }: ChangeEvent) => {
      // Without a source, cached data has no version.
      if (source === 'nobody' || !isNews(id)) return
      versions.set(change.dataset, { version: `${source}.${changes}.${change.dataset}`, since: now() })
      notify(change)
    },
  }
}

type Versions = ReturnType<typeof createVersions>

interface FeedOptions {
  readonly prefix: string
  readonly db: Database
  readonly log: Logger
  readonly now?: () => number
}

/** Subscribes to change events while the Redis connection is up; calls `onLost` when it closes. */
function listen(subscriber: Redis, versions: Versions, { prefix, log }: FeedOptions, onLost: () => void) {
  let closed = false
  subscriber.on('ready', async () => {
    try {
      await subscriber.subscribe(channel(prefix))
      if (!closed) versions.begin('redis')
    } catch (error) {
      log.warn({ reason: toReason(error) }, 'cannot subscribe to change events')
      subscriber.disconnect(true)
    }
  })
  subscriber.on('close', () => {
    if (versions.source === 'redis') versions.begin('nobody')
    onLost()
  })
  subscriber.on('message', (_channel, text: string) => {
    const parsed = changeEvent.safeParse(toJson(text))
    if (parsed.success) return versions.heard(parsed.data)
    // The message is malformed, possibly from another program, so any data may have changed.
    log.warn({ reason: parsed.error.message }, 'malformed change event')
    versions.begin('redis')
  })
  // A connection behind a proxy or a dropped route can fail silently; only a missing reply reveals it.
  const pings = setInterval(() => {
    if (versions.source !== 'redis') return
    subscriber.ping().catch((error: unknown) => log.debug({ reason: toReason(error) }, 'no response from redis'))
  }, PING_MS)
  return {
    close: () => {
      closed = true
      clearInterval(pings)
      subscriber.disconnect()
    },
  }
}

/** Polls the recorded events while Redis is unreachable: immediately after a disconnect, then every second. */
function createPolling(versions: Versions, { db, log }: FeedOptions) {
  let last = new Map<string, string>()
  let [isPolling, closed] = [false, false]
  const isRedisUnavailable = () => !closed && versions.source !== 'redis'
  const poll = async () => {
    if (!isRedisUnavailable() || isPolling) return
    isPolling = true
    try {
      const found = await readRecorded(db)
      if (!isRedisUnavailable()) return
      if (versions.source === 'nobody') versions.begin('records')
      else for (const [dataset, value] of found) if (last.get(dataset) !== value) versions.heard({ dataset, id: value })
      last = found
    } catch (error) {
      log.debug({ reason: toReason(error) }, 'recorded change events cannot be read')
      if (isRedisUnavailable() && versions.source === 'records') versions.begin('nobody')
    } finally {
      isPolling = false
    }
  }
  const polls = setInterval(poll, POLL_MS)
  return {
    poll: () => void poll(),
    close: () => {
      closed = true
      clearInterval(polls)
    },
  }
}

/**
 * Follows change events over Redis; `subscriber` is a connection for this feed only. While Redis is unreachable, polls
 * the recorded events every second. Until the first poll, or while polls fail, versions are undefined and responses are
 * cached only briefly. Every subscription renews all versions, because events may have been missed before.
 */
export function createChangeFeed(subscriber: Redis, options: FeedOptions): ChangeFeed {
  const versions = createVersions(options.now ?? Date.now)
  const polling = createPolling(versions, options)
  const listening = listen(subscriber, versions, options, polling.poll)
  return {
    version: (dataset) => versions.of(dataset)?.version,
    since: (dataset) => versions.of(dataset)?.since ?? 0,
    get source() {
      return versions.source
    },
    get changes() {
      return versions.changes
    },
    follow: versions.follow,
    receive: versions.heard,
    renew: () => versions.begin(versions.source),
    close: () => {
      polling.close()
      listening.close()
    },
  }
}
