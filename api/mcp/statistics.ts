import { type Json, shorten, valueAt } from './table.ts'

interface Observation {
  readonly at: string
  readonly value: number
}

/** Statistics of some columns of a series, from points that are added in the order of their time. */
export interface Statistics {
  add(at: string, record: Json): void
  /** By column; null for a column without any value. */
  summarize(): Json
}

export function createStatistics(members: readonly string[]): Statistics {
  const columns = members.map((path) => ({ path, found: undefined as Record<Extreme, Observation> | undefined }))
  return {
    add: (at, record) => {
      for (const column of columns) {
        const value = valueAt(record, column.path)
        if (typeof value !== 'number') continue
        const point = { at, value }
        const { first, min, max } = column.found ?? { first: point, min: point, max: point }
        column.found = {
          first,
          last: point,
          min: value < min.value ? point : min,
          max: value > max.value ? point : max,
        }
      }
    },
    summarize: () => Object.fromEntries(columns.map(({ path, found }) => [path, found ? summarize(found) : null])),
  }
}

type Extreme = 'first' | 'last' | 'min' | 'max'

function summarize({ first, last, min, max }: Record<Extreme, Observation>): Json {
  const change = last.value - first.value
  const changePercent = first.value === 0 ? null : (100 * change) / first.value
  return shorten({ first, last, min, max, change, changePercent }, 0) as Json
}

/** Ranges of buckets without any value: both ends are starts of buckets. */
export function findGaps(times: readonly string[], records: readonly Json[], members: readonly string[]) {
  const gaps: { from: string; to: string; buckets: number }[] = []
  let isOpen = false
  for (const [index, record] of records.entries()) {
    const isMissing = members.every((path) => valueAt(record, path) === null)
    const at = times[index] ?? ''
    const last = gaps.at(-1)
    if (isMissing && isOpen && last !== undefined) {
      last.to = at
      last.buckets += 1
    } else if (isMissing) gaps.push({ from: at, to: at, buckets: 1 })
    isOpen = isMissing
  }
  return gaps
}
