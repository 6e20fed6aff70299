import { describe, expect, it } from 'vitest'
import { createBufferPool } from '../../api/cache/buffer-pool.ts'

const BYTES = 70_000

describe('createBufferPool', () => {
  it('reuses returned memory, for one body at a time', () => {
    const room = createBufferPool()
    const first = room.take(BYTES)
    const second = room.take(BYTES)
    expect(second.buffer).not.toBe(first.buffer)
    room.release(first)
    const third = room.take(BYTES + 1)
    expect([third.buffer === first.buffer, third.length]).toEqual([true, BYTES + 1])
    expect(room.take(BYTES).buffer).not.toBe(first.buffer)
  })

  it('accepts each of its buffers back only once, and no other buffers', () => {
    const room = createBufferPool()
    const body = room.take(BYTES)
    room.release(body.subarray(10, 20))
    room.release(body)
    expect(room.take(BYTES).buffer).toBe(body.buffer)
    expect(room.take(BYTES).buffer).not.toBe(body.buffer)
    const foreign = Buffer.alloc(BYTES)
    room.release(foreign)
    expect(room.take(BYTES).buffer).not.toBe(foreign.buffer)
  })

  it('keeps at most 16 MB', () => {
    const room = createBufferPool()
    const lent = Array.from({ length: 40 }, () => room.take(2 ** 20))
    for (const body of lent) room.release(body)
    const repeat = new Set(Array.from({ length: 40 }, () => room.take(2 ** 20).buffer))
    expect(lent.filter(({ buffer }) => repeat.has(buffer))).toHaveLength(16)
  })

  it.each([0, 10, 3 * 2 ** 20])('does not pool bodies of %i bytes', (bytes) => {
    const room = createBufferPool()
    const body = room.take(bytes)
    expect(body).toHaveLength(bytes)
    room.release(body)
    expect(room.take(70_000).buffer).not.toBe(body.buffer)
  })
})
