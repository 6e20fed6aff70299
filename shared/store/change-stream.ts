import { setTimeout as delay } from 'node:timers/promises'
import { type Redis, ReplyError } from 'ioredis'
import type { z } from 'zod'
import { toReason } from '../errors.ts'
import { toJson } from '../json.ts'
import type { Logger } from '../telemetry/log.ts'
import { type ChangeFeed, MAX_STREAMED_CHANGES, streamedChange, toStreamKey } from './change-feed.ts'

/** Limit on the change events of one read. */
const PAGE = 500
/** Blocking time of a read. */
const WAIT_MS = 3_000
/** Delay after a failed read. */
const PAUSE_MS = 500

/** Version of an empty stream. */
const BEGINNING = '0-0'

/** A change event with its version: its id in the stream, which is the same for every process. */
export interface StreamedChange extends z.infer<typeof streamedChange> {
  readonly version: string
}

/** A listener on the stream. Receives every change event, or a call of `missed` if events may be missing. */
export interface ChangeListener {
  changed(changeEvents: readonly StreamedChange[]): void
  /** The stream continues at this version; earlier events may be missing. */
  missed(version: string): void
}

export interface ChangeStream {
  /** The newest version that the listeners received; undefined before the first read. */
  readonly version: string | undefined
  /**
   * Returns the events after a version that listeners have received, oldest first, at most a page. Returns undefined if
   * some are deleted or malformed or if the version is unknown, and `away` while Redis is unreachable.
   */
  after(version: string): Promise<readonly StreamedChange[] | undefined | 'away'>
  /** Listeners are called in the order of registration. */
  follow(listener: ChangeListener): void
  close(): void
}

type Entry = [version: string, fields: string[]]

/** Reports a malformed entry with the reason. */
type ReportMalformed = (version: string, reason: string) => void

/** Undefined if an entry is malformed: its dataset is unknown, so any data may have changed. */
function parseEntries(entries: readonly Entry[], reportEntry: ReportMalformed): StreamedChange[] | undefined {
  const changeEvents: StreamedChange[] = []
  for (const [version, [, text = '']] of entries) {
    const { data, error } = streamedChange.safeParse(toJson(text))
    if (error !== undefined) {
      reportEntry(version, error.message)
      return undefined
    }
    changeEvents.push({ version, ...data })
  }
  return changeEvents
}

/** Whether a version is newer than another. */
export function isNewer(a: string, b: string): boolean {
  const [[msA = 0, countA = 0], [msB = 0, countB = 0]] = [a, b].map((text) => text.split('-').map(Number)) as [
    number[],
    number[],
  ]
  return msA > msB || (msA === msB && countA > countB)
}

/** Two numbers of at most 64 bits. Redis rejects larger ones at every attempt. */
const VERSION = /^\d{1,19}-\d{1,19}$/

/** Whether a text has the form of a version. */
const isVersion = (text: string): boolean => VERSION.test(text)

/**
 * Reads the page after a version. The read includes the version itself: if it still exists, no later event is missing.
 */
async function readAfter(
  redis: Redis,
  key: string,
  version: string,
  reportMalformed: ReportMalformed,
): Promise<StreamedChange[] | undefined> {
  if (!isVersion(version)) return undefined
  if (version === BEGINNING) {
    const [entries, length] = await Promise.all([redis.xrange(key, '-', '+', 'COUNT', PAGE), redis.xlen(key)])
    return length < MAX_STREAMED_CHANGES ? parseEntries(entries, reportMalformed) : undefined
  }
  const [first, ...rest] = await redis.xrange(key, version, '+', 'COUNT', PAGE + 1)
  return first?.[0] === version ? parseEntries(rest, reportMalformed) : undefined
}

async function readNewest(redis: Redis, key: string): Promise<string> {
  const [newest] = await redis.xrevrange(key, '+', '-', 'COUNT', 1)
  return newest?.[0] ?? BEGINNING
}

/**
 * Follows the stream from now on. `waiting` is a separate `reader` connection for blocking reads, `asking` serves all
 * other commands. During an outage of Redis, listeners are not called. Afterwards they receive the missed events, or
 * `missed` if Redis no longer has them. A malformed entry is logged and also reported as `missed`.
 */
export function followChangeStream(
  connections: { waiting: Redis; asking: Redis },
  prefix: string,
  log: Logger,
): ChangeStream {
  const { waiting, asking } = connections
  const key = toStreamKey(prefix)
  const listeners: ChangeListener[] = []
  const closing = new AbortController()
  let version: string | undefined
  let senseless: string | undefined
  let refusal: string | undefined
  // Every reconnecting client reads the entry again, but it is logged once.
  const reportMalformed: ReportMalformed = (at, reason) => {
    if (at !== senseless) log.warn({ version: at, reason }, 'malformed change event in the stream')
    senseless = at
  }
  const logFailure = (error: unknown) => {
    const reason = toReason(error)
    // A Redis that is unreachable or loading recovers; a refusal lasts until an operator acts.
    const isStarting = reason.startsWith('LOADING')
    const isRefusal = error instanceof ReplyError && !isStarting
    const isNews = isRefusal && reason !== refusal
    if (isRefusal) refusal = reason
    log[isNews ? 'warn' : 'debug']({ reason }, 'the change stream cannot be read')
  }
  const miss = (newest: string) => {
    version = newest
    for (const listener of listeners) listener.missed(newest)
  }
  const step = async () => {
    const changeEvents = version === undefined ? undefined : await readAfter(waiting, key, version, reportMalformed)
    if (changeEvents === undefined) return miss(await readNewest(waiting, key))
    const last = changeEvents.at(-1)
    if (last === undefined) return waiting.xread('COUNT', 1, 'BLOCK', WAIT_MS, 'STREAMS', key, String(version))
    version = last.version
    for (const listener of listeners) listener.changed(changeEvents)
  }
  const read = async () => {
    while (!closing.signal.aborted) {
      try {
        await step()
        refusal = undefined
      } catch (error) {
        if (closing.signal.aborted) return
        logFailure(error)
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
        const changeEvents = await readAfter(asking, key, from, reportMalformed)
        return changeEvents?.filter((change) => version === undefined || !isNewer(change.version, version))
      } catch (error) {
        logFailure(error)
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

/**
 * Feeds the events of the stream into the feed. Call it before registering other listeners of the stream: a client
 * requests data as soon as it receives an event, and must not get a stale cached response.
 */
export function bridgeChangeStream({ receive, renew }: ChangeFeed, changeStream: Pick<ChangeStream, 'follow'>): void {
  changeStream.follow({
    changed: (changeEvents) => {
      for (const { dataset, id } of changeEvents) receive({ dataset, id })
    },
    missed: renew,
  })
}
