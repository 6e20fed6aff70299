import { go, query, withQuery } from '../place.ts'
import type { Column } from './record-table.tsx'

/** A column of a list. Which are shown stands in the address; the first, which names the record, always is. */
export interface ListColumn<T> extends Column<T> {
  readonly id: string
  /** Says which one it is where it stands alone. */
  readonly name?: string
  /** Shown only to whoever chooses it. */
  readonly isExtra?: boolean
  /** The members of the record that it shows, where it is not the one that it is sorted by. */
  readonly of?: readonly string[]
}

/** Those that are shown before somebody chooses. */
export const usualOf = <T,>(all: readonly ListColumn<T>[]) => all.filter(({ isExtra }) => isExtra !== true)

export function chosenOf<T>(all: readonly ListColumn<T>[]): readonly ListColumn<T>[] {
  const said = query.value.get('columns')?.split(',')
  return said === undefined ? usualOf(all) : all.filter(({ id }, at) => at === 0 || said.includes(id))
}

/** The members of a record that its columns show, as the interface's `fields` takes them. */
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
