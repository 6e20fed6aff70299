import { LRUCache } from 'lru-cache'
import { type SharedCall, startSharedCall } from '../../shared/batcher.ts'
import type { TimeRange } from '../../shared/intervals.ts'
import { type ChangeEvent, type ChangeFeed, type Database, withSignal } from '../../shared/store/store.ts'
import type { Release } from '../admission/admission.ts'
import type { ReadScope } from '../single-flight/single-flight.ts'
import { type BufferPool, createBufferPool } from './buffer-pool.ts'
import { type Cacheable, createResponseCache, type ResponseCache, type ResponseOptions } from './responses.ts'
import { createSpillFile, type SpillOptions } from './spill-file.ts'

export type { Origin, ResponseCache } from './responses.ts'

/** A cached value, its size in bytes, and the number of points of a series in it. */
export interface Sized {
  readonly size: number
  readonly points?: number
}

/** The data that a value is read from. A change event of a dataset in the range drops the value. */
export interface Sources {
  /** Names of datasets. */
  readonly datasets: readonly string[]
  /** The time of the observations in Unix milliseconds. Default: any. */
  readonly range?: TimeRange
}

/** How a value is written to the disk when it is evicted. */
interface SpillForm {
  toBytes(value: Sized): Buffer
  fromBytes(bytes: Buffer): Sized
}

export interface CacheKey extends Sources {
  readonly key: string
  /** Whether the value can be made from another value in the cache, without a statement. Such values are evicted first. */
  readonly isDerived?: boolean
  /** Set for values that take much longer to read from the database than from the disk. */
  readonly spill?: SpillForm
}

type Load<T> = (db: Database, abandoned: AbortSignal) => Promise<T>
type LoadEach<K, T> = (missing: readonly K[], db: Database, abandoned: AbortSignal) => Promise<readonly T[]>

/** Values read from the database that are still valid. Answers are assembled from them. */
export interface Cache {
  readonly maxBytes: number
  /** Size of all cached values, in bytes. */
  readonly bytes: number
  /** Number of points in all cached values. */
  readonly points: number
  /** Buffers for answers that are assembled from cached values and are not cached themselves. */
  readonly buffers: BufferPool
  /**
   * Returns the value of a key: synchronously if it is cached, else from a running read that it shares, or from `load`.
   * A load waits for the request's slot in the queue. If the scope's signal is aborted, the call rejects with its
   * reason. When the signals of all callers of a load are aborted, its database statements end and `abandoned` is
   * aborted. The caller names the type of the value: each kind of value has its own keys.
   */
  get<T extends Sized>(key: string, sources: Sources, load: Load<T>, scope: ReadScope): T | Promise<T>
  /** Like `get`, with one load for all missing values. The load returns one value per missing key. */
  getEach<K extends CacheKey, T extends Sized>(
    keys: readonly K[],
    load: LoadEach<K, T>,
    scope: ReadScope,
  ): readonly T[] | Promise<readonly T[]>
  /** Returns the cached value of a key. */
  find<T extends Sized>(key: string): T | undefined
  /** Caches a value that was made from data read after the mark, unless a change event since then affects it. */
  store<T extends Sized>(key: CacheKey, mark: number, value: T): void
  /** Whether it is worth making a derived value to cache it: there is space, or those evicted last had been used. */
  isWorthDeriving(): boolean
  /** Returns a mark. With a mark taken before a read, `store` detects whether the data may have changed since. */
  mark(): number
}

/** Access of a request to the cache. */
export interface CacheReader extends ReadScope {
  readonly cache: Cache
}

/** Estimated memory overhead of an entry, in addition to its bytes. */
const ENTRY_BYTES = 560
/**
 * A value that a statement read is evicted later than a derived value, because reading it takes several times as long
 * per byte. The difference is `READ_BUDGETS` times the budget, in bytes of added values.
 */
const READ_BUDGETS = 2

/** Making a derived value to cache it takes about as long as two uses save. */
const LEAST_USES = 2
/** The uses of evicted derived values are averaged over about this many. */
const AVERAGED_VALUES = 64
/** Up to this share of its budget a cache has space: it hardly evicts anything. */
const SPACIOUS = 0.9
/** While none are worth it, one of this many is made, so that the average follows a change of the requests. */
const TRIED = 16

/**
 * Number of remembered change events. A value read before the oldest of them is not cached, because it may be outdated.
 */
const MAX_CHANGES = 500

/** Whether a change event affects a time range of a dataset. An unknown event affects everything. */
type Concerns = (sources: Sources) => boolean

const ALWAYS = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY }

function toConcerns(change: ChangeEvent | undefined): Concerns {
  if (change === undefined) return () => true
  const { dataset, from = ALWAYS.from, to = ALWAYS.to } = change
  return ({ datasets, range = ALWAYS }) => datasets.includes(dataset) && from < range.to && to >= range.from
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
    holds: (sources: Sources, mark: number) =>
      sources.datasets.every((dataset) => changeFeed.version(dataset) !== undefined) &&
      mark >= forgotten &&
      !changes.slice(mark - forgotten).some((concerns) => concerns(sources)),
  }
}

