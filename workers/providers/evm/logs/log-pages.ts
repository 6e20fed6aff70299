import { DataError } from '../../../../shared/errors.ts'

/**
 * The node refused a page: too many blocks, too many logs, or too slow. Some nodes report the most blocks that they
 * ever accept (`most`), or how many of these blocks they would accept (`width`).
 */
export class TooWide {
  readonly most: number | undefined
  readonly width: number | undefined

  constructor({ most, width }: { readonly most?: number; readonly width?: number } = {}) {
    this.most = most
    this.width = width
  }
}

/**
 * A gateway in front of the node may time out on a page that takes too long. A response with Retry-After means
 * throttling instead.
 */
const isServerFailure = (error: unknown): boolean =>
  error instanceof DataError && error.retryAfterMs === undefined && (error.status ?? 0) >= 500

/** Reads one page. `last` marks a single block, which cannot be split. */
export type ReadPage<T> = (from: number, to: number, last: boolean) => Promise<readonly T[] | TooWide>

/** A node's result for the blocks up to `end`, inclusive. */
export interface Page<T> {
  readonly found: readonly T[]
  readonly end: number
}

/** Reads the blocks of one node in pages that it accepts. */
export interface Pager {
  /** Reads a page that begins at `from` and ends at or before `to`, both inclusive. */
  read<T>(from: number, to: number, readPage: ReadPage<T>): Promise<Page<T>>
  /** Returns the largest number of blocks that the node accepts, infinite until the node has reported it. */
  ceiling(): number
}

const FIRST_PAGE = 2000
const GROWTH = 1.5
/** Number of pages for which a learned limit is valid before a wider page is tried: nodes change their limits. */
const LIMIT_PAGES = 100
/** No known node refuses fewer logs than this, so a page with fewer logs was refused for its width. */
const FEWEST_REFUSED_LOGS = 1000
/**
 * Number of refusals without an accepted page of the same width that count as a limit, whatever the number of logs. The
 * cause may be temporary load, so the limit is valid for few pages at first, and longer each time it is found again.
 */
const REFUSALS_OF_LIMIT = 3
const BUSY_PAGES = 10
/** The search for the limit continues while at least this share of the width can be gained. */
const WORTH_TRYING = 1 / 8

/** The blocks of the last refused page, and the number of logs read from them since. */
interface RefusedSpan {
  readonly from: number
  readonly end: number
  logs: number
}

/** The narrowest page refused since a page of that width was accepted, and the number of refusals. */
const NO_REFUSALS = { width: Number.POSITIVE_INFINITY, times: 0 }

/**
 * If a node reports how many blocks it accepts, pages are never wider. Most nodes do not. A refused page is then halved
 * until it is accepted, and pages grow after each success (docs/providers.md, section 6). A page that times out at a
 * gateway with 502 or 504 is also halved; after two in a row the error is thrown.
 * A refusal has one of two meanings. If the blocks contain many logs, only these blocks are read in smaller pages.
 * Otherwise it is the node's limit: pages stay below it for the next hundred pages and approach it.
 * A pager belongs to one node and lives as long as the process, so that runs do not learn the limit again.
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
    // Some nodes include the first block in the width and some do not.
    if (most !== undefined && most >= 1 && refused >= Math.max(2, most)) {
      ceiling = most < refused ? most : most - 1
      width = Math.min(width, ceiling)
      return
    }
    span = { from, end, logs: 0 }
    narrow(refused, suggested)
  }

  function narrow(refused: number, suggested?: number): void {
    // Halving the same page again is not a new refusal.
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
    // Other blocks are being read, or the reader of the refused blocks gave up: there is nothing to learn.
    if (span !== undefined && (from < span.from || from > span.end)) span = undefined
    if (span !== undefined) {
      span.logs += logs
      if (end >= span.end) judge(span)
    }
    limit.pagesLeft -= 1
    if (limit.pagesLeft <= 0) limit = { width: Number.POSITIVE_INFINITY, pagesLeft: 0 }
    // Refused blocks are read completely before a wider page is tried.
    if (accepted >= width && span === undefined) width = Math.min(ceiling, toWider(accepted, limit.width))
  }

  /** Called after a refused range was read completely: decides whether its width was the reason. */
  function judge({ from, end, logs }: RefusedSpan): void {
    span = undefined
    const refused = end - from + 1
    if (logs < FEWEST_REFUSED_LOGS && refused > widestAccepted && refused < limit.width) learn(refused, LIMIT_PAGES)
  }

  return {
    ceiling: () => ceiling,
    async read(from, to, readPage) {
      for (let isRetry = false; ; ) {
        const end = Math.min(to, from + width - 1)
        try {
          const found = await readPage(from, end, end === from)
          if (!(found instanceof TooWide)) {
            noteAccepted(from, end, found.length)
            return { found, end }
          }
          noteRefused(from, end, found)
        } catch (error) {
          if (!isServerFailure(error)) throw error
          narrow(end - from + 1)
          if (isRetry || end === from) throw error
          isRetry = true
        }
      }
    },
  }
}

/**
 * Returns the next width after an accepted page. Near the limit, it moves halfway towards it; it stops if little can be
 * gained.
 */
function toWider(accepted: number, limit: number): number {
  const wider = Math.ceil(accepted * GROWTH)
  if (wider < limit) return wider
  const step = Math.floor((limit - accepted) / 2)
  return step < accepted * WORTH_TRYING ? accepted : accepted + step
}
