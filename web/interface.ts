import { toUrl, type Values } from '../clients/typescript/src/address.ts'
import type { paths } from '../clients/typescript/src/schema.ts'
import { BASE } from './place.ts'
import type { Range } from './ranges.ts'

type WithJson = { responses: { 200: { content: { 'application/json': unknown } } } }

/** Every path with JSON answers. */
export type Path = { [P in keyof paths]: paths[P] extends { get: WithJson } ? P : never }[keyof paths]

type Get<P extends Path> = paths[P] extends { get: infer G } ? G : never

/** The body of a path's answer. */
export type Answer<P extends Path> =
  Get<P> extends { responses: { 200: { content: { 'application/json': infer Body } } } } ? Body : never

/** The query parameters of a path; empty if it has none. */
export type Query<P extends Path> =
  Get<P> extends { parameters: { query?: infer Q } }
    ? [NonNullable<Q>] extends [never]
      ? Record<string, never>
      : NonNullable<Q>
    : never

/** A query of the API. */
export interface Question<P extends Path = Path> {
  readonly path: P
  readonly url: string
  /** Identity of the query without the start of its range, which changes over time. */
  readonly about: string
}

/**
 * Builds a query; undefined and empty values are omitted. `range` is given if the reader selects it: two queries of the
 * same range and interval then differ only in their starts.
 */
export function toQuestion<P extends Path>(path: P, query: Query<P>, range?: Range): Question<P> {
  const parameters = Object.fromEntries(Object.entries(query as Values).filter(([, value]) => value !== ''))
  return { path, url: toUrl(BASE, path, parameters), about: toUrl(BASE, path, { ...parameters, start: range }) }
}

/** The same query for only these members of the records. */
export function withFields(question: Question, fields: readonly string[]): Question {
  const url = new URL(question.url)
  url.searchParams.set('fields', fields.join(','))
  return { ...question, url: url.href }
}

/** The same query with its answer in another format. Spreadsheets read CSV as UTF-8 only after a byte order mark. */
export function inFormat({ url }: Question, format: 'csv' | 'parquet'): string {
  const copy = new URL(url)
  copy.searchParams.set('format', format)
  if (format === 'csv') copy.searchParams.set('bom', 'true')
  return copy.href
}
