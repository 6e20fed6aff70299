/**
 * Converts records to columns for charts and data frames: each member of `columns` computes one value of a record.
 * `toColumns(points, { time: (point) => Date.parse(point.timestamp) / 1000 })` is `{ time: number[] }`.
 */
export function toColumns<Item, Values extends Record<string, unknown>>(
  records: readonly Item[],
  columns: { readonly [Name in keyof Values]: (record: Item) => Values[Name] },
): { [Name in keyof Values]: Values[Name][] } {
  const names = Object.keys(columns) as (keyof Values)[]
  const entries = names.map((name) => [name, records.map(columns[name])] as const)
  return Object.fromEntries(entries) as { [Name in keyof Values]: Values[Name][] }
}
