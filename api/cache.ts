import { LRUCache } from 'lru-cache'
import type { CommitFeed } from '../shared/commits.ts'
import type { DatasetFacts } from '../shared/datasets/list.ts'
import type { StreamAnswer } from './define.ts'
import type { Encoding } from './encoding.ts'
import type { FlatHeaders } from './headers.ts'
import { toUnavailable } from './problem/problem.ts'

/** An answer's bytes in one encoding, with the headers of a 304 and of a full response. */
export interface EncodedForm {
  readonly bytes: Buffer
  readonly headers: string[]
  readonly full: string[]
}

/** A whole answer, ready to be sent in every encoding asked for so far. */
export interface ReadyAnswer {
  readonly body: Buffer
  /** What its entity tags are made of; null for an answer of the moment, which nobody can have already. */
  readonly tag: string | null
  readonly headers: FlatHeaders
  readonly staleAt: number | null
  readonly expiresAt: number
  /** Compressed already: it has no other encodings. */
  readonly isPacked?: boolean
  readonly forms: Map<Encoding, EncodedForm>
}

interface Kept {
  readonly answer: ReadyAnswer
  readonly versions: readonly (string | undefined)[]
  readonly madeAt: number
}

/** How long bytes are served while nobody can tell whether the data changed. */
const UNHEARD_MS = 1000
/** Most answers made at once; more would only wait for the database's connections. */
const MAX_COLD = 64
/** What an entry costs beyond its bytes. */
const ENTRY_BYTES = 1024

export interface ByteCache {
  /** A kept answer that still holds. */
  peek(key: string, datasets: readonly DatasetFacts[]): ReadyAnswer | undefined
  /** A kept answer, or a new one that everybody who asks meanwhile shares. Streams are not kept. */
  get(
    key: string,
    datasets: readonly DatasetFacts[],
    make: () => Promise<ReadyAnswer | StreamAnswer>,
  ): Promise<{ answer: ReadyAnswer | StreamAnswer; from: 'cache' | 'flight' | 'made' }>
}

/** A cache of answers by byte budget. An entry holds for the dataset versions that were current before it was made. */
export function createByteCache(options: { maxBytes: number; commits: CommitFeed; now: () => number }): ByteCache {
  const { commits, now } = options
  const kept = new LRUCache<string, Kept>({
    maxSize: options.maxBytes,
    // Compressed forms are added later and are at most about as long as the body.
    sizeCalculation: ({ answer }, key) => 2 * answer.body.length + key.length + ENTRY_BYTES,
  })
  const flights = new Map<string, Promise<ReadyAnswer | StreamAnswer>>()
  const versionsOf = (datasets: readonly DatasetFacts[]) => datasets.map(({ name }) => commits.version(name))

  const holds = (entry: Kept, datasets: readonly DatasetFacts[]) => {
    const at = now()
    if (at >= entry.answer.expiresAt) return false
    return datasets.every(({ name }, index) => {
      const version = commits.version(name)
      return version === entry.versions[index] && (version !== undefined || at - entry.madeAt < UNHEARD_MS)
    })
  }
  const peek: ByteCache['peek'] = (key, datasets) => {
    const entry = kept.get(key)
    return entry !== undefined && holds(entry, datasets) ? entry.answer : undefined
  }
  return {
    peek,
    get: async (key, datasets, make) => {
      const hit = peek(key, datasets)
      if (hit !== undefined) return { answer: hit, from: 'cache' }
      // Versions are read before the rows are: a commit in between makes the entry stale, never wrong.
      const versions = versionsOf(datasets)
      const flightKey = `${versions.join()} ${key}`
      const underway = flights.get(flightKey)
      if (underway !== undefined) return { answer: await underway, from: 'flight' }
      if (flights.size >= MAX_COLD) throw toUnavailable('Too many answers are being made at once.')
      const madeAt = now()
      const flight = make().finally(() => flights.delete(flightKey))
      flights.set(flightKey, flight)
      const answer = await flight
      if ('body' in answer) kept.set(key, { answer, versions, madeAt })
      return { answer, from: 'made' }
    },
  }
}
