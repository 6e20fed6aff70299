import type { z } from 'zod'
import type { Format } from '../answers/formats.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { toFileName } from './file-name.ts'

/** How a request wants a route's records to be represented: format, members, page, and the name of the file. */
export interface Representation {
  readonly record: z.ZodObject
  readonly format: Format
  /** The members wanted, in the record's order. */
  readonly fields: readonly string[]
  readonly hasAllFields: boolean
  /** The sort values of the last record that the client has; an empty text where it has none. */
  readonly after: string
  /** Equal for every request with the same answer. */
  readonly key: string
  toFileName(): string
  /** The `Link` to what follows on a record with these sort values. */
  nextLink(after: string): string
}

type Query = Readonly<Record<string, unknown>>

/** Parameters that say how much of an answer is wanted and how it is written, not what it is an answer to. */
const ABOUT_THE_PAGE: ReadonlySet<string> = new Set(['limit', 'cursor', 'fields', 'format'])

/** Parameters in a fixed order, so that equal queries are equal texts. */
export const toQueryKey = (path: string, query: Query) =>
  `${path}?${JSON.stringify(Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1)))}`

/** Parameters whose values may hold commas, and those that are moments. */
const REPEATED: ReadonlySet<string> = new Set(['name', 'filter'])
const TIMES: ReadonlySet<string> = new Set(['start', 'end', 'asOf'])

/** A value as the parameter that parses to it: several values are several parameters, a moment is a number here. */
function toTexts(name: string, value: unknown): string[] {
  if (Array.isArray(value)) return REPEATED.has(name) ? value.map(String) : [value.join(',')]
  if (typeof value === 'number' && TIMES.has(name)) return [new Date(value).toISOString()]
  return value === undefined ? [] : [String(value)]
}

/** `query` as it was parsed, with ids of the entities found; a cursor in it must belong to the rest of it. */
export function toRepresentation(facts: {
  path: string
  query: Query
  format: Format
  record: z.ZodObject
  /** With the members that a record has unless the query names others. */
  usual: z.ZodObject
  names: readonly string[]
}): Representation {
  const { path, query, format, record, usual, names } = facts
  // Most requests have no cursor and no page after them.
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
