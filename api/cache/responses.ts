import { LRUCache } from 'lru-cache'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import type { CommitFeed } from '../../shared/store/commits.ts'
import type { StreamAnswer } from '../answers/answer.ts'
import { type Format, findFormat } from '../answers/formats.ts'
import type { Route } from '../route/define-route.ts'
import type { Asker } from '../serving/lines.ts'
import type { ApiMetrics, Origin, RouteMeters } from '../serving/observe.ts'
import type { Queue } from '../serving/queue.ts'
import type { ReadyAnswer } from '../serving/respond.ts'
import { createFlights, type Leaving } from './flight.ts'

/** The result of resolving a raw URL. */
interface KnownUrl {
  readonly route: Route
  /** The cache key of the answer, and the registry version that the URL was resolved with. */
  readonly key: string
  readonly basis: string
  readonly meters: RouteMeters
  readonly format: Format
  /** Whether the URL itself names the format. */
  readonly isNamed: boolean
}

/** The response cache's index from raw URLs to answer keys. Parsing the same URL again would give the same key. */
export interface KnownUrls {
  add(url: string, meant: Omit<KnownUrl, 'meters'>): void
  /** Returns the resolved URL for a client with this `Accept`; undefined if the URL must be parsed. */
  find(url: string, accept: string | undefined): KnownUrl | undefined
}

const MAX_KNOWN_URLS = 20_000
const MAX_KNOWN_URL_LENGTH = 512

/** Whether the resolved URL is also right for a client with this `Accept`. */
function isWished({ route, format, isNamed }: KnownUrl, accept: string | undefined): boolean {
  if (route.record === undefined) return route.accepts(accept)
  return isNamed || findFormat(accept) === format
}

/**
 * `basis` returns the current registry version. With another version a name may belong to another entity or to none.
 */
export function createKnownUrls(metrics: ApiMetrics, basis: () => string): KnownUrls {
  const known = new LRUCache<string, KnownUrl>({ max: MAX_KNOWN_URLS })
  return {
    add: (url, meant) => {
      // Answers of volatile routes are never cached.
      if (meant.route.volatile || url.length > MAX_KNOWN_URL_LENGTH) return
      const { route, key, basis: foundWith, format, isNamed } = meant
      // Properties are listed one by one: spreading another object would create a different object shape, which costs
      // more memory.
      known.set(url, { route, key, basis: foundWith, meters: metrics.of(route.path), format, isNamed })
    },
    find: (url, accept) => {
      const meant = known.get(url)
      return meant !== undefined && meant.basis === basis() && isWished(meant, accept) ? meant : undefined
    },
  }
}

/** A cached answer with the registry version and the dataset versions that it was made from. */
interface Entry {
  readonly answer: ReadyAnswer
  readonly basis: string
  readonly versions: Versions
  readonly madeAt: number
  /** Number of change events that the feed had counted when the versions were last verified. */
  foundAt: number
  hits: number
}

/** One version per dataset; undefined while no change events arrive. */
type Versions = readonly (string | undefined)[]

/** Maximum age of a cached answer while neither Redis nor the database reports change events. */
const UNHEARD_MS = 1000
/** Estimated memory overhead of an entry, in addition to the answer's bytes. */
const ENTRY_BYTES = 1024
/** From this number of hits on, an answer is popular: after a change many clients would wait for the new one. */
const CROWD_HITS = 100
/** Maximum number of remembered keys of answers that were not cached. */
const MAX_PASSED = 5000
/** How long after a change clients still receive the old popular answer while the new one is made. */
const STALE_MS = 1000

type Make = (abandoned: AbortSignal) => Promise<ReadyAnswer | StreamAnswer>

interface Asked {
  readonly key: string
  /** The registry version that the request was resolved with. */
  readonly basis: string
  readonly datasets: readonly DatasetFacts[]
  /** The client key for the fair queue; undefined for answers that bypass the queue. */
  readonly asker: Asker | undefined
}

export interface ByteCache {
  /** Size of all cached answers, in bytes. */
  readonly bytes: number
  /** Returns the cached answer if it is valid at `at` (Unix milliseconds). */
  peek(key: string, datasets: readonly DatasetFacts[], at: number): ReadyAnswer | undefined
  /**
   * Offers an answer that was made from cached chunks. The cache stores it on the second request only. Returns whether
   * it was stored.
   */
  offer(asked: Pick<Asked, 'key' | 'basis' | 'datasets'>, answer: ReadyAnswer): boolean
  /**
   * Returns a cached answer, or makes one that all concurrent requests for the key share. Streams are not cached.
   * Rejects with the reason of `left` when the client disconnects. `make` is aborted when all sharing clients have
   * disconnected, and not called if that happens before their turn.
   * @throws Problem `unavailable` when the request would have to wait too long.
   */
  get(asked: Asked, make: Make, left: Leaving): Promise<{ answer: ReadyAnswer | StreamAnswer; from: Origin }>
}

