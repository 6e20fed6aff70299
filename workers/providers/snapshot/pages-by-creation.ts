import { DataError } from '../../../shared/errors.ts'
import type { Allowance } from '../../job/allowance.ts'
import type { Cursor } from '../contracts/governance.ts'

/** An element of a list that is paged in order of creation; `created` in Unix seconds. */
export interface Created {
  readonly id: string
  readonly created: number
}

export interface Pages<T> {
  readonly items: T[]
  readonly cursor: Cursor
  readonly isComplete: boolean
}

/** An element's time is that of its signature; it may appear in the list later. So this many seconds are read again. */
const OVERLAP_SECONDS = 3600

/**
 * Reads a list in order of creation from a cursor on, oldest first, page by page, without repetitions. Pages go by time,
 * because the source skips no more than `mostSkipped` elements: the next page starts at the last element's time. Only
 * where a full page is of one single time does it skip within that time.
 * @throws DataError `provider_malformed` for more elements of one time than can be reached that way.
 */
export async function readByCreation<T extends Created>(options: {
  readonly fetchPage: (cursor: Cursor) => Promise<readonly T[]>
  readonly pageSize: number
  readonly mostSkipped: number
  readonly start: Cursor
  readonly allowance: Pick<Allowance, 'take'>
}): Promise<Pages<T>> {
  const { fetchPage, pageSize, mostSkipped, start, allowance } = options
  const items = new Map<string, T>()
  let cursor = start
  while (allowance.take()) {
    const page = await fetchPage(cursor)
    for (const item of page) items.set(item.id, item)
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) {
      return { items: [...items.values()], cursor: toEnd(start, last?.created ?? cursor.from), isComplete: true }
    }
    cursor = toNext(cursor, page, last)
    if (cursor.skip > mostSkipped) {
      throw new DataError('provider_malformed', `more than ${cursor.skip} elements were created at ${cursor.from}`)
    }
  }
  return { items: [...items.values()], cursor, isComplete: false }
}

function toNext(cursor: Cursor, page: readonly Created[], last: Created): Cursor {
  if (page[0]?.created !== last.created) return { from: last.created, skip: 0 }
  const skipped = last.created === cursor.from ? cursor.skip : 0
  return { from: last.created, skip: skipped + page.length }
}

/** The cursor for the next reading: a while before the newest element, but never before the cursor of this one. */
function toEnd(start: Cursor, newest: number): Cursor {
  return { from: Math.max(start.from, newest - OVERLAP_SECONDS), skip: 0 }
}
