import { LRUCache } from 'lru-cache'
import { type SharedCall, startSharedCall } from '../../shared/batcher.ts'
import type { TimeRange } from '../../shared/intervals.ts'
import type { ChangeEvent, ChangeFeed, Database } from '../../shared/store/store.ts'
import { withSignal } from './single-flight.ts'

/** A cached value, its size in bytes, and the number of points of a series in it. */
export interface Sized {
  readonly size: number
  readonly points?: number
}

/**
 * Cache key of a value, and the data that it was read from: the datasets, and the time range of the observations in
 * Unix milliseconds.
 */
export interface ChunkKey extends TimeRange {
  readonly key: string
  /** One dataset, or several. */
  readonly dataset: string | readonly string[]
  /** Whether the value can be made from another value in the cache, without a statement. Such values are evicted first. */
  readonly isDerived?: boolean
}

type Load<P, T> = (missing: readonly P[], db: Database, abandoned: AbortSignal) => Promise<readonly T[]>

/** The series cache: values read from the database that are still valid; answers are assembled from them. */
export interface ChunkCache {
  readonly maxBytes: number
  /** Size of all cached values, in bytes. */
  readonly bytes: number
  /** Number of points in all cached values. */
  readonly points: number
  /** Buffers for answers that are assembled from cached values and are not cached themselves. */
  readonly buffers: BufferPool
  /** Returns the cached value of a key. The caller names its type: each kind of value has its own keys. */
  get<T extends Sized>(key: string): T | undefined
  /** Returns the cached values of all keys; undefined if one is not cached. */
  getAll<T extends Sized>(keys: readonly ChunkKey[]): T[] | undefined
  /** Caches a value that was read after the mark, unless a change event since then affects its time range. */
  store<T extends Sized>(key: ChunkKey, mark: number, value: T): void
  /**
   * Returns the values for some cache keys: cached, shared with a running read, or read now with one call for all
   * missing keys. If `signal` is aborted, the call rejects with its reason. When the signals of all callers of a read
   * are aborted, its database statements end and `abandoned` is aborted. Rejects as `load` does, which returns one
   * value per missing key.
   */
  read<P extends ChunkKey, T extends Sized>(keys: readonly P[], load: Load<P, T>, signal: AbortSignal): Promise<T[]>
  /** Returns a mark. With a mark taken before a read, `store` detects whether the data may have changed since. */
  mark(): number
}

/** Estimated memory overhead of an entry, in addition to its bytes. */
const ENTRY_BYTES = 560
/**
 * A value that a statement read is evicted later than a derived value, because reading it takes several times as long
 * per byte. The difference is `READ_BUDGETS` times the budget, in bytes of added values.
 */
const READ_BUDGETS = 2

/** Thrown for work that may only use cached values. One object: its stack is never read. */
const NOT_CACHED = new Error('not cached')
const refuse = () => Promise.reject(NOT_CACHED)
const WAITING = new AbortController().signal

/** Does work from cached values only. Returns undefined if it would read from the database. */
export async function doIfCached<T>(
  { chunks, db }: { readonly chunks: ChunkCache; readonly db: Database },
  work: (cached: { chunks: ChunkCache; db: Database; signal: AbortSignal }) => Promise<T>,
): Promise<T | undefined> {
  const read: ChunkCache['read'] = async <P extends ChunkKey, T extends Sized>(keys: readonly P[]) => {
    const values = chunks.getAll<T>(keys)
    if (values === undefined) throw NOT_CACHED
    return values
  }
  const refusing = { ...db, rows: refuse, stream: refuse }
  try {
    return await work({ chunks: { ...chunks, read }, db: refusing, signal: WAITING })
  } catch (error) {
    if (error === NOT_CACHED) return undefined
    throw error
  }
}

/**
 * Number of remembered change events. A value read before the oldest of them is not cached, because it may be outdated.
 */
const MAX_CHANGES = 500

const toDatasets = ({ dataset }: Pick<ChunkKey, 'dataset'>) => (typeof dataset === 'string' ? [dataset] : dataset)

/** Whether a change event affects a time range of a dataset. An unknown event affects everything. */
type Concerns = (of: Omit<ChunkKey, 'key'>) => boolean

