/**
 * Memory for answers that are sent once and not kept. Used again as soon as they are sent, it stays in the processor's
 * caches: writing 70 kB into memory that is new each time takes ten times as long, and costs collecting it.
 */
export interface BodyRoom {
  /** A buffer of so many bytes, with anything in it. */
  take(bytes: number): Buffer
  /** Says that nobody reads a buffer any more. One that was not taken here, or was given back, is left alone. */
  giveBack(body: Buffer): void
}

/** Slabs of memory are multiples of this. */
const STEP_BYTES = 16 * 1024
/** Smaller bodies come from Node's own pool at no cost, larger ones take longer to write than to find room for. */
const LEAST_BYTES = 4 * 1024
const MOST_BYTES = 2 * 1024 * 1024
/** What waits to be taken again, at most. */
const MOST_FREE_BYTES = 16 * 1024 * 1024

export function createBodyRoom(): BodyRoom {
  /** By size, the one given back last at the end. */
  const free = new Map<number, ArrayBufferLike[]>()
  // What is never given back, such as what is kept after all, is collected with its body.
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
    giveBack: ({ buffer }) => {
      if (!lent.delete(buffer) || freeBytes + buffer.byteLength > MOST_FREE_BYTES) return
      freeBytes += buffer.byteLength
      const alike = free.get(buffer.byteLength)
      if (alike === undefined) free.set(buffer.byteLength, [buffer])
      else alike.push(buffer)
    },
  }
}
