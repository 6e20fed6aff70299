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
