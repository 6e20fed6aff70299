import { go, query, withQuery } from '../place.ts'
import type { Column } from './record-table.tsx'

/**
 * A column of a list. The address contains the shown columns; the first one, with the record's name, is always shown.
 */
export interface ListColumn<T> extends Column<T> {
  readonly id: string
  /** The full name of the column, for use without context. */
  readonly name?: string
  /** Hidden unless selected. */
  readonly isExtra?: boolean
  /** The members of the record that it shows, if they differ from the sort member. */
  readonly of?: readonly string[]
}

/** The default columns. */
export const usualOf = <T,>(all: readonly ListColumn<T>[]) => all.filter(({ isExtra }) => isExtra !== true)

export function chosenOf<T>(all: readonly ListColumn<T>[]): readonly ListColumn<T>[] {
  const said = query.value.get('columns')?.split(',')
  return said === undefined ? usualOf(all) : all.filter(({ id }, at) => at === 0 || said.includes(id))
}

/** The members of a record that its columns show, for the API's `fields`. */
export const fieldsOf = <T,>(columns: readonly ListColumn<T>[]): readonly string[] => [
  ...new Set(['_id', ...columns.flatMap(({ of, member }) => of ?? member?.split('.').slice(0, 1) ?? [])]),
]

export function ChooseColumns<T>({ all }: { all: readonly ListColumn<T>[] }) {
  const chosen = chosenOf(all)
  const usual = usualOf(all)
  const toggle = (column: ListColumn<T>) => {
    const next = all.filter((one) => chosen.includes(one) !== (one === column))
    const isUsual = next.length === usual.length && next.every((one) => usual.includes(one))
    go(withQuery({ columns: isUsual ? undefined : next.map(({ id }) => id).join(',') }))
  }
  return (
    <details class="drop columns">
      <summary>Columns</summary>
      <fieldset class="menu">
        <legend class="hidden">Columns that are shown</legend>
        {all.slice(1).map((column) => (
          <label key={column.id}>
            <input type="checkbox" checked={chosen.includes(column)} onChange={() => toggle(column)} />
            {column.name ?? column.title}
          </label>
        ))}
      </fieldset>
    </details>
  )
}