/**
 * `hit`: the value was cached, or a running read has it. `disk`: it was evicted to the disk. `evicted`: the value is read
 * again, and a cache of twice the size would still have it. `miss`: any other read.
 */
export type CacheResult = 'hit' | 'disk' | 'miss' | 'evicted'

interface Entry {
  readonly key: CacheKey
  readonly value: Sized
  /** Position in the order of eviction: the entry with the lowest number is evicted first. */
  turn: number
  uses: number
}

interface CacheOptions {
  readonly maxBytes: number
  readonly changeFeed: ChangeFeed
  readonly db: Database
  /** Counts requested values. */
  readonly count?: (result: CacheResult, values: number) => void
  /** The file for evicted values. Default: none. */
  readonly spill?: SpillOptions
}

/**
 * The share of the caches' memory for complete responses. The rest is for series and lists: a response is assembled
 * from them in a millisecond, and requests for other ranges or pages use them, too.
 */
const RESPONSES_SHARE = 1 / 8

/** Creates the caches of an API process, which share `maxBytes`: of complete responses, and of the values they are made of. */
export function createCaches<A extends Cacheable, S extends object>(
  options: CacheOptions & ResponseOptions,
): { readonly cache: Cache; readonly responses: ResponseCache<A, S> } {
  const responseBytes = options.maxBytes * RESPONSES_SHARE
  return {
    cache: createCache({ ...options, maxBytes: options.maxBytes - responseBytes }),
    responses: createResponseCache<A, S>({ ...options, maxBytes: responseBytes }),
  }
}

/** A running read, and one of the cache keys that it is for. */
interface Reading {
  readonly key: CacheKey
  readonly call: SharedCall<ReadonlyMap<string, Sized>>
}

/**
 * Creates a cache with a byte budget and least-recently-used eviction; derived values are evicted first. A budget of 0
 * disables the cache. A change event drops only the values of the affected time range. Requests share running reads; a
 * request after a change event starts a new read of the affected values. If change events may have been missed, all
 * values are dropped. Evicted values that have a form for the disk are written to the `spill` file, and dropped there
 * like in memory.
 */
