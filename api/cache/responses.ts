import { LRUCache } from 'lru-cache'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import type { ChangeFeed } from '../../shared/store/store.ts'
import type { ClientKey, FairQueue } from '../admission/admission.ts'
import { createSingleFlight, type DisconnectSignal } from './single-flight.ts'

/** The parts of a request that decide its answer and the encoding of the response. */
export interface RawRequest {
  readonly url?: string | undefined
  readonly headers: { readonly accept?: string | undefined; readonly 'accept-encoding'?: string | undefined }
}

/** Results of resolving requests. Resolving the same request again would give the same result. */
export interface ResolvedRequests<T> {
  /** Remembers a result and the registry version that it was made with. */
  add(request: RawRequest, resolved: T, registryVersion: string): void
  /** Returns undefined for a request that must be resolved. */
  find(request: RawRequest): T | undefined
  /** The URLs of the last `most` requests, the most recent first. */
  listRecent(most: number): string[]
}

const MAX_RESOLVED = 20_000
/** Longer requests are resolved each time. */
const MAX_RESOLVED_LENGTH = 768

const toText = ({ url = '', headers }: RawRequest) =>
  `${url}\n${headers.accept ?? ''}\n${headers['accept-encoding'] ?? ''}`

/**
 * `registryVersion` returns the current version of the registry. With another version a name may belong to another
 * entity or to none.
 */
export function createResolvedRequests<T>(registryVersion: () => string, max = MAX_RESOLVED): ResolvedRequests<T> {
  const entries = new LRUCache<string, { readonly resolved: T; readonly version: string }>({ max })
  return {
    add: (request, resolved, version) => {
      const text = toText(request)
      if (text.length <= MAX_RESOLVED_LENGTH) entries.set(text, { resolved, version })
    },
    find: (request) => {
      const entry = entries.get(toText(request))
      return entry?.version === registryVersion() ? entry.resolved : undefined
    },
    listRecent: (most) => {
      const urls = new Set<string>()
      for (const text of entries.keys()) {
        if (urls.size === most) break
        urls.add(text.slice(0, text.indexOf('\n')))
      }
      return [...urls]
    },
  }
}

/** The properties of an answer that decide its place in the cache. */
export interface Cacheable {
  /** Its memory in bytes. Grows when an encoding is added. */
  readonly size: number
  /** Unix milliseconds. */
  readonly expiresAt: number
  /** Made without a database statement: it is cached on its second request. */
  readonly isQuick?: boolean
}

/**
 * Origin of an answer: the cache, a stale cache entry while its successor is made, a shared single flight, or a query
 * for this request.
 */
export type Origin = 'cache' | 'stale' | 'flight' | 'made'

/** A cached answer with the registry version and the dataset versions that it was made from. */
interface Entry<A extends Cacheable> {
  readonly answer: A
  readonly registryVersion: string
  readonly versions: Versions
  readonly createdAt: number
  /** Number of change events that the feed had counted when the versions were last verified. */
  verifiedAt: number
  hits: number
  /** The size of the answer for which the cache has reserved memory. */
  readonly size: number
}

/** One version per dataset; undefined while no change events arrive. */
type Versions = readonly (string | undefined)[]

/** Maximum age of a cached answer while neither Redis nor the database reports change events. */
const WITHOUT_EVENTS_MS = 1000
/** Estimated memory overhead of an entry, in addition to the answer's bytes. */
const ENTRY_BYTES = 1024
/** From this number of hits on, an answer is popular: after a change many clients would wait for the new one. */
const POPULAR_HITS = 100
/** Maximum number of remembered keys of answers that were not cached. */
const MAX_REQUESTED_KEYS = 5000
/** How long after a change clients still receive the old popular answer while the new one is made. */
const STALE_MS = 1000

/** Makes an answer, or a stream, which is not cached. */
type Load<A, S> = (abandoned: AbortSignal) => Promise<A | S>

interface Lookup {
  readonly key: string
  /** The registry version that the request was resolved with. */
  readonly registryVersion: string
  readonly datasets: readonly DatasetFacts[]
  /** Undefined for answers that bypass the queue. */
  readonly client: ClientKey | undefined
}

export interface ResponseCache<A extends Cacheable, S extends object> {
  /** Size of all cached answers, in bytes. */
  readonly bytes: number
  /** Returns the cached answer if it is valid at `at` (Unix milliseconds). */
  find(key: string, datasets: readonly DatasetFacts[], at: number): A | undefined
  /** Evicts an answer whose data has changed. */
  drop(key: string): void
  /**
   * Offers an answer that was made from cached chunks. The cache stores it on the second request only. Returns whether
   * it was stored.
   */
  offer(lookup: Pick<Lookup, 'key' | 'registryVersion' | 'datasets'>, answer: A): boolean
  /**
   * Returns a cached answer, or loads one that all concurrent requests for the key share. Streams are not cached.
   * Rejects with the reason of `disconnected` when the client disconnects. `load` is aborted when all sharing clients have
   * disconnected, and not called if that happens before their turn.
   * @throws Problem `unavailable` when the request would have to wait too long.
   */
  get(lookup: Lookup, load: Load<A, S>, disconnected: DisconnectSignal): Promise<{ answer: A | S; from: Origin }>
}

