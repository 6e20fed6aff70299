import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { toReason } from '../errors.ts'
import { toJson } from '../json.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Database } from './clickhouse.ts'
import type { CommitLog } from './commit-log.ts'

const channel = (prefix: string) => `${prefix}:commits`

export const toLogKey = (prefix: string) => `${prefix}:commit-log`

/** Two weeks of what is collected on schedule; a back-fill has a commit for each of its chunks. */
export const KEPT_COMMITS = 20_000
/**
 * A change of a dataset's stored rows: the times it concerns, both included, in Unix milliseconds, and how many tokens or
 * DAOs; without them, any.
 */
const commit = z.object({
  dataset: z.string(),
  from: z.number().optional(),
  to: z.number().optional(),
  entities: z.number().optional(),
  /** What tells it from every other, by whichever way it is heard of. */
  id: z.string().optional(),
})

export type Commit = z.infer<typeof commit>

/** The job under which `job_state` holds each dataset's last commit, for readers that cannot hear Redis. */
const STATE_JOB = 'commits'

/**
 * Tells every reader that a dataset's stored rows changed: it is recorded beside them, by the database's clock, published,
 * and logged. Called after the insert, never before. Who follows the log asks for the new data at once: it comes last, when
 * the API already drops what it kept.
 */
export async function publishCommit(
  stores: { db: Database; redis: Redis; prefix: string },
  told: Commit,
): Promise<void> {
  const change = { ...told, id: randomUUID() }
  await stores.db.command({
    name: 'record-commit',
    sql: 'INSERT INTO job_state SELECT {job: String}, {dataset: String}, {value: String}, now64(3)',
    params: { job: STATE_JOB, dataset: change.dataset, value: change.id },
  })
  await stores.redis.publish(channel(stores.prefix), JSON.stringify(change))
  await logCommit(stores.redis, stores.prefix, change)
}

/** What the log says of a commit, as the API tells it: times are ISO 8601, `to` is no part of the range. */
export const loggedChange = z.object({
  dataset: z.string(),
  asOf: z.string().nullable(),
  entities: z.number().nullable(),
  from: z.string().nullable(),
  to: z.string().nullable(),
  /** What tells the commit from every other, by whichever way it is heard of. */
  id: z.string().optional(),
})

/** Appends a commit to the log. Versions grow in the order in which Redis takes them, whoever writes. */
export async function logCommit(redis: Redis, prefix: string, change: Commit): Promise<void> {
  const toTime = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  const told = {
    dataset: change.dataset,
    asOf: toTime(change.to),
    entities: change.entities ?? null,
    from: toTime(change.from),
    to: toTime(change.to === undefined ? undefined : change.to + 1),
    id: change.id,
  } satisfies z.infer<typeof loggedChange>
  await redis.xadd(toLogKey(prefix), 'MAXLEN', '~', KEPT_COMMITS, '*', 'change', JSON.stringify(told))
}

/** The current version of every dataset, as far as this process has heard. */
export interface CommitFeed {
  /** An opaque version that differs after every commit; `undefined` while nobody tells. */
  version(dataset: string): string | undefined
  /** Who tells of commits: Redis as they happen, the recorded ones a second later, or nobody. */
  readonly source: 'redis' | 'records' | 'nobody'
  /** When this process learnt of the version, in Unix milliseconds. */
  since(dataset: string): number
  /** Moves whenever any version does, so that one comparison tells that none has. */
  readonly changes: number
  /** Calls back with each change; with `undefined` when anything may have changed. */
  follow(listener: (change: Commit | undefined) => void): void
  /** Takes a commit that another way tells of. It counts once, whichever tells of it first. */
  hear(change: Pick<Commit, 'dataset' | 'id'>): void
  /** Anything may have changed, and no commit tells of it: every version is a new one. */
  renew(): void
  /** Stops listening, at once, whether Redis is there or not. */
  close(): void
}

/**
 * How often a silent connection is asked whether it still stands; the subscriber's socket timeout bounds the answer.
 */
const PING_MS = 2_000
/** How often the recorded commits are read while Redis cannot be heard. */
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

/** Of so many commits it is remembered that they were heard of: more than come while one way is behind the other. */
const MOST_REMEMBERED = 1_000

interface Version {
  readonly version: string
  /** When this process learnt of it, in Unix milliseconds. */
  readonly since: number
}

