import type { z } from 'zod'
import type { Format } from '../answers/formats.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { toFileName } from './file-name.ts'

/** The requested representation of a route's records: format, members, page, and the file name. */
export interface Representation {
  readonly record: z.ZodObject
  readonly format: Format
  /** The requested members, in the record's order. */
  readonly fields: readonly string[]
  readonly hasAllFields: boolean
  /** The sort values of the last record that the client has; an empty text on a first page. */
  readonly after: string
  /** Equal for all requests with the same answer. */
  readonly key: string
  toFileName(): string
  /** The `Link` to the page after a record with these sort values. */
  nextLink(after: string): string
}

type Query = Readonly<Record<string, unknown>>

/** Parameters that select a part or a form of an answer and do not change its query. */
const ABOUT_THE_PAGE: ReadonlySet<string> = new Set(['limit', 'cursor', 'fields', 'format'])

/** Sorts the parameters, so that equal queries have equal texts. */
export const toQueryKey = (path: string, query: Query) =>
  `${path}?${JSON.stringify(Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1)))}`

/** Parameters with values that may contain commas, and those that are times. */
const REPEATED: ReadonlySet<string> = new Set(['name', 'filter'])
const TIMES: ReadonlySet<string> = new Set(['start', 'end', 'asOf'])

/** Formats a parsed value as parameters: an array may become several parameters, and a time is a number here. */
function toTexts(name: string, value: unknown): string[] {
  if (Array.isArray(value)) return REPEATED.has(name) ? value.map(String) : [value.join(',')]
  if (typeof value === 'number' && TIMES.has(name)) return [new Date(value).toISOString()]
  return value === undefined ? [] : [String(value)]
}

/** `query` is the parsed query with the ids of the entities; its cursor must belong to the rest of it. */
export function toRepresentation(facts: {
  path: string
  query: Query
  format: Format
  record: z.ZodObject
  /** The record's default members, unless the query names others. */
  usual: z.ZodObject
  names: readonly string[]
}): Representation {
  const { path, query, format, record, usual, names } = facts
  // Computed on use: most requests have no cursor and no next page.
  const toScope = () => {
    const about = Object.fromEntries(Object.entries(query).filter(([name]) => !ABOUT_THE_PAGE.has(name)))
    return toQueryKey(path, about)
  }
  const all = Object.keys(record.shape)
  const named = query.fields as readonly string[] | undefined
  const wanted = named ?? (usual === record ? all : Object.keys(usual.shape))
  const fields = wanted === all ? all : all.filter((name) => wanted.includes(name))
  return {
    record,
    format,
    fields,
    hasAllFields: fields.length === all.length,
    after: query.cursor === undefined ? '' : readCursor(toScope(), String(query.cursor)),
    key: toQueryKey(path, { ...query, format }),
    toFileName: () => toFileName({ path, query, names, format }),
    nextLink: (after) => {
      const { format: _, ...rest } = query
      const next = { ...rest, ...(format === 'json' ? {} : { format }), cursor: writeCursor(toScope(), after) }
      const pairs = Object.entries(next).flatMap(([name, value]) =>
        toTexts(name, value).map((text): [string, string] => [name, text]),
      )
      return `<?${new URLSearchParams(pairs)}>; rel="next"`
    },
  }
}
