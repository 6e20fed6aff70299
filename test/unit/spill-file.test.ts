import type { FileHandle } from 'node:fs/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type CacheKey, type CacheResult, createCache, type Sized } from '../../api/cache/cache.ts'
import { createSpillFile } from '../../api/cache/spill-file.ts'
import { unqueued } from '../../api/single-flight/single-flight.ts'
import type { Database } from '../../shared/store/store.ts'
import { openUnnamed } from '../../shared/unnamed-file.ts'
import { createHandFeed } from '../support/api.ts'
import { silent } from '../support/silent.ts'

const MIB = 1024 * 1024
const LEAST_BYTES = 16 * MIB

const files: FileHandle[] = []
const openFile = async () => {
  const file = await openUnnamed()
  files.push(file)
  return file
}
afterEach(async () => {
  for (const file of files.splice(0)) await file.close()
})

const toSources = (from = 0, to = 10) => ({ datasets: ['prices'], range: { from, to } })
/** Bytes that tell the value from any other. */
const toBytes = (number: number, length: number) => Buffer.alloc(length, `value ${number};`)
/** Resolves when all values are written. */
const isWritten = async () => {
  for (let turn = 0; turn < 3; turn++) await files[0]?.datasync()
}

describe('a file of evicted values', () => {
  it('has the last values, as they were written', async () => {
    const file = createSpillFile<ReturnType<typeof toSources>>({ maxBytes: LEAST_BYTES, openFile, log: silent })
    // Three laps of the file, in values of different lengths.
    const lengthOf = (number: number) => MIB - 1000 * (number % 7)
    for (let number = 0; number < 50; number++) {
      file.put(`${number}`, toSources(), toBytes(number, lengthOf(number)))
      expect((await file.read(`${number}`))?.equals(toBytes(number, lengthOf(number)))).toBe(true)
      await isWritten()
      await vi.waitFor(() => expect(files).toHaveLength(1))
    }
    let bytes = 0
    for (let number = 0; number < 50; number++) {
      const read = await file.read(`${number}`)
      expect(read !== undefined).toBe(file.has(`${number}`))
      if (read === undefined) continue
      bytes += read.length
      expect(read.equals(toBytes(number, lengthOf(number)))).toBe(true)
    }
    expect(file.has('49')).toBe(true)
    expect(bytes).toBeGreaterThan(LEAST_BYTES - 3 * MIB)
    expect(bytes).toBeLessThanOrEqual(LEAST_BYTES)
  })

  it('has a limited number of small values', async () => {
    const file = createSpillFile<ReturnType<typeof toSources>>({ maxBytes: LEAST_BYTES, openFile, log: silent })
    for (let number = 0; number < 10_000; number++) file.put(`${number}`, toSources(), toBytes(number, 10))
    const there = Array.from({ length: 10_000 }, (_, number) => number).filter((number) => file.has(`${number}`))
    expect(there).toEqual(Array.from({ length: 4096 }, (_, number) => 10_000 - 4096 + number))
    await vi.waitFor(() => expect(files).toHaveLength(1))
  })

  it('drops values of changed data, also during their reading', async () => {
    const file = createSpillFile<ReturnType<typeof toSources>>({ maxBytes: LEAST_BYTES, openFile, log: silent })
    for (const [number, key] of ['a', 'b', 'c'].entries())
      file.put(key, toSources(10 * number, 10 * number + 10), toBytes(number, 1000))
    await vi.waitFor(() => expect(files).toHaveLength(1))
    await isWritten()
    const reading = file.read('b')
    file.drop(({ range }) => range.from <= 15 && range.to > 5)
    expect([file.has('a'), file.has('b'), file.has('c')]).toEqual([false, false, true])
    expect(await reading).toBeUndefined()
    expect((await file.read('c'))?.equals(toBytes(2, 1000))).toBe(true)
  })

  it('keeps nothing when the disk fails, and logs it once', async () => {
    const warn = vi.fn()
    const log = { ...silent, warn } as unknown as typeof silent
    const openFailing = () => Promise.reject(new Error('no space left on device'))
    const file = createSpillFile<ReturnType<typeof toSources>>({ maxBytes: LEAST_BYTES, openFile: openFailing, log })
    for (const key of ['a', 'b']) file.put(key, toSources(), toBytes(1, 1000))
    await vi.waitFor(() => expect(warn).toHaveBeenCalled())
    expect(await file.read('a')).toBeUndefined()
    file.put('c', toSources(), toBytes(1, 1000))
    expect(file.has('c')).toBe(false)
    expect(warn).toHaveBeenCalledTimes(1)
  })

  it('returns no bytes that the disk has changed, logs it, and frees its space', async () => {
    const warn = vi.fn()
    const log = { ...silent, warn } as unknown as typeof silent
    const file = createSpillFile<ReturnType<typeof toSources>>({ maxBytes: LEAST_BYTES, openFile, log })
    for (const key of ['a', 'b']) file.put(key, toSources(), toBytes(1, 1000))
    await vi.waitFor(() => expect(files).toHaveLength(1))
    await isWritten()
    expect((await file.read('b'))?.equals(toBytes(1, 1000))).toBe(true)
    await files[0]?.write(Buffer.from('x'), 0, 1, 500)
    expect(await file.read('a')).toBeUndefined()
    expect(file.has('b')).toBe(false)
    expect(warn).toHaveBeenCalledTimes(1)
    await vi.waitFor(() => expect(files[0]?.fd).toBe(-1))
  })

  it('is not opened if it may have too few bytes', () => {
    const file = createSpillFile<ReturnType<typeof toSources>>({ maxBytes: LEAST_BYTES - 1, openFile, log: silent })
    file.put('a', toSources(), toBytes(1, 1000))
    expect(file.has('a')).toBe(false)
    expect(files).toHaveLength(0)
  })
})