/** The versions that this process knows, and who tells of new ones. */
function createVersions(now: () => number) {
  const versions = new Map<string, Version>()
  const listeners: ((change: Commit | undefined) => void)[] = []
  /** Of datasets without a commit since the source began to tell. */
  let base: Version | undefined
  let source: CommitFeed['source'] = 'nobody'
  let changes = 0
  const known = new Set<string>()
  /** Whether a commit is heard of for the first time. */
  const isNews = (id: string | undefined): boolean => {
    if (id === undefined) return true
    if (known.has(id)) return false
    const [oldest] = known
    if (oldest !== undefined && known.size >= MOST_REMEMBERED) known.delete(oldest)
    known.add(id)
    return true
  }
  const tell = (change: Commit | undefined) => {
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
    follow: (listener: (change: Commit | undefined) => void) => void listeners.push(listener),
    /** Another source tells from now on. What happened before that is not known, so that every version is a new one. */
    begin: (from: CommitFeed['source']) => {
      source = from
      versions.clear()
      base = from === 'nobody' ? undefined : { version: `${from}.${changes}`, since: now() }
      tell(undefined)
    },
    heard: ({ id, ...change }: Commit) => {
      // What is kept is of no version then.
      if (source === 'nobody' || !isNews(id)) return
      versions.set(change.dataset, { version: `${source}.${changes}.${change.dataset}`, since: now() })
      tell(change)
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

/** Hears commits over Redis while the connection stands; `onLost` is called when it does not any more. */
function listen(subscriber: Redis, versions: Versions, { prefix, log }: FeedOptions, onLost: () => void) {
  let closed = false
  subscriber.on('ready', async () => {
    try {
      await subscriber.subscribe(channel(prefix))
      if (!closed) versions.begin('redis')
    } catch (error) {
      log.warn({ reason: toReason(error) }, 'commits cannot be followed')
      subscriber.disconnect(true)
    }
  })
  subscriber.on('close', () => {
    if (versions.source === 'redis') versions.begin('nobody')
    onLost()
  })
  subscriber.on('message', (_channel, text: string) => {
    const parsed = commit.safeParse(toJson(text))
    if (parsed.success) return versions.heard(parsed.data)
    // Somebody else writes on the channel: what it meant is not known, so anything may have changed.
    log.warn({ reason: parsed.error.message }, 'a commit that makes no sense')
    versions.begin('redis')
  })
  // Behind a proxy or a dropped route a connection can die without a word: only a missing answer tells.
  const pings = setInterval(() => {
    if (versions.source !== 'redis') return
    subscriber.ping().catch((error: unknown) => log.debug({ reason: toReason(error) }, 'no answer from redis'))
  }, PING_MS)
  return {
    close: () => {
      closed = true
      clearInterval(pings)
      subscriber.disconnect()
    },
  }
}

/** Reads the recorded commits, at once when asked and once a second, while Redis cannot be heard. */
function createPolling(versions: Versions, { db, log }: FeedOptions) {
  let last = new Map<string, string>()
  let [isPolling, closed] = [false, false]
  const isAway = () => !closed && versions.source !== 'redis'
  const poll = async () => {
    if (!isAway() || isPolling) return
    isPolling = true
    try {
      const found = await readRecorded(db)
      if (!isAway()) return
      if (versions.source === 'nobody') versions.begin('records')
      else for (const [dataset, value] of found) if (last.get(dataset) !== value) versions.heard({ dataset, id: value })
      last = found
    } catch (error) {
      log.debug({ reason: toReason(error) }, 'recorded commits cannot be read')
      if (isAway() && versions.source === 'records') versions.begin('nobody')
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
 * Follows commits over Redis, from when the connection stands; `subscriber` is the feed's own. While the connection is
 * away, the recorded commits are read once a second. Until the first such reading, or while it fails, every version is
 * unknown: answers are then hardly kept, because nobody can tell whether they are still true. With every subscription
 * all versions are new ones, so that what was published while the connection was away need not be found out.
 */
export function createCommitFeed(subscriber: Redis, options: FeedOptions): CommitFeed {
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
    hear: versions.heard,
    renew: () => versions.begin(versions.source),
    close: () => {
      polling.close()
      listening.close()
    },
  }
}

/**
 * Has a feed hear what the log tells as well, before every listener that comes later: a client that hears of a commit asks
 * at once, and must not get what was kept from before it.
 */
export function hearLog({ hear, renew }: CommitFeed, commitLog: Pick<CommitLog, 'follow'>): void {
  commitLog.follow({
    committed: (commits) => {
      for (const { dataset, id } of commits) hear({ dataset, id })
    },
    lost: renew,
  })
}
