import { useRef, useState } from 'preact/hooks'

export interface Held<T> {
  readonly records: readonly T[]
  /** Whether the order shown differs from the current order of the list. */
  readonly isReordered: boolean
  readonly renew: () => void
}

/**
 * Keeps the records in the order in which the list was first shown: the row being read or focused must not move. A new
 * record takes the position of a removed one.
 */
export function useHeldOrder<T extends { readonly _id: string }>(list: string, records: readonly T[]): Held<T> {
  const held = useRef<{ list: string; ids: readonly string[] } | undefined>(undefined)
  const [, renew] = useState(0)
  const byId = new Map(records.map((record) => [record._id, record]))
  const before = held.current?.list === list ? held.current.ids : []
  const previous = new Set(before)
  const added = records.filter(({ _id }) => !previous.has(_id)).values()
  const stayed = before.flatMap((id) => byId.get(id) ?? added.next().value ?? [])
  const shown = [...stayed, ...added]
  held.current = { list, ids: shown.map(({ _id }) => _id) }
  return {
    records: shown,
    isReordered: shown.some((record, at) => record !== records[at]),
    renew: () => {
      held.current = undefined
      renew((count) => count + 1)
    },
  }
}
