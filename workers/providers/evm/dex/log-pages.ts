/** The node would not answer for that many blocks: too many of them, too many logs, or too long to find them. */
export const TOO_WIDE = Symbol('too wide')

/** Reads one page; `last` tells that it is a single block, which cannot be made smaller. */
export type ReadPage<T> = (from: number, to: number, last: boolean) => Promise<readonly T[] | typeof TOO_WIDE>

const FIRST_PAGE = 2000
const GROWTH = 1.5

/**
 * Reads blocks `from` to `to` (both inclusive), oldest first. No node tells how many blocks it accepts at once: a page that
 * is too wide is halved until one is accepted, and pages grow again after each success (providers document, section 6).
 * The width goes on from one call to the next.
 */
export function createPager(): <T>(from: number, to: number, read: ReadPage<T>) => Promise<T[]> {
  let width = FIRST_PAGE
  return async (from, to, read) => {
    const found = []
    for (let at = from; at <= to; ) {
      const end = Math.min(to, at + width - 1)
      const page = await read(at, end, end === at)
      if (page === TOO_WIDE) {
        width = Math.max(1, Math.floor((end - at + 1) / 2))
        continue
      }
      // One by one: a page may hold more logs than a call can have arguments.
      for (const each of page) found.push(each)
      at = end + 1
      width = Math.ceil(width * GROWTH)
    }
    return found
  }
}
