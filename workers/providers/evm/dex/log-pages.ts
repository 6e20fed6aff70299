/** The node would not answer for that many blocks: too many of them, too many logs, or too long to find them. */
export const TOO_WIDE = Symbol('too wide')

/** Reads one page; `last` tells that it is a single block, which cannot be made smaller. */
export type ReadPage<T> = (from: number, to: number, last: boolean) => Promise<readonly T[] | typeof TOO_WIDE>

const FIRST_PAGE = 2000
const GROWTH = 1.5

/**
 * Reads the block range from `from` to `to` (both inclusive), oldest first. Nodes do not say how many blocks they
 * accept at once: a page that is too wide is halved until it is accepted, and pages grow again after each success
 * (providers document, section 6). The next call starts with the width that the last one ended with.
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