interface Text extends Sized {
  readonly text: string
}
const toText = (text: string): Text => ({ text, size: 1000 })
const spill = {
  toBytes: ({ text }: Text) => Buffer.from(text),
  fromBytes: (bytes: Buffer) => toText(String(bytes)),
}

/** A cache for about three values, of which evicted ones are on the disk. */
function setUp() {
  const changeFeed = createHandFeed()
  const counts: Record<CacheResult, number> = { hit: 0, disk: 0, miss: 0, evicted: 0 }
  const cache = createCache({
    maxBytes: 5000,
    changeFeed,
    db: {} as Database,
    count: (result, values) => {
      counts[result] += values
    },
    spill: { maxBytes: LEAST_BYTES, openFile, log: silent },
  })
  const loaded: string[] = []
  const scope = unqueued(new AbortController().signal)
  const read = async (keys: readonly string[]) => {
    const load = async (missing: readonly CacheKey[]) => {
      loaded.push(missing.map(({ key }) => key).join())
      return missing.map(({ key }) => toText(`${key} ${loaded.length}`))
    }
    const all = keys.map((key) => ({ key, ...toSources(), spill: key.startsWith('plain') ? undefined : spill }))
    const values = await cache.getEach(all as CacheKey[], load, scope)
    return values.map((value) => (value as Text).text)
  }
  return { changeFeed, counts, loaded, read }
}

describe('createCache with a file for evicted values', () => {
  const many = ['b', 'c', 'd', 'e', 'f']

  it('reads evicted values from the file, and loads only those that are not there', async () => {
    const { counts, loaded, read } = setUp()
    await read(['a'])
    for (const key of [...many, 'plain']) await read([key])
    for (const key of many) await read([key])
    loaded.length = 0
    expect(await read(['a', 'new', 'plain'])).toEqual(['a 1', 'new 1', 'plain 1'])
    expect(loaded).toEqual(['new,plain'])
    expect(counts.disk).toBeGreaterThan(0)
    expect(counts.evicted).toBe(1)
  })

  it('does not return a value that changed since it was written', async () => {
    const { changeFeed, loaded, read } = setUp()
    await read(['a'])
    for (const key of many) await read([key])
    changeFeed.commit('prices', { from: 5, to: 5 })
    loaded.length = 0
    expect(await read(['a'])).toEqual(['a 1'])
    expect(loaded).toEqual(['a'])
  })
})