function toConcerns(change: ChangeEvent | undefined): Concerns {
  if (change === undefined) return () => true
  const { dataset, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = change
  return (of) => toDatasets(of).includes(dataset) && from < of.to && to >= of.from
}

/** The last change events, in order. */
function createChanges(changeFeed: ChangeFeed, onChange: (concerns: Concerns) => void) {
  let changes: Concerns[] = []
  let forgotten = 0
  changeFeed.follow((change) => {
    const concerns = toConcerns(change)
    onChange(concerns)
    changes.push(concerns)
    if (changes.length < 2 * MAX_CHANGES) return
    forgotten += changes.length - MAX_CHANGES
    changes = changes.slice(-MAX_CHANGES)
  })
  return {
    mark: () => forgotten + changes.length,
    /** Whether a value read since the mark is still valid, according to the change events received. */
    holds: (place: ChunkKey, mark: number) =>
      toDatasets(place).every((dataset) => changeFeed.version(dataset) !== undefined) &&
      mark >= forgotten &&
      !changes.slice(mark - forgotten).some((concerns) => concerns(place)),
  }
}

/**
 * How a requested value was found: in the cache or in a running read (`hit`), or read now. `evicted` was in the cache
 * before: a cache of twice the size would still have it.
 */
export type CacheResult = 'hit' | 'miss' | 'evicted'

interface Entry {
  readonly key: ChunkKey
  readonly value: Sized
  /** Its turn to be evicted: the least is next. */
  turn: number
}

/** A running read, and one of the cache keys that it is for. */
interface Reading {
  readonly key: ChunkKey
  readonly call: SharedCall<ReadonlyMap<string, Sized>>
}

/**
 * A cache with a byte budget and least-recently-used eviction, of derived values first; a budget of 0 disables it. A
 * change event drops only the values of an affected time range, so that older data is read once. Requests share running
 * reads in the same way, except for requests that arrive after such an event. When change events may have been missed,
 * everything is dropped.
 */
export function createChunkCache(options: {
  maxBytes: number
  changeFeed: ChangeFeed
  db: Database
  /** Counts requested values. */
  count?: (result: CacheResult, values: number) => void
}): ChunkCache {
  const { maxBytes, changeFeed, db, count = () => {} } = options
  const toSize = (value: Sized, key: string) => value.size + key.length + ENTRY_BYTES
  /** The keys of evicted values, up to `maxBytes` of these values. */
  const evicted = new LRUCache<string, ChunkKey, number>({ maxSize: Math.max(1, maxBytes) })
  let points = 0
  const createEntries = () =>
    new LRUCache<string, Entry>({
      // More than the budget, because `add` evicts what exceeds it.
      maxSize: Math.max(1, 2 * maxBytes),
      maxEntrySize: Math.max(1, maxBytes),
      sizeCalculation: ({ value }, key) => toSize(value, key),
      onInsert: ({ value }) => (points += value.points ?? 0),
      dispose: ({ value }) => (points -= value.points ?? 0),
    })
  const [reads, derived] = [createEntries(), createEntries()]
  const countBytes = () => reads.calculatedSize + derived.calculatedSize
  let addedBytes = 0
  const toTurn = ({ isDerived = false }: ChunkKey) => addedBytes + (isDerived ? 0 : READ_BUDGETS * maxBytes)
  const findOldest = (entries: typeof reads) => {
    const [name = ''] = entries.rkeys()
    return { entries, name, entry: entries.peek(name) }
  }
  const evict = () => {
    const [first, second] = [findOldest(reads), findOldest(derived)]
    const isFirst = (first.entry?.turn ?? Number.POSITIVE_INFINITY) < (second.entry?.turn ?? Number.POSITIVE_INFINITY)
    const { entries, name, entry } = isFirst ? first : second
    entries.delete(name)
    if (entry !== undefined) evicted.set(name, entry.key, { size: toSize(entry.value, name) })
  }
  const add = (key: ChunkKey, value: Sized) => {
    ;(key.isDerived ? derived : reads).set(key.key, { key, value, turn: toTurn(key) })
    addedBytes += toSize(value, key.key)
    while (countBytes() > maxBytes) evict()
  }
  const use = (name: string): Sized | undefined => {
    const entry = reads.get(name) ?? derived.get(name)
    if (entry !== undefined) entry.turn = toTurn(entry.key)
    return entry?.value
  }
  const running = new Map<string, Reading>()
  const { mark, holds } = createChanges(changeFeed, (concerns) => {
    for (const entries of [reads, derived])
      for (const [name, { key }] of [...entries.entries()]) if (concerns(key)) entries.delete(name)
    for (const [name, { key }] of [...running]) if (concerns(key)) running.delete(name)
    for (const [name, key] of [...evicted.entries()]) if (concerns(key)) evicted.delete(name)
  })
  const store: ChunkCache['store'] = (key, since, value) => {
    if (!holds(key, since)) return
    evicted.delete(key.key)
    add(key, value)
  }
  /** Starts a read; the caller must wait for it. */
  const start = <P extends ChunkKey>(missing: readonly P[], load: Load<P, Sized>): Reading['call'] => {
    const since = mark()
    const call = startSharedCall(async (abandoned) => {
      const values = await load(missing, withSignal(db, abandoned), abandoned)
      forget()
      const loaded = missing.map((key, index) => [key, values[index] as Sized] as const)
      for (const [key, value] of loaded) store(key, since, value)
      return new Map(loaded.map(([{ key }, value]) => [key, value]))
    })
    const forget = () => {
      for (const { key } of missing) if (running.get(key)?.call === call) running.delete(key)
    }
    for (const key of missing) running.set(key.key, { key, call })
    // A new request must not join a read that has failed or is being aborted.
    call.abandoned.addEventListener('abort', forget)
    return call
  }
  return {
    maxBytes,
    get bytes() {
      return countBytes()
    },
    get points() {
      return points
    },
    buffers: createBufferPool(),
    mark,
    get: <T extends Sized>(key: string) => use(key) as T | undefined,
    getAll: <T extends Sized>(keys: readonly ChunkKey[]) => {
      const values: T[] = []
      for (const { key } of keys) {
        const value = use(key)
        if (value === undefined) return undefined
        values.push(value as T)
      }
      count('hit', values.length)
      return values
    },
    store,
    read: async <P extends ChunkKey, T extends Sized>(keys: readonly P[], load: Load<P, T>, signal: AbortSignal) => {
      signal.throwIfAborted()
      const values = new Map<string, Sized>()
      const calls = new Map<string, Reading['call']>()
      const missing = keys.filter(({ key }) => {
        const value = use(key)
        const call = running.get(key)?.call
        if (value !== undefined) values.set(key, value)
        else if (call !== undefined) calls.set(key, call)
        else return true
        return false
      })
      count('hit', keys.length - missing.length)
      if (missing.length > 0) {
        const before = missing.filter(({ key }) => evicted.has(key)).length
        count('evicted', before)
        count('miss', missing.length - before)
        const call = start(missing, load)
        for (const { key } of missing) calls.set(key, call)
      }
      const joined = [...new Set(calls.values())].map(async (call) => [call, await call.join(signal)] as const)
      const results = new Map(await Promise.all(joined))
      // A read covers several keys and may be outdated for some of them, so each key has its own entry.
      for (const [key, call] of calls) values.set(key, results.get(call)?.get(key) as Sized)
      return keys.map(({ key }) => values.get(key) as T)
    },
  }
}

/**
 * Buffer pool for answers that are sent once and not cached. Reused memory stays in the processor's caches: writing 70
 * kB into new memory takes ten times as long, and adds garbage collection.
 */
export interface BufferPool {
  /** Returns an uninitialized buffer of `bytes` bytes. */
  take(bytes: number): Buffer
  /** Returns a buffer that is no longer in use. Buffers from other sources, or already returned, are ignored. */
  release(body: Buffer): void
}

/** Slab sizes are multiples of this. */
const STEP_BYTES = 16 * 1024
/** Node's own pool serves smaller bodies at no cost. For larger bodies the write takes longer than the allocation. */
const LEAST_BYTES = 4 * 1024
const MOST_BYTES = 2 * 1024 * 1024
/** Maximum bytes of free slabs. */
const MOST_FREE_BYTES = 16 * 1024 * 1024

export function createBufferPool(): BufferPool {
  /** Free slabs by size; the most recently returned is last. */
  const free = new Map<number, ArrayBufferLike[]>()
  // A slab that is never returned, for example because its answer was cached, is garbage-collected with its body.
  const lent = new WeakSet<ArrayBufferLike>()
  let freeBytes = 0
  return {
    take: (bytes) => {
      if (bytes < LEAST_BYTES || bytes > MOST_BYTES) return Buffer.allocUnsafe(bytes)
      const size = Math.ceil(bytes / STEP_BYTES) * STEP_BYTES
      const found = free.get(size)?.pop()
      if (found !== undefined) freeBytes -= size
      const slab = found ?? Buffer.allocUnsafeSlow(size).buffer
      lent.add(slab)
      return Buffer.from(slab, 0, bytes)
    },
    release: ({ buffer }) => {
      if (!lent.delete(buffer) || freeBytes + buffer.byteLength > MOST_FREE_BYTES) return
      freeBytes += buffer.byteLength
      const sameSize = free.get(buffer.byteLength)
      if (sameSize === undefined) free.set(buffer.byteLength, [buffer])
      else sameSize.push(buffer)
    },
  }
}
