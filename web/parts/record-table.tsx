import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isReturning } from '../place.ts'

/** A column of a table of records. */
export interface Column<T> {
  readonly title: string
  /** The member that the interface sorts by; a column without one cannot be sorted by. */
  readonly member?: string
  readonly cell: (record: T) => ComponentChildren
  readonly isNumber?: boolean
  /** Long text, which has several lines. */
  readonly isText?: boolean
}

const toClass = <T,>({ isNumber, isText }: Column<T>) => (isNumber ? 'number' : isText ? 'text' : undefined)

interface Sorting {
  /** As the interface has it: a member, `-` before it for the largest first. */
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
  // Of a number the largest is wanted first, of a text the first letter.
  const first = column.isNumber ? `-${member}` : member
  const other = column.isNumber ? member : `-${member}`
  return (
    <th scope="col" class={cls} aria-sort={isDown ? 'descending' : isUp ? 'ascending' : 'none'}>
      <button type="button" class="sort" onClick={() => sorting.change(sorting.by === first ? other : first)}>
        {title}
        <span aria-hidden="true">{isDown ? ' ↓' : isUp ? ' ↑' : ''}</span>
      </button>
    </th>
  )
}

/** Rows that fill any screen: the others follow when these are painted, so that nobody waits for what is out of sight. */
const FIRST_ROWS = 30

/** A browser that is busy all the time shows the others nevertheless. */
const MOST_IDLE_MS = 300

/** Whoever returns to a row that is not there yet would be left at the end of those that are. */
function useIsWhole(): boolean {
  const [isWhole, complete] = useState(isReturning)
  // Effects run after the paint, and idle is when nothing else is to be painted; not every browser tells when that is.
  useEffect(() => {
    if (!('requestIdleCallback' in window)) return complete(true)
    const waiting = requestIdleCallback(() => complete(true), { timeout: MOST_IDLE_MS })
    return () => cancelIdleCallback(waiting)
  }, [])
  return isWhole
}

/** Records as a dense table, which scrolls by itself where the screen is narrow. */
export function RecordTable<T>(props: {
  caption: string
  columns: readonly Column<T>[]
  records: readonly T[]
  keyOf: (record: T, index: number) => string | number
  sorting?: Sorting
  /** Its columns are as wide whatever is in them: values that change move nothing. */
  isSteady?: boolean
  /** Which page of which list it is: whoever turns it reads on from its beginning. Of another list nobody turned one. */
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
  const records = useIsWhole() ? props.records : props.records.slice(0, FIRST_ROWS)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard.
    <section class="scroll" ref={section} tabIndex={0} aria-label={`Table: ${props.caption}`}>
      <table class={props.isSteady ? 'steady' : undefined}>
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
