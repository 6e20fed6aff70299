import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isReturning } from '../place.ts'

/** A column of a table of records. */
export interface Column<T> {
  readonly title: string
  /** The API's sort member; a column without it is not sortable. */
  readonly member?: string
  readonly cell: (record: T) => ComponentChildren
  readonly isNumber?: boolean
  /** Long text with several lines. */
  readonly isText?: boolean
}

const toClass = <T,>({ isNumber, isText }: Column<T>) => (isNumber ? 'number' : isText ? 'text' : undefined)

interface Sorting {
  /** The API's sort parameter: a member, with `-` before it for descending order. */
  readonly by: string | undefined
  readonly change: (by: string) => void
}

function Heading<T>({ column, sorting }: { column: Column<T>; sorting: Sorting | undefined }) {
  const { title, member } = column
  const cls = toClass(column)
  if (member === undefined || sorting === undefined)
    return (
      <th scope="col" class={cls}>
        {title}
      </th>
    )
  const isDown = sorting.by === `-${member}`
  const isUp = sorting.by === member
  // Numbers are first sorted in descending order, texts in ascending order.
  const first = column.isNumber ? `-${member}` : member
  const reversed = column.isNumber ? member : `-${member}`
  return (
    <th scope="col" class={cls} aria-sort={isDown ? 'descending' : isUp ? 'ascending' : 'none'}>
      <button type="button" class="sort" onClick={() => sorting.change(sorting.by === first ? reversed : first)}>
        {title}
        <span aria-hidden="true">{isDown ? ' ↓' : isUp ? ' ↑' : ''}</span>
      </button>
    </th>
  )
}

/**
 * Rows that fill any screen. The others are rendered after the first paint, so that rows out of sight cause no delay.
 */
const FIRST_ROWS = 30

/** Time limit for rendering the other rows in a busy browser. */
const MOST_IDLE_MS = 300

/**
 * Renders all rows immediately after back or forward navigation; otherwise a scroll position beyond the first rows
 * would be lost.
 */
function useIsComplete(): boolean {
  const [isComplete, complete] = useState(isReturning)
  // Effects run after the paint. `requestIdleCallback` waits until nothing else is to be painted; not every browser has
  // it.
  useEffect(() => {
    if (!('requestIdleCallback' in window)) return complete(true)
    const waiting = requestIdleCallback(() => complete(true), { timeout: MOST_IDLE_MS })
    return () => cancelIdleCallback(waiting)
  }, [])
  return isComplete
}

/** Columns that fit on a phone without scrolling, and on a large screen. */
const [FEW, MOST_FITTING] = [3, 10]

/** Records as a dense table, with its own horizontal scrolling on a narrow screen. */
export function RecordTable<T>(props: {
  caption: string
  columns: readonly Column<T>[]
  records: readonly T[]
  keyOf: (record: T, index: number) => string | number
  sorting?: Sorting
  /** Fixed column widths: changed values move nothing. */
  isSteady?: boolean
  /**
   * Identity of the list and its page. Turning the page scrolls to the table's start; switching to another list does
   * not.
   */
  place?: { readonly list: string; readonly page: string }
}) {
  const { columns, sorting } = props
  const { list, page } = props.place ?? {}
  const section = useRef<HTMLElement>(null)
  const before = useRef({ list, page })
  useEffect(() => {
    const isTurned = before.current.list === list && before.current.page !== page
    before.current = { list, page }
    if (!isTurned || isReturning()) return
    section.current?.scrollIntoView()
    section.current?.focus({ preventScroll: true })
  }, [list, page])
  const records = useIsComplete() ? props.records : props.records.slice(0, FIRST_ROWS)
  const scroll = columns.length <= MOST_FITTING ? 'scroll fits' : 'scroll'
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard.
    <section class={scroll} ref={section} tabIndex={0} aria-label={`Table: ${props.caption}`}>
      <table class={props.isSteady ? (columns.length <= FEW ? 'steady few' : 'steady') : undefined}>
        <caption class="hidden">{props.caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.title} column={column} sorting={sorting} />
            ))}
          </tr>
        </thead>
        <tbody>
          {records.map((record, index) => (
            <tr key={props.keyOf(record, index)}>
              {columns.map((column) => (
                <td key={column.title} class={toClass(column)}>
                  {column.cell(record)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