/** An entry is valid until its registry version or one of its dataset versions changes, or until it expires. */
function createValidity({
  changeFeed,
  registryVersion,
  now,
}: Pick<CacheOptions, 'changeFeed' | 'registryVersion' | 'now'>) {
  return {
    versionsOf: (datasets: readonly DatasetFacts[]): Versions => datasets.map(({ name }) => changeFeed.version(name)),
    holds: (entry: Entry<Cacheable>, datasets: readonly DatasetFacts[], at: number): boolean => {
      // If the clock was set back, the entry would stay valid for as long as the clock was set back.
      if (at < entry.createdAt || at >= entry.answer.expiresAt) return false
      if (entry.verifiedAt === changeFeed.changes) return true
      const { versions } = entry
      if (entry.registryVersion !== registryVersion()) return false
      if (!datasets.every(({ name }, index) => changeFeed.version(name) === versions[index])) return false
      if (versions.includes(undefined)) return at - entry.createdAt < WITHOUT_EVENTS_MS
      entry.verifiedAt = changeFeed.changes
      return true
    },
    /**
     * Whether the entry is popular and became invalid less than `STALE_MS` ago. Entries without versions, or of another
     * registry version, do not qualify: the time when they became invalid is unknown.
     */
    isServedStale: (entry: Entry<Cacheable>, datasets: readonly DatasetFacts[]): boolean => {
      const { answer, versions, hits } = entry
      if (entry.registryVersion !== registryVersion() || hits < POPULAR_HITS || versions.includes(undefined))
        return false
      const over = datasets.flatMap(({ name }, index) =>
        changeFeed.version(name) === versions[index] ? [] : [changeFeed.version(name) ? changeFeed.since(name) : 0],
      )
      return now() - Math.min(answer.expiresAt, ...over) < STALE_MS
    },
  }
}

interface CacheOptions {
  maxBytes: number
  changeFeed: ChangeFeed
  /** The current version of the registry. A new registry version implies new versions of all datasets. */
  registryVersion: () => string
  queue: FairQueue
  now: () => number
  /** Called when a background renewal of a stale answer fails, because no request waits for that failure. */
  onRenewalFailed: (error: unknown) => void
}

/**
 * A cache of answers with a byte budget; a budget of 0 disables it. An entry is valid for the dataset versions read
 * before it was made. A popular entry is served for one more second while its successor is made.
 */
export function createResponseCache<A extends Cacheable, S extends object>(options: CacheOptions): ResponseCache<A, S> {
  const { now, onRenewalFailed } = options
  const entries = new LRUCache<string, Entry<A>>({
    maxSize: Math.max(1, options.maxBytes),
    sizeCalculation: ({ size }, key) => size + 2 * key.length + ENTRY_BYTES,
  })
  const singleFlight = createSingleFlight<A | S>(options.queue)
  const { versionsOf, holds, isServedStale } = createValidity(options)

  const requestedKeys = new LRUCache<string, true>({ max: MAX_REQUESTED_KEYS })
  // An answer made from cached chunks is cheap to make again, so it is cached only on its second request.
  const isWorthCaching = (key: string, { isQuick }: Cacheable) => {
    if (isQuick !== true || requestedKeys.has(key)) return true
    requestedKeys.set(key, true)
    return false
  }

  const find: ResponseCache<A, S>['find'] = (key, datasets, at) => {
    const entry = entries.get(key)
    if (entry === undefined || !holds(entry, datasets, at)) return undefined
    entry.hits++
    // Another encoding was added since the last request.
    if (entry.size !== entry.answer.size) entries.set(key, { ...entry, size: entry.answer.size })
    return entry.answer
  }
  const share = ({ key, registryVersion, datasets, client }: Lookup, load: Load<A, S>) =>
    singleFlight.share(
      `${registryVersion} ${versionsOf(datasets).join()} ${key}`,
      async (abandoned) => {
        // Versions are read before the rows. A change between the two reads makes the entry count as outdated, which it
        // may be.
        const versions = versionsOf(datasets)
        const createdAt = now()
        const answer = await load(abandoned)
        if ('size' in answer && isWorthCaching(key, answer))
          entries.set(key, { answer, registryVersion, versions, createdAt, verifiedAt: -1, hits: 0, size: answer.size })
        return answer
      },
      client,
    )
  const renew = async (lookup: Lookup, load: Load<A, S>) => {
    const { call, isNew } = share(lookup, load)
    if (isNew) await call.join()
  }
  return {
    get bytes() {
      return entries.calculatedSize
    },
    find,
    drop: (key) => void entries.delete(key),
    offer: ({ key, registryVersion, datasets }, answer) => {
      if (!isWorthCaching(key, answer)) return false
      const versions = versionsOf(datasets)
      const entry = { answer, registryVersion, versions, createdAt: now(), verifiedAt: -1, hits: 0, size: answer.size }
      entries.set(key, entry)
      return true
    },
    get: async (lookup, load, disconnected) => {
      const { key, datasets } = lookup
      const hit = find(key, datasets, now())
      if (hit !== undefined) return { answer: hit, from: 'cache' }
      const old = entries.get(key)
      if (old === undefined || !isServedStale(old, datasets)) {
        const { call, isNew } = share(lookup, load)
        return { answer: await call.join(disconnected()), from: isNew ? 'made' : 'flight' }
      }
      // A failure here, such as a full queue, reaches no client. The next request tries again. After the old answer
      // expires, the request receives the failure.
      renew(lookup, load).catch(onRenewalFailed)
      return { answer: old.answer, from: 'stale' }
    },
  }
}
