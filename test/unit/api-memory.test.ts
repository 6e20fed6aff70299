import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type CacheKey, type CacheResult, createCache, type Sized } from '../../api/cache/cache.ts'
import { unqueued } from '../../api/single-flight/single-flight.ts'
import type { Database } from '../../shared/store/store.ts'
import { createHandFeed } from '../support/api.ts'

interface Text extends Sized {
  readonly text: string
}

const toText = (text: string): Text => ({ text, size: text.length })

function setUp(maxBytes = 100_000) {
  const changeFeed = createHandFeed()
  let onSignal: (signal: AbortSignal) => void = () => {}
  // Statements never finish on their own, so only the reads of a test complete.
  const db = {
    rows: ({ signal }: { signal: AbortSignal }) => {
      onSignal(signal)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  } as unknown as Database
  const counts: Record<CacheResult, number> = { hit: 0, disk: 0, miss: 0, evicted: 0 }
  const count = (result: CacheResult, values: number) => {
    counts[result] += values
  }
  const cache = createCache({ maxBytes, changeFeed, db, count })
  const place = (key: string, from: number, to: number): CacheKey => ({
    key,
    datasets: ['prices'],
    range: { from, to },
  })
  const keep = (key: string, from: number, to: number, mark = cache.mark()) =>
    cache.store(place(key, from, to), mark, toText(key))
  const onStatement = (listener: typeof onSignal) => {
    onSignal = listener
  }
  return { changeFeed, cache, counts, keep, place, onStatement, get: (key: string) => cache.find<Text>(key)?.text }
}

describe('createCache', () => {
  it('drops only entries in the time range of a change event', () => {
    const { changeFeed, get, keep } = setUp()
    keep('a', 0, 10)
    keep('b', 10, 20)
    keep('c', 20, 30)
    changeFeed.commit('holders', { from: 0, to: 30 })
    changeFeed.commit('prices', { from: 10, to: 19 })
    expect([get('a'), get('b'), get('c')]).toEqual(['a', undefined, 'c'])
    changeFeed.commit('prices', { from: 20, to: 20 })
    expect(get('c')).toBeUndefined()
    changeFeed.commit('prices')
    expect(get('a')).toBeUndefined()
  })

  it('drops entries of several datasets at a change event of any of them', () => {
    const { changeFeed, cache, get } = setUp()
    const ofTwo = (key: string): CacheKey => ({ key, datasets: ['prices', 'holders'], range: { from: 0, to: 10 } })
    for (const dataset of ['prices', 'holders']) {
      cache.store(ofTwo('a'), cache.mark(), toText('a'))
      changeFeed.commit('daos')
      expect(get('a')).toBe('a')
      changeFeed.commit(dataset)
      expect(get('a')).toBeUndefined()
    }
    const mark = cache.mark()
    changeFeed.commit('holders')
    cache.store(ofTwo('b'), mark, toText('b'))
    expect(get('b')).toBeUndefined()
  })

  it('does not cache data that may have changed during the read', () => {
    const { changeFeed, cache, get, keep } = setUp()
    const mark = cache.mark()
    changeFeed.commit('prices', { from: 15, to: 15 })
    keep('a', 0, 10, mark)
    keep('b', 10, 20, mark)
    expect([get('a'), get('b')]).toEqual(['a', undefined])
    const old = cache.mark()
    for (let change = 0; change < 1000; change++) changeFeed.commit('holders')
    keep('c', 20, 30, old)
    expect(get('c')).toBeUndefined()
    keep('c', 20, 30)
    expect(get('c')).toBeDefined()
  })

  it('drops everything when the change stream is interrupted', () => {
    const { changeFeed, get, keep } = setUp()
    keep('a', 0, 10)
    changeFeed.unavailable(true)
    expect(get('a')).toBeUndefined()
    keep('a', 0, 10)
    expect(get('a')).toBeUndefined()
  })

  it('stays within its byte limit', () => {
    const { get, keep } = setUp(2000)
    for (const key of ['a', 'b', 'c', 'd']) keep(key, 0, 10)
    expect(get('a')).toBeUndefined()
    expect(get('d')).toBeDefined()
    const none = setUp(0)
    none.keep('a', 0, 10)
    expect(none.get('a')).toBeUndefined()
  })

  it('evicts derived values first, and others when they have not been used for longer', () => {
    const { cache, get, keep, place } = setUp(6000)
    const derive = (key: string) => cache.store({ ...place(key, 0, 10), isDerived: true }, cache.mark(), toText(key))
    keep('read', 0, 10)
    keep('used', 0, 10)
    derive('derived')
    const names = Array.from({ length: 50 }, (_, number) => `derived ${number}`)
    const isThere = () => [get('used'), cache.bytes <= 6000]
    for (const name of names.slice(0, 15)) {
      derive(name)
      expect(isThere()).toEqual(['used', true])
    }
    expect([get('derived'), get('derived 3'), get('derived 14')]).toEqual([undefined, undefined, 'derived 14'])
    for (const name of names) {
      derive(name)
      expect(isThere()).toEqual(['used', true])
    }
    expect(get('read')).toBeUndefined()
  })

  it('derives values while there is space, and then only if evicted ones had been used', () => {
    const { cache, get, place } = setUp(6000)
    let derived = 0
    const derive = (uses: number) => {
      derived += 1
      cache.store({ ...place(`derived ${derived}`, 0, 10), isDerived: true }, cache.mark(), toText('derived'))
      for (let use = 0; use < uses; use++) expect(get(`derived ${derived}`)).toBe('derived')
    }
    const countWorth = () =>
      Array.from({ length: 160 }, () => cache.isWorthDeriving()).filter((isWorth) => isWorth).length
    expect(countWorth()).toBe(160)
    for (let count = 0; count < 20; count++) derive(3)
    expect(countWorth()).toBe(160)
    for (let count = 0; count < 200; count++) derive(0)
    // A few are tried.
    expect(countWorth()).toBe(10)
    for (let count = 0; count < 200; count++) derive(3)
    expect(countWorth()).toBe(160)
  })

  it('counts hits, misses, and evicted values that a larger cache would still have', async () => {
    const { changeFeed, cache, counts, keep, place } = setUp(2000)
    const read = (key: string) =>
      cache.getEach([place(key, 0, 10)], async () => [toText(key)], unqueued(new AbortController().signal))
    for (const key of ['a', 'b', 'c', 'd']) keep(key, 0, 10)
    expect([cache.find('d'), cache.find('a')]).toEqual([toText('d'), undefined])
    expect(counts).toEqual({ hit: 0, disk: 0, miss: 0, evicted: 0 })
    expect(read('d')).toEqual([toText('d')])
    await read('d')
    await read('a')
    await read('new')
    expect(counts).toEqual({ hit: 2, disk: 0, miss: 1, evicted: 1 })
    // A change event drops it from any cache.
    changeFeed.commit('prices')
    await read('b')
    expect(counts).toEqual({ hit: 2, disk: 0, miss: 2, evicted: 1 })
  })
})

/** A read that completes when the test calls `end`. */
function createReading() {
  const requests: string[][] = []
  const ends: (() => void)[] = []
  const read = (missing: readonly CacheKey[]) =>
    new Promise<Text[]>((resolve) => {
      const turn = requests.push(missing.map(({ key }) => key))
      ends.push(() => resolve(missing.map(({ key }) => toText(`${key}${turn}`))))
    })
  return { requests, read, end: (turn: number) => ends[turn - 1]?.() }
}

const texts = async (asking: readonly Text[] | Promise<readonly Text[]>) => (await asking).map(({ text }) => text)

describe('getEach', () => {
  const places = ({ place }: ReturnType<typeof setUp>) => ({
    a: place('a', 0, 10),
    b: place('b', 10, 20),
    c: place('c', 20, 30),
  })

  it('reads overlapping chunks once for concurrent requests', async () => {
    const setup = setUp()
    const { a, b, c } = places(setup)
    const { requests, read, end } = createReading()
    const neverAborted = unqueued(new AbortController().signal)
    const all = [[a, b], [a, b], [b, c], [c]].map((expected) => setup.cache.getEach(expected, read, neverAborted))
    expect(requests).toEqual([['a', 'b'], ['c']])
    end(2)
    end(1)
    expect(await Promise.all(all.map(texts))).toEqual([['a1', 'b1'], ['a1', 'b1'], ['b1', 'c2'], ['c2']])
    expect(await texts(setup.cache.getEach([c, a], read, neverAborted))).toEqual(['c2', 'a1'])
    expect(requests).toHaveLength(2)
  })

  it('reads again for requests after a change event, and caches the new value', async () => {
    const setup = setUp()
    const { a, b } = places(setup)
    const { requests, read, end } = createReading()
    const neverAborted = unqueued(new AbortController().signal)
    const before = setup.cache.getEach([a, b], read, neverAborted)
    setup.changeFeed.commit('prices', { from: 12, to: 12 })
    const after = setup.cache.getEach([a, b], read, neverAborted)
    expect(requests).toEqual([['a', 'b'], ['b']])
    end(2)
    end(1)
    expect([await texts(before), await texts(after)]).toEqual([
      ['a1', 'b1'],
      ['a1', 'b2'],
    ])
    expect([setup.get('a'), setup.get('b')]).toEqual(['a1', 'b2'])
  })

  it('aborts the read when all waiting clients have disconnected, and not before', async () => {
    const setup = setUp()
    const { a } = places(setup)
    const [one, another] = [new AbortController(), new AbortController()]
    const remaining = new Error('left')
    const signals: AbortSignal[] = []
    const read = (_: readonly CacheKey[], bound: Database) =>
      bound.rows({ name: 'never', sql: '', schema: z.never() }) as Promise<Text[]>
    setup.onStatement((signal) => signals.push(signal))
    const first = setup.cache.getEach([a], read, unqueued(one.signal))
    const second = setup.cache.getEach([a], read, unqueued(another.signal))
    one.abort(remaining)
    await expect(first).rejects.toBe(remaining)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
    another.abort(remaining)
    await expect(second).rejects.toBe(remaining)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  })

  it('reads again after a failure', async () => {
    const setup = setUp()
    const { a } = places(setup)
    const neverAborted = unqueued(new AbortController().signal)
    const fails = async (): Promise<Text[]> => {
      throw new Error('no database')
    }
    await expect(setup.cache.getEach([a], fails, neverAborted)).rejects.toThrow('no database')
    expect(await texts(setup.cache.getEach([a], async () => [toText('a')], neverAborted))).toEqual(['a'])
  })

  it('waits for a slot only if a value is missing, and holds it until the read has ended', async () => {
    const { cache, keep, place } = setUp()
    const { requests, read, end } = createReading()
    let [waiting, released] = [0, 0]
    let admit = () => {}
    const admitted = new Promise<void>((resolve) => {
      admit = resolve
    })
    const queue = async () => {
      waiting += 1
      await admitted
      return () => {
        released += 1
      }
    }
    const request = () => ({ ...unqueued(new AbortController().signal), queue })
    const [a, b] = [place('a', 0, 10), place('b', 10, 20)]
    keep('a', 0, 10)
    expect([cache.getEach([a], read, request()), waiting]).toEqual([[toText('a')], 0])
    const all = [cache.getEach([a, b], read, request()), cache.getEach([b], read, request())]
    expect([requests, waiting]).toEqual([[], 2])
    admit()
    await vi.waitFor(() => expect(requests).toEqual([['b']]))
    // The second request joins the read of the first one.
    expect(released).toBe(1)
    end(1)
    expect(await Promise.all(all.map(texts))).toEqual([['a', 'b1'], ['b1']])
    expect(released).toBe(2)
  })

  it('does not start a read if the queue rejects the request', async () => {
    const { cache, place } = setUp()
    const { requests, read } = createReading()
    const queue = () => Promise.reject(new Error('too many'))
    const rejected = { ...unqueued(new AbortController().signal), queue }
    await expect(cache.getEach([place('a', 0, 10)], read, rejected)).rejects.toThrow('too many')
    expect(requests).toEqual([])
  })
})