/** An entry is valid until its registry version or one of its dataset versions changes, or until it expires. */
function createValidity({ commits, basis, now }: Pick<CacheOptions, 'commits' | 'basis' | 'now'>) {
  return {
    versionsOf: (datasets: readonly DatasetFacts[]): Versions => datasets.map(({ name }) => commits.version(name)),
    holds: (entry: Entry, datasets: readonly DatasetFacts[], at: number): boolean => {
      // If the clock was set back, the entry would stay valid for as long as the clock was set back.
      if (at < entry.madeAt || at >= entry.answer.expiresAt) return false
      if (entry.foundAt === commits.changes) return true
      const { versions } = entry
      if (entry.basis !== basis()) return false
      if (!datasets.every(({ name }, index) => commits.version(name) === versions[index])) return false
      if (versions.includes(undefined)) return at - entry.madeAt < UNHEARD_MS
      entry.foundAt = commits.changes
      return true
    },
    /**
     * Whether the entry is popular and became invalid less than `STALE_MS` ago. Entries without versions, or of another
     * registry version, do not qualify: the time when they became invalid is unknown.
     */
    isForCrowd: (entry: Entry, datasets: readonly DatasetFacts[]): boolean => {
      const { answer, versions, hits } = entry
      if (entry.basis !== basis() || hits < CROWD_HITS || versions.includes(undefined)) return false
      const over = datasets.flatMap(({ name }, index) =>
        commits.version(name) === versions[index] ? [] : [commits.version(name) ? commits.since(name) : 0],
      )
      return now() - Math.min(answer.expiresAt, ...over) < STALE_MS
    },
  }
}

interface CacheOptions {
  maxBytes: number
  commits: CommitFeed
  /** The current version of the registry. A new registry version implies new versions of all datasets. */
  basis: () => string
  queue: Queue
  now: () => number
  /** Called when a background renewal of a stale answer fails, because no request waits for that failure. */
  onLost: (error: unknown) => void
}

/**
 * A cache of answers with a byte budget; a budget of 0 disables it. An entry is valid for the dataset versions read
 * before it was made. A popular entry is served for one more second while its successor is made.
 */
export function createByteCache(options: CacheOptions): ByteCache {
  const { now, onLost } = options
  const kept = new LRUCache<string, Entry>({
    maxSize: Math.max(1, options.maxBytes),
    // Compressed forms are added later and are together at most about as long as the body.
    sizeCalculation: ({ answer }, key) => 2 * answer.body.length + key.length + ENTRY_BYTES,
  })
  const flights = createFlights<ReadyAnswer | StreamAnswer>(options.queue)
  const { versionsOf, holds, isForCrowd } = createValidity(options)

  const passed = new LRUCache<string, true>({ max: MAX_PASSED })
  // An answer made from cached chunks is cheap to make again, so it is cached only on its second request.
  const isWorthKeeping = (key: string, { isQuick }: ReadyAnswer) => {
    if (isQuick !== true || passed.has(key)) return true
    passed.set(key, true)
    return false
  }

  const peek: ByteCache['peek'] = (key, datasets, at) => {
    const entry = kept.get(key)
    if (entry === undefined || !holds(entry, datasets, at)) return undefined
    entry.hits++
    return entry.answer
  }
  const fly = ({ key, basis, datasets, asker }: Asked, make: Make) =>
    flights.board(
      `${basis} ${versionsOf(datasets).join()} ${key}`,
      async (abandoned) => {
        // Versions are read before the rows. A change between the two reads makes the entry count as outdated, which it
        // may be.
        const versions = versionsOf(datasets)
        const madeAt = now()
        const answer = await make(abandoned)
        if ('body' in answer && isWorthKeeping(key, answer))
          kept.set(key, { answer, basis, versions, madeAt, foundAt: -1, hits: 0 })
        return answer
      },
      asker,
    )
  const renew = async (asked: Asked, make: Make) => {
    const { flight, isNew } = fly(asked, make)
    if (isNew) await flight.join()
  }
  return {
    get bytes() {
      return kept.calculatedSize
    },
    peek,
    offer: ({ key, basis, datasets }, answer) => {
      if (!isWorthKeeping(key, answer)) return false
      kept.set(key, { answer, basis, versions: versionsOf(datasets), madeAt: now(), foundAt: -1, hits: 0 })
      return true
    },
    get: async (asked, make, left) => {
      const { key, datasets } = asked
      const hit = peek(key, datasets, now())
      if (hit !== undefined) return { answer: hit, from: 'cache' }
      const old = kept.get(key)
      if (old === undefined || !isForCrowd(old, datasets)) {
        const { flight, isNew } = fly(asked, make)
        return { answer: await flight.join(left()), from: isNew ? 'made' : 'flight' }
      }
      // A failure here, such as a full queue, reaches no client. The next request tries again. After the old answer
      // expires, the request receives the failure.
      renew(asked, make).catch(onLost)
      return { answer: old.answer, from: 'stale' }
    },
  }
}
