import { LRUCache } from 'lru-cache'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import type { CommitFeed } from '../../shared/store/commits.ts'
import type { StreamAnswer } from '../answers/answer.ts'
import type { Leaving } from '../answers/leaving.ts'
import { createFlights } from './flight.ts'
import type { Asker } from './lines.ts'
import type { Queue } from './queue.ts'
import type { ReadyAnswer } from './ready.ts'
import type { Origin } from './request-metrics.ts'

/** A kept answer, the registry that it was made with, and the versions of its datasets that it was made of. */
interface Entry {
  readonly answer: ReadyAnswer
  readonly basis: string
  readonly versions: Versions
  readonly madeAt: number
  /** The feed's count of changes when the versions were last found to be current. */
  foundAt: number
  hits: number
}

/** Of each dataset, undefined while nobody tells of commits. */
type Versions = readonly (string | undefined)[]

/** How long bytes are served while neither Redis nor the database tells of commits. */
const UNHEARD_MS = 1000
/** What an entry costs beyond its bytes. */
const ENTRY_BYTES = 1024
/** An answer with so many hits is asked for so often that after a change a crowd would wait for the new one. */
const CROWD_HITS = 100
/** Of so many answers that were not kept the keys are remembered. */
const MAX_PASSED = 5000
/** How long after a change the crowd is still given the old answer, while the new one is made. */
const STALE_MS = 1000

type Make = (abandoned: AbortSignal) => Promise<ReadyAnswer | StreamAnswer>

/** What is asked for. */
interface Asked {
  readonly key: string
  /** The version of the registry that the request was understood with. */
  readonly basis: string
  readonly datasets: readonly DatasetFacts[]
  /** Who waits in the queue; undefined for what is made however many others wait. */
  readonly asker: Asker | undefined
}

export interface ByteCache {
  /** What the kept answers take. */
  readonly bytes: number
  /** A kept answer that still holds at a time, in Unix milliseconds. */
  peek(key: string, datasets: readonly DatasetFacts[], at: number): ReadyAnswer | undefined
  /** An answer that was made at once from what is kept: it is kept itself when it is asked for again. Tells whether. */
  offer(asked: Pick<Asked, 'key' | 'basis' | 'datasets'>, answer: ReadyAnswer): boolean
  /**
   * A kept answer, or a new one that all who ask meanwhile share. Streams are not kept. Rejects with the reason of
   * `left` when the client leaves; `make` is told when all who share the answer have left, and not called when that is
   * before their turn.
   * @throws Problem `unavailable` when it would have to wait too long.
   */
  get(asked: Asked, make: Make, left: Leaving): Promise<{ answer: ReadyAnswer | StreamAnswer; from: Origin }>
}

/** When entries hold: with their registry, as long as no commit changed their datasets, and the clock did not overtake them. */
function createValidity({ commits, basis, now }: Pick<CacheOptions, 'commits' | 'basis' | 'now'>) {
  return {
    versionsOf: (datasets: readonly DatasetFacts[]): Versions => datasets.map(({ name }) => commits.version(name)),
    holds: (entry: Entry, datasets: readonly DatasetFacts[], at: number): boolean => {
      // A clock that was set back since would keep it for as long as it went back.
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
     * Whether a crowd asks for an entry that held until a moment ago. One without versions, or of another registry, is given
     * to nobody: when it ceased to hold is not known.
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
  /** The version of the registry now. With another one all versions of datasets are new ones as well. */
  basis: () => string
  queue: Queue
  now: () => number
  /** Told of a failure that nobody waits for: the successor of an old answer could not be made. */
  onLost: (error: unknown) => void
}

/**
 * A cache of answers by byte budget; 0 keeps nothing. An entry holds for the dataset versions that were current before
 * it was made. One that many ask for is served for a second longer, while its successor is made.
 */
export function createByteCache(options: CacheOptions): ByteCache {
  const { now, onLost } = options
  const kept = new LRUCache<string, Entry>({
    maxSize: Math.max(1, options.maxBytes),
    // Compressed forms are added later and are at most about as long as the body.
    sizeCalculation: ({ answer }, key) => 2 * answer.body.length + key.length + ENTRY_BYTES,
  })
  const flights = createFlights<ReadyAnswer | StreamAnswer>(options.queue)
  const { versionsOf, holds, isForCrowd } = createValidity(options)

  const passed = new LRUCache<string, true>({ max: MAX_PASSED })
  // What is made of kept pieces would only take their room, unless it is asked for again.
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
        // Versions are read before the rows are: after a commit in between the entry counts as outdated, which it may be.
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
      // A failure here, such as a full queue, reaches no client. The next request tries again, and once the old answer is
      // gone it gets the failure.
      renew(asked, make).catch(onLost)
      return { answer: old.answer, from: 'stale' }
    },
  }
}