export function createCache(options: CacheOptions): Cache {
  const { maxBytes, changeFeed, db, count = () => {} } = options
  const disk = options.spill && createSpillFile<Sources>(options.spill)
  const toSize = (value: Sized, key: string) => value.size + key.length + ENTRY_BYTES
  /** The keys of evicted values, up to `maxBytes` of these values. */
  const evicted = new LRUCache<string, CacheKey, number>({ maxSize: Math.max(1, maxBytes) })
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
  /** Average uses of evicted derived values. */
  let usesOfEvicted = LEAST_USES
  let rejected = 0
  const toTurn = ({ isDerived = false }: CacheKey) => addedBytes + (isDerived ? 0 : READ_BUDGETS * maxBytes)
  const findOldest = (entries: typeof reads) => {
    const [name = ''] = entries.rkeys()
    return { entries, name, entry: entries.peek(name) }
  }
  const evict = () => {
    const [first, second] = [findOldest(reads), findOldest(derived)]
    const isFirst = (first.entry?.turn ?? Number.POSITIVE_INFINITY) < (second.entry?.turn ?? Number.POSITIVE_INFINITY)
    const { entries, name, entry } = isFirst ? first : second
    entries.delete(name)
    if (entry === undefined) return
    const { key, value, uses } = entry
    const { datasets, range = ALWAYS, spill } = key
    if (key.isDerived) usesOfEvicted += (uses - usesOfEvicted) / AVERAGED_VALUES
    evicted.set(name, key, { size: toSize(value, name) })
    if (spill !== undefined) disk?.put(name, { datasets, range }, spill.toBytes(value))
  }
  const add = (key: CacheKey, value: Sized) => {
    ;(key.isDerived ? derived : reads).set(key.key, { key, value, turn: toTurn(key), uses: 0 })
    addedBytes += toSize(value, key.key)
    while (countBytes() > maxBytes) evict()
  }
  const use = (name: string): Sized | undefined => {
    const entry = reads.get(name) ?? derived.get(name)
    if (entry === undefined) return undefined
    entry.turn = toTurn(entry.key)
    entry.uses += 1
    return entry.value
  }
  const running = new Map<string, Reading>()
  const { mark, holds } = createChanges(changeFeed, (concerns) => {
    for (const entries of [reads, derived])
      for (const [name, { key }] of [...entries.entries()]) if (concerns(key)) entries.delete(name)
    for (const [name, { key }] of [...running]) if (concerns(key)) running.delete(name)
    for (const [name, key] of [...evicted.entries()]) if (concerns(key)) evicted.delete(name)
    disk?.drop(concerns)
  })
  const store: Cache['store'] = (key, since, value) => {
    if (!holds(key, since)) return
    evicted.delete(key.key)
    add(key, value)
  }
  const isOnDisk = ({ key, spill }: CacheKey) => spill !== undefined && disk?.has(key) === true
  /** Reads values from the disk, and loads those that are not there. */
  const readOrLoad = async <K extends CacheKey>(
    missing: readonly K[],
    load: (rest: readonly K[]) => Promise<readonly Sized[]>,
  ): Promise<readonly Sized[]> => {
    const fromDisk = await Promise.all(
      missing.map(async ({ key, spill }) => {
        const bytes = await disk?.read(key)
        return bytes && spill?.fromBytes(bytes)
      }),
    )
    const rest = missing.filter((_, index) => fromDisk[index] === undefined)
    const loaded = rest.length === 0 ? [] : await load(rest)
    const values = new Map(rest.map(({ key }, index) => [key, loaded[index] as Sized]))
    return missing.map(({ key }, index) => fromDisk[index] ?? (values.get(key) as Sized))
  }
  /** Starts a read in a slot of the queue; the caller must wait for it. */
  const start = <K extends CacheKey>(missing: readonly K[], load: LoadEach<K, Sized>, release: Release) => {
    const since = mark()
    const call: Reading['call'] = startSharedCall(async (abandoned) => {
      try {
        const loadAll = (all: readonly K[]) => load(all, withSignal(db, abandoned), abandoned)
        const values = await (missing.some(isOnDisk) ? readOrLoad(missing, loadAll) : loadAll(missing))
        forget()
        const loaded = missing.map((key, index) => [key, values[index] as Sized] as const)
        for (const [key, value] of loaded) store(key, since, value)
        return new Map(loaded.map(([{ key }, value]) => [key, value]))
      } finally {
        release()
      }
    })
    const forget = () => {
      for (const { key } of missing) if (running.get(key)?.call === call) running.delete(key)
    }
    for (const key of missing) running.set(key.key, { key, call })
    // A new request must not join a read that has failed or is being aborted.
    call.abandoned.addEventListener('abort', forget)
    return call
  }
  /** The cached values of all keys; undefined if one is not cached. */
  const findAll = <T extends Sized>(keys: readonly CacheKey[]): T[] | undefined => {
    const values: T[] = []
    for (const { key } of keys) {
      const value = use(key)
      if (value === undefined) return undefined
      values.push(value as T)
    }
    count('hit', values.length)
    return values
  }
  const isMissing = ({ key }: CacheKey) => !running.has(key) && use(key) === undefined
  const readEach = async <K extends CacheKey, T extends Sized>(
    keys: readonly K[],
    load: LoadEach<K, T>,
    { signal, queue }: ReadScope,
  ): Promise<T[]> => {
    signal.throwIfAborted()
    const turn = keys.some(isMissing) ? queue() : undefined
    const release = turn instanceof Promise ? await turn : turn
    // Another request may have read some of them in the meantime.
    const missing = keys.filter(isMissing)
    count('hit', keys.length - missing.length)
    const unspilled = missing.filter((key) => !isOnDisk(key))
    const before = unspilled.filter(({ key }) => evicted.has(key)).length
    count('disk', missing.length - unspilled.length)
    count('evicted', before)
    count('miss', unspilled.length - before)
    if (missing.length === 0) release?.()
    else start(missing, load, release ?? (() => {}))
    const values = new Map<string, Sized>()
    const calls = new Map<string, Reading['call']>()
    for (const { key } of keys) {
      const value = use(key)
      const call = running.get(key)?.call
      if (value !== undefined) values.set(key, value)
      else if (call !== undefined) calls.set(key, call)
    }
    const joined = [...new Set(calls.values())].map(async (call) => [call, await call.join(signal)] as const)
    const results = new Map(await Promise.all(joined))
    // A read covers several keys and may be outdated for some of them, so each key has its own entry.
    for (const [key, call] of calls) values.set(key, results.get(call)?.get(key) as Sized)
    return keys.map(({ key }) => values.get(key) as T)
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
    get: <T extends Sized>(key: string, sources: Sources, load: Load<T>, scope: ReadScope) => {
      const cached = findAll<T>([{ key, ...sources }])?.[0]
      const loadOne = async (_: unknown, bound: Database, abandoned: AbortSignal) => [await load(bound, abandoned)]
      return cached ?? readEach<CacheKey, T>([{ key, ...sources }], loadOne, scope).then(([value]) => value as T)
    },
    getEach: <K extends CacheKey, T extends Sized>(keys: readonly K[], load: LoadEach<K, T>, scope: ReadScope) =>
      findAll<T>(keys) ?? readEach<K, T>(keys, load, scope),
    find: <T extends Sized>(key: string) => use(key) as T | undefined,
    store,
    isWorthDeriving: () => {
      if (countBytes() < SPACIOUS * maxBytes || usesOfEvicted >= LEAST_USES) return true
      rejected = (rejected + 1) % TRIED
      return rejected === 0
    },
  }
}
