import { once } from 'node:events'
import type { FileHandle } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { createFairQueue } from '../../api/admission/fair-queue.ts'
import { openUnnamed } from '../../api/serving/spool.ts'
import { createAnswerFiles } from '../../api/serving/whole-files.ts'
import { silent } from '../support/silent.ts'

const meters = { waiting: () => {}, waited: () => {}, rejected: () => {} }
const stays = new AbortController().signal
const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })

/** Counts open files and reads of the source. */
function createWatched(openFile: () => Promise<FileHandle> = openUnnamed) {
  const seen = { open: 0, asked: 0 }
  const files = createAnswerFiles({
    maxBytes: 1_000_000,
    queue: createFairQueue({ slots: 4, maxWaiting: 16, clock: () => 0 }, meters),
    log: silent,
    openFile: async () => {
      const file = await openFile()
      const close = file.close.bind(file)
      seen.open += 1
      file.close = async () => {
        seen.open -= 1
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
    return files.get(tag, 'one', open, stays)
  }
  return { seen, get, files }
}

describe('createWholeFiles', () => {
  it('writes a file once, and serves ranges', async () => {
    const { seen, get } = createWatched()
    const [whole] = await Promise.all([get('a', 'abcdef'), get('a', 'abcdef')])
    expect(whole?.length).toBe(6)
    if (whole === undefined) throw new Error('there is no file')
    expect(String(await buffer(whole.read({ start: 2, end: 4 })))).toBe('cde')
    await get('a')
    expect(seen).toEqual({ open: 1, asked: 1 })
  })

  it('keeps a file for its reader if another file needs its space', async () => {
    const { get, files } = createWatched()
    const text = 'x'.repeat(900_000)
    let go = () => {}
    const going = new Promise<void>((resolve) => {
      go = resolve
    })
    let isAsked = false
    const open = async () =>
      (async function* () {
        isAsked = true
        await going
        yield Buffer.from(text)
      })()
    const other = files.get('b', 'one', open, stays)
    await expect.poll(() => isAsked).toBe(true)
    await get('a', text)
    const given = await get('a')
    go()
    for (let step = 0; step < 50; step += 1) await undefined
    if (given === undefined) throw new Error('there is no file')
    expect(String(await buffer(given.read({ start: 0, end: 2 })))).toBe('xxx')
    expect(await other).toBeUndefined()
  })

  it('keeps a file for other clients if one disconnects', async () => {
    const { seen, get } = createWatched()
    const text = 'x'.repeat(900_000)
    const whole = async () => (await get('a', text)) ?? Promise.reject(new Error('there is no file'))
    const range = { start: 0, end: text.length - 1 }
    const beside = (await whole()).read(range)
    const leaving = (await whole()).read(range)
    await once(leaving, 'readable')
    leaving.destroy()
    await once(leaving, 'close')
    expect(String(await buffer(beside))).toBe(text)
    expect(String(await buffer((await whole()).read(range)))).toBe(text)
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
    const failing = files.get('a', 'one', () => Promise.reject(new Error('ClickHouse is away')), stays)
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
