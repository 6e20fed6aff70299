import { LRUCache } from 'lru-cache'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import type { CommitFeed } from '../../shared/store/commits.ts'
import type { ClientKey, FairQueue } from '../admission/admission.ts'
import type { StreamAnswer } from '../answers/answer.ts'
import type { Leaving } from '../answers/leaving.ts'
import { createFlights } from './flight.ts'
import type { ReadyAnswer } from './ready.ts'
import type { Origin } from './request-metrics.ts'

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
  /** Undefined for answers that bypass the queue. */
  readonly client: ClientKey | undefined
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
  queue: FairQueue
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
  const fly = ({ key, basis, datasets, client }: Asked, make: Make) =>
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
      client,
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
