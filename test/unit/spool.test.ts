import { createHash, randomBytes } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { createSpools } from '../../api/serving/spool.ts'
import { silent } from '../support/silent.ts'

const MIB = 1024 * 1024
const CHUNK = 64 * 1024

/** A source that counts the bytes read from it. */
function createSource(bytes: number, failure?: Error) {
  const full = randomBytes(bytes)
  const state = { read: 0 }
  const source = async function* () {
    for (let at = 0; at < bytes; at += CHUNK) {
      state.read += CHUNK
      yield full.subarray(at, at + CHUNK)
    }
    if (failure !== undefined) throw failure
  }
  return { full, state, source: source() }
}

function createCallbacks() {
  const counts = { blocked: 0, ended: 0 }
  return { counts, blocked: () => void counts.blocked++, ended: () => void counts.ended++ }
}

async function readAll(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const read: Buffer[] = []
  for await (const chunk of bytes) read.push(chunk)
  return Buffer.concat(read)
}

const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

describe('createSpools', () => {
  it('reads a source to its end while the client has read one chunk, and loses nothing', async () => {
    const spools = createSpools({ maxBytes: 64 * MIB, log: silent })
    const { full, source } = createSource(20 * MIB)
    const { counts, ...callbacks } = createCallbacks()
    const through = spools.through(source, callbacks)
    const { value: first } = (await through.next()) as { value: Buffer }
    await expect.poll(() => counts).toEqual({ blocked: 0, ended: 1 })
    const rest = await readAll(through)
    expect(hash(Buffer.concat([first, rest]))).toBe(hash(full))
  })

  it("reads at the client's pace when the disk limit is reached, then continues", async () => {
    const spools = createSpools({ maxBytes: 2 * MIB, log: silent })
    const { full, source, state } = createSource(20 * MIB)
    const { counts, ...callbacks } = createCallbacks()
    const through = spools.through(source, callbacks)
    const { value: first } = (await through.next()) as { value: Buffer }
    await expect.poll(() => counts.blocked).toBe(1)
    expect(counts.ended).toBe(0)
    expect(state.read).toBeLessThan(3 * MIB)
    const rest = await readAll(through)
    expect(hash(Buffer.concat([first, rest]))).toBe(hash(full))
    expect(counts).toEqual({ blocked: 1, ended: 1 })
  })

  it('continues from memory if the disk fails', async () => {
    // Writes wait until the test reports a full disk.
    const failing: (() => void)[] = []
    const write = () => new Promise((_, reject) => failing.push(() => reject(new Error('ENOSPC'))))
    const open = async () => ({ write, close: async () => {} }) as unknown as FileHandle
    const source = (async function* () {
      for (let n = 0; n < 40; n += 1) yield Buffer.alloc(CHUNK, n)
    })()
    const spools = createSpools({ maxBytes: 64 * MIB, log: silent, open })
    const through = spools.through(source, { blocked: () => {}, ended: () => {} })
    const read: Buffer[] = []
    const take = async () => read.push((await through.next()).value as Buffer)
    await take()
    await expect.poll(() => failing.length).toBe(1)
    // The client reads all buffered chunks and waits for more before the write fails.
    for (let n = 0; n < 4; n += 1) await take()
    const more = take()
    failing.pop()?.()
    await more
    for await (const bytes of through) read.push(bytes)
    expect(read.map((bytes) => [bytes[0], bytes.length])).toEqual(Array.from({ length: 40 }, (_, n) => [n, CHUNK]))
  })

  it('frees its disk space, also if the client disconnects early', async () => {
    const spools = createSpools({ maxBytes: 8 * MIB, log: silent })
    for (let round = 0; round < 4; round += 1) {
      const { source } = createSource(6 * MIB)
      const { counts, ...callbacks } = createCallbacks()
      const through = spools.through(source, callbacks)
      await through.next()
      await expect.poll(() => counts).toEqual({ blocked: 0, ended: 1 })
      await through.return(undefined)
      await new Promise((resolve) => setImmediate(resolve))
    }
  })

  it('throws the error of the source after all bytes before it', async () => {
    const spools = createSpools({ maxBytes: 8 * MIB, log: silent })
    const { full, source } = createSource(4 * MIB, new Error('broken off'))
    const { counts, ...callbacks } = createCallbacks()
    const through = spools.through(source, callbacks)
    const read: Buffer[] = [((await through.next()) as { value: Buffer }).value]
    await expect.poll(() => counts.ended).toBe(1)
    const reading = (async () => {
      for await (const bytes of through) read.push(bytes)
    })()
    await expect(reading).rejects.toThrow('broken off')
    expect(hash(Buffer.concat(read))).toBe(hash(full))
  })

  it('needs no disk for a fast client', async () => {
    const spools = createSpools({ maxBytes: 0, log: silent })
    const { full, source } = createSource(4 * MIB)
    const { counts, ...callbacks } = createCallbacks()
    expect(hash(await readAll(spools.through(source, callbacks)))).toBe(hash(full))
    expect(counts).toEqual({ blocked: 0, ended: 1 })
  })
})
