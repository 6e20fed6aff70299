import { LRUCache } from 'lru-cache'
import type { TimeRange } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Commit, CommitFeed } from '../../shared/store/commits.ts'
import { type BodyRoom, createBodyRoom } from './body-room.ts'
import { type Flight, startFlight } from './flight.ts'
import { withSignal } from './leaving.ts'

/** Something that is kept, and how many bytes it takes. */
export interface Sized {
  readonly size: number
}

/**
 * What a kept value is known by, and what it was read from: a dataset, and the times of the observations that it is made
 * of, in Unix milliseconds.
 */
export interface Place extends TimeRange {
  readonly key: string
  /** One dataset, or several. */
  readonly dataset: string | readonly string[]
}

/** The kept values of one kind. */
export interface Shelf<T extends Sized> {
  get(key: string): T | undefined
  /** Keeps a value that was read since the mark, unless a commit since then concerns its times. */
  keep(place: Place, mark: number, value: T): void
  /**
   * The values of some places: kept, or being read for somebody else, or read now, all that are missing at once. Whoever
   * waits until `left` is aborted is given its reason; when all who wait for a reading have left, it ends: the statements
   * of its database do so by themselves, and `abandoned` is aborted. Rejects as `read` does, which gives a value for each
   * missing place.
   */
  ask<P extends Place>(places: readonly P[], read: Read<P, T>, left: AbortSignal): Promise<T[]>
}

type Read<P, T> = (missing: readonly P[], db: Database, abandoned: AbortSignal) => Promise<readonly T[]>

/** What was read from the database and still holds, for answers to be put together from. */
export interface Memory {
  readonly maxBytes: number
  /** What the kept values take. */
  readonly bytes: number
  /** Where answers are written that are put together from what is kept, and not kept themselves. */
  readonly bodies: BodyRoom
  shelf<T extends Sized>(): Shelf<T>
  /**
   * Whether there is room to collect so many bytes, beside what others are collecting. If there is, it is taken until
   * the signal is aborted.
   */
  claim(bytes: number, signal: AbortSignal): boolean
  /** A moment: taken before data is read, it tells `keep` whether the data may have changed since. */
  mark(): number
}

/** What an entry costs beyond its bytes. */
const ENTRY_BYTES = 512
/**
 * So many of the last commits are remembered. What was read before the oldest of them is not kept: it may be outdated.
 */
const MAX_CHANGES = 500

const toDatasets = ({ dataset }: Pick<Place, 'dataset'>) => (typeof dataset === 'string' ? [dataset] : dataset)

/** Whether a commit concerns some times of a dataset; one that nobody knows concerns everything. */
type Concerns = (of: Omit<Place, 'key'>) => boolean

function toConcerns(change: Commit | undefined): Concerns {
  if (change === undefined) return () => true
  const { dataset, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = change
  return (of) => toDatasets(of).includes(dataset) && from < of.to && to >= of.from
}

/** The last commits, by their order. */
function createChanges(commits: CommitFeed, onChange: (concerns: Concerns) => void) {
  let changes: Concerns[] = []
  let forgotten = 0
  commits.follow((change) => {
    const concerns = toConcerns(change)
    onChange(concerns)
    changes.push(concerns)
    if (changes.length < 2 * MAX_CHANGES) return
    forgotten += changes.length - MAX_CHANGES
    changes = changes.slice(-MAX_CHANGES)
  })
  return {
    mark: () => forgotten + changes.length,
    /** Whether what was read since the mark is what is stored, as far as anybody knows. */
    holds: (place: Place, mark: number) =>
      toDatasets(place).every((dataset) => commits.version(dataset) !== undefined) &&
      mark >= forgotten &&
      !changes.slice(mark - forgotten).some((concerns) => concerns(place)),
  }
}

/** A reading under way, and one of the places that it is for. */
interface Reading {
  readonly place: Place
  readonly flight: Flight<ReadonlyMap<string, Sized>>
}

/**
 * A memory by byte budget, the least recently used goes first; 0 keeps nothing. A commit drops those values whose times
 * it concerns and leaves all others, so that the past is read once. What is being read for somebody is shared in the
 * same way: not by those who ask after such a commit. When commits may have been missed, everything is dropped.
 */
export function createMemory(options: { maxBytes: number; commits: CommitFeed; db: Database }): Memory {
  const { maxBytes, commits, db } = options
  const kept = new LRUCache<string, { readonly place: Place; readonly value: Sized }>({
    maxSize: Math.max(1, maxBytes),
    sizeCalculation: ({ value }, key) => value.size + key.length + ENTRY_BYTES,
  })
  const underway = new Map<string, Reading>()
  const { mark, holds } = createChanges(commits, (concerns) => {
    for (const [key, { place }] of [...kept.entries()]) if (concerns(place)) kept.delete(key)
    for (const [key, { place }] of [...underway]) if (concerns(place)) underway.delete(key)
  })
  const keep = (place: Place, since: number, value: Sized) => {
    if (holds(place, since)) kept.set(place.key, { place, value })
  }
  /** Begins to read; whoever begins has to wait for it. */
  const begin = <P extends Place>(missing: readonly P[], read: Read<P, Sized>): Reading['flight'] => {
    const since = mark()
    const flight = startFlight(async (abandoned) => {
      const values = await read(missing, withSignal(db, abandoned), abandoned)
      land()
      const read_ = missing.map((place, index) => [place, values[index] as Sized] as const)
      for (const [place, value] of read_) keep(place, since, value)
      return new Map(read_.map(([place, value]) => [place.key, value]))
    })
    const land = () => {
      for (const { key } of missing) if (underway.get(key)?.flight === flight) underway.delete(key)
    }
    for (const place of missing) underway.set(place.key, { place, flight })
    // Whoever comes now must not wait for what has failed or is being broken off.
    flight.abandoned.addEventListener('abort', land)
    return flight
  }
  const claims = createClaims(maxBytes / 2)
  return {
    maxBytes,
    get bytes() {
      return kept.calculatedSize
    },
    bodies: createBodyRoom(),
    claim: claims,
    mark,
    shelf: <T extends Sized>(): Shelf<T> => ({
      get: (key) => kept.get(key)?.value as T | undefined,
      keep,
      ask: async (places, read, left) => {
        left.throwIfAborted()
        const known = new Map<string, Sized>()
        const flights = new Map<string, Reading['flight']>()
        const missing = places.filter((place) => {
          const value = kept.get(place.key)?.value
          const flight = underway.get(place.key)?.flight
          if (value !== undefined) known.set(place.key, value)
          else if (flight !== undefined) flights.set(place.key, flight)
          else return true
          return false
        })
        if (missing.length > 0) {
          const flight = begin(missing, read)
          for (const { key } of missing) flights.set(key, flight)
        }
        const joined = [...new Set(flights.values())].map(async (flight) => [flight, await flight.join(left)] as const)
        const results = new Map(await Promise.all(joined))
        // A reading is for several places, and may be outdated for some of them: each has its own.
        for (const [key, flight] of flights) known.set(key, results.get(flight)?.get(key) as Sized)
        return places.map(({ key }) => known.get(key) as T)
      },
    }),
  }
}

/** Room for what is collected before it is kept, `most` bytes at once. */
function createClaims(most: number): Memory['claim'] {
  let claimed = 0
  return (bytes, signal) => {
    if (signal.aborted || claimed + bytes > most) return false
    claimed += bytes
    const release = () => {
      claimed -= bytes
    }
    signal.addEventListener('abort', release, { once: true })
    return true
  }
}
