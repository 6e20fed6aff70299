import { DataError } from '../../../shared/errors.ts'
import type { Allowance } from '../../job/state.ts'
import type { Cursor } from '../contracts/governance.ts'
import type { Elements } from './client.ts'

/** An element of a list ordered by creation; `created` is in Unix seconds. */
export interface Created {
  readonly id: string
  readonly created: number
}

export interface Pages<T> {
  readonly items: T[]
  readonly cursor: Cursor
  readonly isComplete: boolean
  readonly unreadable: Unreadable
}

/** The unreadable elements. */
export interface Unreadable {
  /** One reason per element. */
  readonly reasons: readonly string[]
  /**
   * Creation of the last readable element before the first unreadable one, in Unix seconds; undefined if none is
   * unreadable.
   */
  readonly from: number | undefined
}

/**
 * An element's time is that of its signature, and the element may appear in the list later. This time before the cursor
 * is therefore read again.
 */
const OVERLAP_SECONDS = 3600

/**
 * Reads a list in order of creation from a cursor, oldest first, page by page, without duplicates. The source skips at
 * most `mostSkipped` elements, so paging uses times: the next page starts at the last element's time. Elements are
 * skipped only within one time, if a full page has a single time.
 * @throws DataError `provider_malformed` if more elements have one time than can be reached that way.
 */
export async function readByCreation<T extends Created>(options: {
  readonly fetchPage: (cursor: Cursor) => Promise<Elements<T>>
  readonly pageSize: number
  readonly mostSkipped: number
  readonly start: Cursor
  /** Upper limit of the cursor in Unix seconds, whatever times the elements claim. */
  readonly latest: number
  readonly allowance: Pick<Allowance, 'take'>
}): Promise<Pages<T>> {
  const { fetchPage, pageSize, mostSkipped, start, latest, allowance } = options
  const items = new Map<string, T>()
  const reasons: string[] = []
  let cursor = start
  let unreadableFrom: number | undefined
  const end = (at: Cursor, isComplete: boolean): Pages<T> => ({
    ...{ items: [...items.values()], cursor: at, isComplete },
    unreadable: { reasons, from: unreadableFrom },
  })
  while (allowance.take()) {
    const page = await fetchPage(cursor)
    const readable = page.elements.filter((item) => item !== undefined)
    for (const item of readable) items.set(item.id, item)
    if (page.reasons.length > 0) {
      reasons.push(...page.reasons)
      unreadableFrom ??= page.elements[page.elements.indexOf(undefined) - 1]?.created ?? cursor.from
    }
    const last = readable.at(-1)
    if (page.elements.length < pageSize) {
      return end(toEnd(start, Math.min(last?.created ?? cursor.from, latest)), true)
    }
    cursor = toNext(cursor, page.elements)
    if (cursor.skip > mostSkipped) {
      throw new DataError('provider_malformed', `more than ${cursor.skip} elements were created at ${cursor.from}`)
    }
  }
  return end(cursor, false)
}

/** Unreadable elements are skipped within the time of their neighbours. */
function toNext(cursor: Cursor, elements: readonly (Created | undefined)[]): Cursor {
  const first = elements.findIndex((item) => item !== undefined)
  const last = elements.findLast((item) => item !== undefined)
  if (last === undefined || (last.created === cursor.from && elements[first]?.created === last.created))
    return { from: cursor.from, skip: cursor.skip + elements.length }
  // Unreadable elements before the first readable one may have an earlier time.
  const isOneTime = elements[first]?.created === last.created
  return { from: last.created, skip: isOneTime ? elements.length - first : 0 }
}

/**
 * Returns the cursor of the next reading: some time before the newest element, but not before the cursor of this
 * reading.
 */
function toEnd(start: Cursor, newest: number): Cursor {
  return { from: Math.max(start.from, newest - OVERLAP_SECONDS), skip: 0 }
}
