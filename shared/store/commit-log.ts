import { setTimeout as delay } from 'node:timers/promises'
import { type Redis, ReplyError } from 'ioredis'
import type { z } from 'zod'
import { toReason } from '../errors.ts'
import { toJson } from '../json.ts'
import type { Logger } from '../telemetry/log.ts'
import { KEPT_COMMITS, loggedChange, toLogKey } from './commits.ts'

/** Commits in one reading. */
const PAGE = 500
/** How long a reading waits for the next commit. */
const WAIT_MS = 3_000
/** The pause after a reading that failed. */
const PAUSE_MS = 500

/** Where the log begins, when nothing has ever been written to it. */
const BEGINNING = '0-0'

/** A commit by its version: the place in the log, on which every process agrees. */
export interface LoggedCommit extends z.infer<typeof loggedChange> {
  readonly version: string
}

/** What follows a log: every commit after the one before, or that some may have been missed. */
export interface CommitListener {
  committed(commits: readonly LoggedCommit[]): void
  /** The log goes on at this version, and what happened before that is not known. */
  lost(version: string): void
}

export interface CommitLog {
  /** The newest version that the listeners were told of; undefined until the log could be read. */
  readonly version: string | undefined
  /**
   * The commits after a version that the listeners were told of, oldest first, at most a page of them; undefined where some
   * of them are not there any more or make no sense, or where the version is none of this log; `away` while Redis does not answer.
   */
  after(version: string): Promise<readonly LoggedCommit[] | undefined | 'away'>
  /** Listeners are told in the order in which they came. */
  follow(listener: CommitListener): void
  close(): void
}

type Entry = [version: string, fields: string[]]

/** Says that an entry makes no sense, and why. */
type TellSenseless = (version: string, reason: string) => void

/** Undefined where one of them makes no sense: what it meant is not known, so anything may have changed. */
function toCommits(entries: readonly Entry[], tell: TellSenseless): LoggedCommit[] | undefined {
  const commits: LoggedCommit[] = []
  for (const [version, [, text = '']] of entries) {
    const { data, error } = loggedChange.safeParse(toJson(text))
    if (error !== undefined) {
      tell(version, error.message)
      return undefined
    }
    commits.push({ version, ...data })
  }
  return commits
}

/** Whether a version is a later one than another. */
export function isNewer(version: string, other: string): boolean {
  const [[ms = 0, count = 0], [otherMs = 0, otherCount = 0]] = [version, other].map((text) =>
    text.split('-').map(Number),
  ) as [number[], number[]]
  return ms > otherMs || (ms === otherMs && count > otherCount)
}

/** Two numbers of at most 64 bits; Redis refuses larger ones, and so would every attempt be. */
const VERSION = /^\d{1,19}-\d{1,19}$/

/** Whether a text could be a version of some log. */
const isVersion = (text: string): boolean => VERSION.test(text)

/** Reads the page after a version. The version itself is read too: while it is there, so is everything after it. */
async function readAfter(
  redis: Redis,
  key: string,
  version: string,
  tell: TellSenseless,
): Promise<LoggedCommit[] | undefined> {
  if (!isVersion(version)) return undefined
  if (version === BEGINNING) {
    const [entries, length] = await Promise.all([redis.xrange(key, '-', '+', 'COUNT', PAGE), redis.xlen(key)])
    return length < KEPT_COMMITS ? toCommits(entries, tell) : undefined
  }
  const [first, ...rest] = await redis.xrange(key, version, '+', 'COUNT', PAGE + 1)
  return first?.[0] === version ? toCommits(rest, tell) : undefined
}

async function readNewest(redis: Redis, key: string): Promise<string> {
  const [newest] = await redis.xrevrange(key, '+', '-', 'COUNT', 1)
  return newest?.[0] ?? BEGINNING
}

/**
 * Follows the log of commits from now on. `waiting` is a connection of its own, a `reader`, which waits for the next
 * commit; `asking` is for everything else. While Redis is away nothing is told. What was committed meanwhile is told
 * afterwards, or `lost` if Redis came back without it. An entry that makes no sense is logged, and `lost` as well.
 */
export function followCommitLog(
  connections: { waiting: Redis; asking: Redis },
  prefix: string,
  log: Logger,
): CommitLog {
  const { waiting, asking } = connections
  const key = toLogKey(prefix)
  const listeners: CommitListener[] = []
  const closing = new AbortController()
  let version: string | undefined
  let senseless: string | undefined
  let refusal: string | undefined
  // Every client that comes back reads it anew: one line is enough.
  const tellSenseless: TellSenseless = (at, reason) => {
    if (at !== senseless) log.warn({ version: at, reason }, 'a commit in the log that makes no sense')
    senseless = at
  }
  const tellFailure = (error: unknown) => {
    const reason = toReason(error)
    // Redis that is away, or still starting, comes back; what it refuses stays so until somebody mends it.
    const isStarting = reason.startsWith('LOADING')
    const isRefusal = error instanceof ReplyError && !isStarting
    const isNews = isRefusal && reason !== refusal
    if (isRefusal) refusal = reason
    log[isNews ? 'warn' : 'debug']({ reason }, 'the log of commits cannot be read')
  }
  const lose = (newest: string) => {
    version = newest
    for (const listener of listeners) listener.lost(newest)
  }
  const step = async () => {
    const commits = version === undefined ? undefined : await readAfter(waiting, key, version, tellSenseless)
    if (commits === undefined) return lose(await readNewest(waiting, key))
    const last = commits.at(-1)
    if (last === undefined) return waiting.xread('COUNT', 1, 'BLOCK', WAIT_MS, 'STREAMS', key, String(version))
    version = last.version
    for (const listener of listeners) listener.committed(commits)
  }
  const read = async () => {
    while (!closing.signal.aborted) {
      try {
        await step()
        refusal = undefined
      } catch (error) {
        if (closing.signal.aborted) return
        tellFailure(error)
        await delay(PAUSE_MS, undefined, { signal: closing.signal }).catch(() => undefined)
      }
    }
  }
  void read()
  return {
    get version() {
      return version
    },
    after: async (from) => {
      try {
        const commits = await readAfter(asking, key, from, tellSenseless)
        return commits?.filter((commit) => version === undefined || !isNewer(commit.version, version))
      } catch (error) {
        tellFailure(error)
        return 'away'
      }
    },
    follow: (listener) => void listeners.push(listener),
    close: () => {
      closing.abort()
      waiting.disconnect()
      asking.disconnect()
    },
  }
}
