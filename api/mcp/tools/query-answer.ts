import type { Failed } from '../request-each.ts'
import { type Parameters, toCursor, toFacts } from '../requests.ts'
import type { Reply } from '../source.ts'
import { countUnknown, cutToSize, type Json, MOST_VALUES, shorten, toPaths, valueAt } from '../table.ts'
import type { QueryCall } from './query-input.ts'

/** A row of the answer, with its entity if several were requested in turn. */
interface Row {
  readonly of: string | undefined
  readonly record: Json
}

/** Entities without a matching record, and those with a failed request. */
export interface Missing {
  readonly failed: readonly Failed[]
  readonly unresolved: readonly string[]
}

/** Total number of records, if the answers contain the number or all records. */
function toTotal(replies: readonly Reply[], found: number): number | undefined {
  const totals = replies.map(({ headers }) => headers.get('x-total-count'))
  if (totals.every((total) => total !== null)) return totals.reduce((sum, total) => sum + Number(total), 0)
  return replies.some((reply) => toCursor(reply) !== undefined) ? undefined : found
}

/** The time of the data: one per answer if they differ. */
function toAge(replies: readonly Reply[]): Json {
  const facts = replies.map(toFacts)
  const asOf = facts.map((one) => one.asOf)
  const stale = facts.some((one) => one.stale === true) ? { stale: true } : {}
  return { asOf: asOf.every((one) => one === asOf[0]) ? asOf[0] : asOf, ...stale }
}

/** How to get the rest of a shortened answer. */
function toRest({ isCut, isEach, cursor }: { isCut: boolean; isEach: boolean; cursor: string | undefined }): string {
  if (isCut) return 'use fewer fields, a filter, or a smaller limit'
  if (isEach) return 'use one entity in of for the next page'
  return cursor === undefined ? 'use a larger limit' : 'repeat with cursor = next'
}

/** The answer to one request, and its entity if entities are requested in turn. */
export interface RecordsReply {
  readonly of: string | undefined
  readonly source: string
  readonly parameters: Parameters
  readonly reply: Reply
  readonly records: readonly Json[]
}

/** The answer with the maximum number of rows that fit. */
export function toData(
  call: QueryCall,
  isEach: boolean,
  received: readonly RecordsReply[],
  { failed, unresolved }: Missing,
) {
  const { fields, limit } = call.input
  const replies = received.map(({ reply }) => reply)
  const records = received.flatMap(({ of, records: list }) =>
    list.slice(0, limit).map((record): Row => ({ of, record })),
  )
  const all = toTotal(replies, received.flatMap(({ records: list }) => list).length)
  const cursors = replies.flatMap((reply) => toCursor(reply) ?? [])
  const next = isEach ? undefined : cursors[0]
  const hasMore = cursors.length > 0 || received.some(({ records: list }) => list.length > limit)
  const columns = fields ?? toPaths(records.map(({ record }) => record))
  const urls = received.map(({ source }) => call.source.base + source)
  const most = Math.min(records.length, Math.ceil(MOST_VALUES / Math.max(columns.length, 1)))
  const { answer, shown } = cutToSize(most, (count, items): Json => {
    const rows = records.slice(0, count)
    const isCut = count < records.length
    const rest = toRest({ isCut, isEach, cursor: next })
    const toCells = ({ record }: Row) => columns.map((path) => shorten(valueAt(record, path), items))
    return {
      source: urls.length === 1 ? urls[0] : urls,
      ...toAge(replies),
      ...(isCut || hasMore ? { showing: `${count} of ${all ?? 'more'}; ${rest}` } : {}),
      ...(next === undefined || isCut ? {} : { next }),
      columns: isEach ? ['of', ...columns] : columns,
      rows: rows.map((row) => (isEach ? [row.of, ...toCells(row)] : toCells(row))),
      unknown: countUnknown(
        columns,
        rows.map(({ record }) => record),
      ),
      ...(failed.length > 0 ? { failed } : {}),
      ...(unresolved.length > 0 ? { untold: unresolved } : {}),
    }
  })
  return { answer, shown, all, found: records.length }
}
