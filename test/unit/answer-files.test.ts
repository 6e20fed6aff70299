import { once } from 'node:events'
import type { FileHandle } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFairQueue } from '../../api/admission/fair-queue.ts'
import { createAnswerFiles } from '../../api/serving/answer-files.ts'
import { openUnnamed } from '../../shared/unnamed-file.ts'
import { silent } from '../support/silent.ts'

const meters = { waiting: () => {}, waited: () => {}, rejected: () => {} }
const neverAborted = new AbortController().signal
const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })

/** Counts open files and reads of the source. */
function createWatched(openFile: () => Promise<FileHandle> = openUnnamed) {
  const seen = { open: 0, asked: 0 }
  const opened = new Set<FileHandle>()
  // The cache ends with its process, so nothing closes its last files.
  onTestFinished(async () => void (await Promise.all([...opened].map((file) => file.close()))))
  const files = createAnswerFiles({
    maxBytes: 1_000_000,
    queue: createFairQueue({ slots: 4, maxWaiting: 16, clock: () => 0 }, meters),
    log: silent,
    openFile: async () => {
      const file = await openFile()
      const close = file.close.bind(file)
      seen.open += 1
      opened.add(file)
      file.close = async () => {
        seen.open -= 1
        opened.delete(file)
        await close()
      }
      return file
    },
  })
  const get = (tag: string, text = tag) => {
    const open = async () => {
      seen.asked += 1
      return (async function* () {
        yield Buffer.from(text)
      })()
    }
    return files.get(tag, 'one', open, neverAborted)
  }
  return { seen, get, files }
}

describe('createAnswerFiles', () => {
  it('writes a file once, and serves ranges', async () => {
    const { seen, get } = createWatched()
    const [complete] = await Promise.all([get('a', 'abcdef'), get('a', 'abcdef')])
    expect(complete?.length).toBe(6)
    if (complete === undefined) throw new Error('there is no file')
    expect(String(await buffer(complete.read({ start: 2, end: 4 })))).toBe('cde')
    await get('a')
    expect(seen).toEqual({ open: 1, asked: 1 })
  })

  it('keeps a file for its reader if another file needs its space', async () => {
    const { get, files } = createWatched()
    const text = 'x'.repeat(900_000)
    let go = () => {}
    const pending = new Promise<void>((resolve) => {
      go = resolve
    })
    let isRequested = false
    const open = async () =>
      (async function* () {
        isRequested = true
        await pending
        yield Buffer.from(text)
      })()
    const second = files.get('b', 'one', open, neverAborted)
    await expect.poll(() => isRequested).toBe(true)
    await get('a', text)
    const input = await get('a')
    go()
    for (let step = 0; step < 50; step += 1) await undefined
    if (input === undefined) throw new Error('there is no file')
    expect(String(await buffer(input.read({ start: 0, end: 2 })))).toBe('xxx')
    expect(await second).toBeUndefined()
  })

  it('keeps a file for other clients if one disconnects', async () => {
    const { seen, get } = createWatched()
    const text = 'x'.repeat(900_000)
    const complete = async () => (await get('a', text)) ?? Promise.reject(new Error('there is no file'))
    const range = { start: 0, end: text.length - 1 }
    const concurrent = (await complete()).read(range)
    const disconnecting = (await complete()).read(range)
    await once(disconnecting, 'readable')
    disconnecting.destroy()
    await once(disconnecting, 'close')
    expect(String(await buffer(concurrent))).toBe(text)
    expect(String(await buffer((await complete()).read(range)))).toBe(text)
    expect(seen).toEqual({ open: 1, asked: 1 })
  })

  it('returns undefined without reading the source if no file can be created', async () => {
    const { seen, get } = createWatched(() => Promise.reject(full))
    expect(await get('a')).toBeUndefined()
    expect(seen).toEqual({ open: 0, asked: 0 })
  })

  it('returns undefined on a full disk, and frees space and file', async () => {
    let isFull = true
    const { seen, get } = createWatched(async () => {
      const file = await openUnnamed()
      if (isFull) file.write = () => Promise.reject(full)
      return file
    })
    for (let n = 0; n < 3; n += 1) expect(await get('a', 'x'.repeat(900_000))).toBeUndefined()
    expect(seen.open).toBe(0)
    isFull = false
    expect((await get('a', 'x'.repeat(900_000)))?.length).toBe(900_000)
  })

  it('throws the error of the source, and leaves no file open', async () => {
    const { seen, files } = createWatched()
    const failing = files.get('a', 'one', () => Promise.reject(new Error('ClickHouse is away')), neverAborted)
    await expect(failing).rejects.toThrow('ClickHouse is away')
    expect(seen.open).toBe(0)
  })

  it('evicts the least recently used file over the limit', async () => {
    const { seen, get } = createWatched()
    for (let n = 0; n < 256; n += 1) {
      const stream = (await get(`${n}`))?.read({ start: 0, end: 0 })
      if (stream !== undefined) await Promise.all([once(stream, 'close'), buffer(stream)])
    }
    await get('0')
    await get('one more')
    expect(seen).toEqual({ open: 256, asked: 257 })
    await get('0')
    expect(seen.asked).toBe(257)
    await get('1')
    expect(seen.asked).toBe(258)
  })
})
