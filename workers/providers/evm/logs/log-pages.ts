import { DataError } from '../../../../shared/errors.ts'

/**
 * The node would not answer for that many blocks: too many of them, too many logs, or too long to find them. Some say how
 * many it ever accepts (`most`), or how many of these blocks (`width`).
 */
export class TooWide {
  readonly most: number | undefined
  readonly width: number | undefined

  constructor({ most, width }: { readonly most?: number; readonly width?: number } = {}) {
    this.most = most
    this.width = width
  }
}

/** What stands before the node may have given up on a page that takes too long. Who says when to come again is merely busy. */
const isGivenUp = (error: unknown): boolean =>
  error instanceof DataError && error.retryAfterMs === undefined && (error.status ?? 0) >= 500

/** Reads one page; `last` tells that it is a single block, which cannot be made smaller. */
export type ReadPage<T> = (from: number, to: number, last: boolean) => Promise<readonly T[] | TooWide>

/** What a node answered for the blocks from where it was asked to `end`, inclusive. */
export interface Page<T> {
  readonly found: readonly T[]
  readonly end: number
}

/** Reads the blocks of one node in pages that it accepts. */
export interface Pager {
  /** The page that begins with `from` and ends at or before `to`, both inclusive. */
  read<T>(from: number, to: number, readPage: ReadPage<T>): Promise<Page<T>>
  /** The most blocks that the node said it ever accepts, infinite as long as it has not said so. */
  ceiling(): number
}

const FIRST_PAGE = 2000
const GROWTH = 1.5
/** How many pages a learnt limit holds before a wider page is tried again: nodes change their limits. */
const LIMIT_PAGES = 100
/** No node is known that refuses fewer logs than this: a page with less was refused for its width. */
const FEWEST_REFUSED_LOGS = 1000
/**
 * So many refusals without an accepted page of that width are a limit, whatever the blocks hold. It may be a busy time
 * only, so it holds for few pages at first, and longer each time that it is found again.
 */
const REFUSALS_OF_LIMIT = 3
const BUSY_PAGES = 10
/** The limit is looked for as long as this share of the width could still be won. */
const WORTH_TRYING = 1 / 8

/** The blocks of the newest refused page, and how many logs were found in them since. */
interface RefusedSpan {
  readonly from: number
  readonly end: number
  logs: number
}

/** The narrowest page that was refused since a page of that width was accepted, and how often pages were refused. */
const NO_REFUSALS = { width: Number.POSITIVE_INFINITY, times: 0 }

/**
 * Where a node says how many blocks it accepts at once, pages are never wider. Most do not: a page that is too wide is halved until it is accepted, and
 * pages grow again after each success (docs/providers.md, section 6). So is a page that a gateway gives
 * up on with a 502 or 504, because it takes too long; after two in a row it is an error. A refusal means one of two things. Where the
 * blocks held many logs, only they are read in smaller pages. Otherwise it is the node's limit: pages stay below it for
 * the next hundred, and close in on it. A pager belongs to one node and lives as long as the process, so that runs do not
 * learn the limit again.
 */
export function createPager(): Pager {
  let width = FIRST_PAGE
  let widestAccepted = 0
  let ceiling = Number.POSITIVE_INFINITY
  let limit = { width: Number.POSITIVE_INFINITY, pagesLeft: 0 }
  let refusals = NO_REFUSALS
  let wasRefused = false
  let busy = { width: 0, pages: BUSY_PAGES }
  let span: RefusedSpan | undefined

  function learn(refused: number, pages: number): void {
    limit = { width: refused, pagesLeft: pages }
    refusals = NO_REFUSALS
    widestAccepted = Math.min(widestAccepted, refused - 1)
    width = Math.min(width, refused - 1)
  }

  function learnBusy(refused: number): void {
    learn(refused, busy.pages)
    busy = { width: refused, pages: Math.min(LIMIT_PAGES, busy.pages * 2) }
  }

  function noteRefused(from: number, end: number, { most, width: suggested }: TooWide): void {
    const refused = end - from + 1
    // Some count the first block and some do not.
    if (most !== undefined && most >= 1 && refused >= Math.max(2, most)) {
      ceiling = most < refused ? most : most - 1
      width = Math.min(width, ceiling)
      return
    }
    span = { from, end, logs: 0 }
    narrow(refused, suggested)
  }

  function narrow(refused: number, suggested?: number): void {
    // A page that is halved again is still the same refusal.
    if (!wasRefused) refusals = { width: Math.min(refusals.width, refused), times: refusals.times + 1 }
    wasRefused = true
    const half = Math.max(1, Math.floor(refused / 2))
    width = refused > widestAccepted ? Math.max(half, widestAccepted) : half
    if (suggested !== undefined && suggested < refused) width = suggested
    if (refusals.times >= REFUSALS_OF_LIMIT) learnBusy(refusals.width)
  }

  function noteAccepted(from: number, end: number, logs: number): void {
    const accepted = end - from + 1
    wasRefused = false
    widestAccepted = Math.max(widestAccepted, accepted)
    if (accepted >= refusals.width) refusals = NO_REFUSALS
    if (accepted >= 2 * busy.width) busy = { width: 0, pages: BUSY_PAGES }
    // Somebody else reads other blocks, or who read these gave up: nothing is learnt of them.
    if (span !== undefined && (from < span.from || from > span.end)) span = undefined
    if (span !== undefined) {
      span.logs += logs
      if (end >= span.end) judge(span)
    }
    limit.pagesLeft -= 1
    if (limit.pagesLeft <= 0) limit = { width: Number.POSITIVE_INFINITY, pagesLeft: 0 }
    // Blocks that were refused are read to their end before a wider page is tried.
    if (accepted >= width && span === undefined) width = Math.min(ceiling, toWider(accepted, limit.width))
  }

  /** What was refused is now read: whether its width was the reason. */
  function judge({ from, end, logs }: RefusedSpan): void {
    span = undefined
    const refused = end - from + 1
    if (logs < FEWEST_REFUSED_LOGS && refused > widestAccepted && refused < limit.width) learn(refused, LIMIT_PAGES)
  }

  return {
    ceiling: () => ceiling,
    async read(from, to, readPage) {
      for (let isAgain = false; ; ) {
        const end = Math.min(to, from + width - 1)
        try {
          const found = await readPage(from, end, end === from)
          if (!(found instanceof TooWide)) {
            noteAccepted(from, end, found.length)
            return { found, end }
          }
          noteRefused(from, end, found)
        } catch (error) {
          if (!isGivenUp(error)) throw error
          narrow(end - from + 1)
          if (isAgain || end === from) throw error
          isAgain = true
        }
      }
    },
  }
}

/** The width to try after one was accepted. Near the limit it goes half of the way, and stays when little is to be won. */
function toWider(accepted: number, limit: number): number {
  const wider = Math.ceil(accepted * GROWTH)
  if (wider < limit) return wider
  const step = Math.floor((limit - accepted) / 2)
  return step < accepted * WORTH_TRYING ? accepted : accepted + step
}
