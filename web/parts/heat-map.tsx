import type { ComponentChildren } from 'preact'
import { toText } from '../format.ts'
import { RecordTable } from './record-table.tsx'
import { Change } from './value.tsx'

/** A column of changes in percent. */
export interface HeatColumn<T> {
  readonly title: string
  /** Length of the period of the change. */
  readonly days: number
  readonly value: (record: T) => number | null | undefined
}

/** The change over a day that has the full colour, in percent. Typical changes grow with the square root of time. */
const FULL_A_DAY = 5

const toFull = ({ days }: { readonly days: number }) => FULL_A_DAY * Math.sqrt(days)

/** How much of the colour a change has: a fraction of 1. */
const toHeat = (change: number, days: number) => Math.min(1, Math.abs(change) / toFull({ days }))

function Cell({ of, days }: { of: number | null | undefined; days: number }) {
  if (of === null || of === undefined) return <Change of={of} />
  const sign = of > 0 ? 'up' : of < 0 ? 'down' : ''
  return (
    <span class={`heat ${sign}`} style={{ '--heat': toHeat(of, days) }}>
      <Change of={of} />
    </span>
  )
}

/** Changes of records over several periods, as a table with coloured cells. */
export function HeatMap<T>(props: {
  caption: string
  records: readonly T[]
  keyOf: (record: T) => string
  /** The first column. */
  title: string
  cell: (record: T) => ComponentChildren
  columns: readonly HeatColumn<T>[]
}) {
  const { caption, records, keyOf, title, cell, columns } = props
  const [shortest, longest] = [columns[0], columns.at(-1)]
  return (
    <>
      <div class="heat-map">
        <RecordTable
          caption={caption}
          records={records}
          keyOf={keyOf}
          columns={[
            { title, cell },
            ...columns.map((column) => ({
              title: column.title,
              isNumber: true,
              cell: (record: T) => <Cell of={column.value(record)} days={column.days} />,
            })),
          ]}
        />
      </div>
      {shortest !== undefined && longest !== undefined && (
        <p class="note heat-key">
          <span>fall</span>
          <i aria-hidden="true" />
          <span>rise</span>
          <span>
            Full colour from {toText(toFull(shortest), 'count')} % in {shortest.title} to{' '}
            {toText(toFull(longest), 'count')} % in {longest.title}.
          </span>
        </p>
      )}
    </>
  )
}
