import { signal } from '@preact/signals'
import { type ComponentChildren, options } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
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
  /** Hidden on a phone, where another column has its content. */
  readonly isWide?: boolean
}

/** A column that on a phone has the cell of another column, which is hidden there, below its own, after the label. */
export const stacked = <T,>(column: Column<T>, below: Column<T>, label?: string): Column<T> => ({
  ...column,
  cell: (record) => (
    <>
      {column.cell(record)}
      <small class="narrow">
        {label} {below.cell(record)}
      </small>
    </>
  ),
})

const toClass = <T,>({ isNumber, isText, isWide }: Column<T>) =>
  [isNumber && 'number', isText && 'text', isWide && 'wide'].filter(Boolean).join(' ') || undefined

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

/** A table with more rows omits cells that are far from the screen. */
const MOST_WHOLE = 30

/** The least height of a row in pixels, with a pointer and on a phone. */
const [LEAST_PX, LEAST_TOUCH_PX] = [31, 44]

/** Rows on the part of a screen below the head of a page: those of a long table that have all their cells at first. */
const countFirst = () =>
  Math.min(
    MOST_WHOLE,
    Math.ceil((innerHeight * 0.6) / (matchMedia('(max-width: 40rem)').matches ? LEAST_TOUCH_PX : LEAST_PX)),
  )

/** Distance from the screen within which a row has all its cells. */
const NEAR = '400px 0px'

const rowsInWatch = new WeakMap<Element, (isNear: boolean) => void>()
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) rowsInWatch.get(target)?.(isIntersecting)
  },
  { rootMargin: NEAR },
)

/** The printed page has all cells. */
const isPrinting = signal(false)

/** Renders synchronously: the browser prints the document as it is when the event ends. */
function setPrinting(value: boolean): void {
  const { debounceRendering } = options
  options.debounceRendering = (render) => render()
  isPrinting.value = value
  if (debounceRendering === undefined) delete options.debounceRendering
  else options.debounceRendering = debounceRendering
}
addEventListener('beforeprint', () => setPrinting(true))
addEventListener('afterprint', () => setPrinting(false))

/** Whether the focus or the selection is in the row: its cells must not be removed then. */
const isInUse = (row: Element) =>
  row.contains(document.activeElement) || getSelection()?.containsNode(row, true) === true

/**
 * A row of a table. Far from the screen, a row of a long table has its first cell only: the browser's search, a screen
 * reader and the keyboard find every record by its name, and the page has a third of the elements.
 */
function Row<T>(props: { record: T; columns: readonly Column<T>[]; isLong: boolean; isFirst: boolean }) {
  const { record, columns, isLong, isFirst } = props
  const row = useRef<HTMLTableRowElement>(null)
  const [isNear, setNear] = useState(isFirst)
  useEffect(() => {
    const element = row.current
    if (!isLong || element === null) return
    rowsInWatch.set(element, (next) => setNear((before) => next || (before && isInUse(element))))
    watcher.observe(element)
    return () => watcher.unobserve(element)
  }, [isLong])
  const isWhole = !isLong || isNear || isPrinting.value
  return (
    <tr ref={row} class={isWhole ? undefined : 'far'}>
      {(isWhole ? columns : columns.slice(0, 1)).map((column) => (
        <td key={column.title} class={toClass(column)}>
          {column.cell(record)}
        </td>
      ))}
    </tr>
  )
}

/** Reserves what the cells that are left out would take: the height of a row, and the width of each column. */
function useReserved(section: { readonly current: HTMLElement | null }, isLong: boolean, columns: string): void {
  useLayoutEffect(() => {
    if (!isLong) return
    const measure = () => {
      const element = section.current
      if (element === null) return
      const headings = [...element.querySelectorAll<HTMLElement>('table:not(.steady) th')]
      for (const heading of headings) heading.style.removeProperty('--width')
      // All is read before anything is written: a read after a write lays the whole table out again. Widths are not
      // rounded, so that their sum does not exceed the width of the table.
      const widths = headings.map((heading) => [heading, heading.getBoundingClientRect().width] as const)
      // The first row has one border less.
      const height = element.querySelector('tbody tr + tr')?.getBoundingClientRect().height
      for (const [heading, width] of widths) heading.style.setProperty('--width', `${width}px`)
      element.style.setProperty('--row', `${height}px`)
    }
    measure()
    addEventListener('resize', measure)
    return () => removeEventListener('resize', measure)
  }, [isLong, columns])
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
  const { records } = props
  const isLong = records.length > MOST_WHOLE
  const first = isLong ? countFirst() : MOST_WHOLE
  useReserved(section, isLong, columns.map(({ title }) => title).join())
  // Only fixed widths are known to fit.
  const scroll = props.isSteady && columns.length <= MOST_FITTING ? 'scroll fits' : 'scroll'
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
            <Row key={props.keyOf(record, index)} {...{ record, columns, isLong }} isFirst={index < first} />
          ))}
        </tbody>
      </table>
    </section>
  )
}
