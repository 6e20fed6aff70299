import { LRUCache } from 'lru-cache'
import type { DatasetFacts } from '../../shared/datasets/define-dataset.ts'
import type { ChangeFeed } from '../../shared/store/store.ts'
import type { FairQueue } from '../admission/admission.ts'
import {
  createSingleFlight,
  type Demand,
  type DisconnectSignal,
  type ReadScope,
} from '../single-flight/single-flight.ts'

/** The parts of a request that decide its answer and the encoding of the response. */
interface RawRequest {
  readonly url?: string | undefined
  readonly headers: { readonly accept?: string | undefined; readonly 'accept-encoding'?: string | undefined }
}

/** Results of resolving requests. Resolving the same request again would give the same result. */
interface ResolvedRequests<T> {
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
function createResolvedRequests<T>(registryVersion: () => string, max = MAX_RESOLVED): ResolvedRequests<T> {
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
  /** Made from cached values, so making it again is cheap: it is cached only if it was requested before. */
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
/** How long after a change clients still receive the old popular answer while the new one is made. */
const STALE_MS = 1000

/** Makes an answer, or a stream, which is not cached. */
type Load<A, S> = (scope: ReadScope) => Promise<A | S>

interface Lookup extends Demand {
  readonly key: string
  /** The registry version that the request was resolved with. */
  readonly registryVersion: string
  readonly datasets: readonly DatasetFacts[]
  /** Whether the same request was answered before. */
  readonly isRepeated?: boolean
}

/** An answer and its origin. `isTransient`: only this request has it. */
interface Found<T> {
  readonly answer: T
  readonly from: Origin
  readonly isTransient?: boolean
}

export interface ResponseCache<A extends Cacheable, S extends object> {
  readonly maxBytes: number
  /** Size of all cached answers, in bytes. */
  readonly bytes: number
  /** Returns the cached answer if it is valid at `at` (Unix milliseconds). */
  find(key: string, datasets: readonly DatasetFacts[], at: number): A | undefined
  /**
   * Creates a cache of the results of resolving requests. The cache keeps the last `max` results, until the registry
   * changes.
   */
  createResolvedRequests<T>(max?: number): ResolvedRequests<T>
  /** Evicts an answer whose data has changed. */
  drop(key: string): void
  /**
   * Returns a cached answer, or loads one that all concurrent requests for the key share; the load waits in the queue before
   * it reads. Streams are not cached. Rejects with the reason of `disconnected` when the client disconnects. `load` is
   * aborted when all sharing clients have disconnected.
   * @throws Problem `unavailable` when the request would have to wait too long.
   */
  get(lookup: Lookup, load: Load<A, S>, disconnected: DisconnectSignal): Promise<Found<A | S>>
}

/** An entry is valid until its registry version or one of its dataset versions changes, or until it expires. */
function createValidity({
  changeFeed,
  registryVersion,
  now,
}: Pick<ResponseOptions, 'changeFeed' | 'registryVersion' | 'now'>) {
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

export interface ResponseOptions {
  readonly maxBytes: number
  readonly changeFeed: ChangeFeed
  /** The current version of the registry. A new registry version implies new versions of all datasets. */
  readonly registryVersion: () => string
  readonly queue: FairQueue
  readonly now: () => number
  /** Called when a background renewal of a stale answer fails, because no request waits for that failure. */
  readonly onRenewalFailed: (error: unknown) => void
}

/**
 * A cache of answers with a byte budget; a budget of 0 disables it. An entry is valid for the dataset versions read
 * before it was made. A popular entry is served for one more second while its successor is made.
 */
export function createResponseCache<A extends Cacheable, S extends object>(
  options: ResponseOptions,
): ResponseCache<A, S> {
  const { now, onRenewalFailed } = options
  const entries = new LRUCache<string, Entry<A>>({
    maxSize: Math.max(1, options.maxBytes),
    sizeCalculation: ({ size }, key) => size + 2 * key.length + ENTRY_BYTES,
  })
  const singleFlight = createSingleFlight<A | S>(options.queue)
  const { versionsOf, holds, isServedStale } = createValidity(options)

  const find: ResponseCache<A, S>['find'] = (key, datasets, at) => {
    const entry = entries.get(key)
    if (entry === undefined || !holds(entry, datasets, at)) return undefined
    entry.hits++
    // Another encoding was added since the last request.
    if (entry.size !== entry.answer.size) entries.set(key, { ...entry, size: entry.answer.size })
    return entry.answer
  }
  const share = (lookup: Lookup, load: Load<A, S>, signal?: AbortSignal) => {
    const { key, registryVersion, datasets, isRepeated = false } = lookup
    const work = async (scope: ReadScope) => {
      // Versions are read before the rows. A change between the two reads makes the entry count as outdated, which it
      // may be.
      const versions = versionsOf(datasets)
      const createdAt = now()
      const answer = await load(scope)
      if ('size' in answer && (isRepeated || answer.isQuick !== true))
        entries.set(key, { answer, registryVersion, versions, createdAt, verifiedAt: -1, hits: 0, size: answer.size })
      return answer
    }
    return singleFlight.share(`${registryVersion} ${versionsOf(datasets).join()} ${key}`, work, lookup, signal)
  }
  const renew = async ({ charge: _, ...lookup }: Lookup, load: Load<A, S>) => void (await share(lookup, load).result)
  return {
    maxBytes: options.maxBytes,
    get bytes() {
      return entries.calculatedSize
    },
    find,
    createResolvedRequests: (max) => createResolvedRequests(options.registryVersion, max),
    drop: (key) => void entries.delete(key),
    get: async (lookup, load, disconnected) => {
      const { key, datasets } = lookup
      const hit = find(key, datasets, now())
      if (hit !== undefined) return { answer: hit, from: 'cache' }
      const old = entries.get(key)
      if (old === undefined || !isServedStale(old, datasets)) {
        const { result, isNew, isOnly } = share(lookup, load, disconnected())
        const answer = await result
        const isTransient = isOnly() && entries.peek(key)?.answer !== answer
        return { answer, from: isNew ? 'made' : 'flight', isTransient }
      }
      // A failure here, such as a full queue, reaches no client. The next request tries again. After the old answer
      // expires, the request receives the failure.
      renew(lookup, load).catch(onRenewalFailed)
      return { answer: old.answer, from: 'stale' }
    },
  }
}
