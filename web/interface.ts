import { toUrl, type Values } from '../clients/typescript/src/address.ts'
import type { paths } from '../clients/typescript/src/schema.ts'
import { BASE } from './place.ts'
import type { Range } from './ranges.ts'

type WithJson = { responses: { 200: { content: { 'application/json': unknown } } } }

/** Every path that answers in JSON. */
export type Path = { [P in keyof paths]: paths[P] extends { get: WithJson } ? P : never }[keyof paths]

type Get<P extends Path> = paths[P] extends { get: infer G } ? G : never

/** What a path answers. */
export type Answer<P extends Path> =
  Get<P> extends { responses: { 200: { content: { 'application/json': infer Body } } } } ? Body : never

/** What a path may be asked with; nothing, where it takes no parameters. */
export type Query<P extends Path> =
  Get<P> extends { parameters: { query?: infer Q } }
    ? [NonNullable<Q>] extends [never]
      ? Record<string, never>
      : NonNullable<Q>
    : never

/** A question to the interface, as anybody may ask it. */
export interface Question<P extends Path = Path> {
  readonly path: P
  readonly url: string
  /** Of what it asks. While time passes a range begins later and later, and it is about the same all the while. */
  readonly about: string
}

/**
 * A question with its query; what is undefined or an empty text is not asked. `range` is told where the reader chooses one:
 * two of the same interval differ in nothing but their starts.
 */
export function toQuestion<P extends Path>(path: P, query: Query<P>, range?: Range): Question<P> {
  const asked = Object.fromEntries(Object.entries(query as Values).filter(([, value]) => value !== ''))
  return { path, url: toUrl(BASE, path, asked), about: toUrl(BASE, path, { ...asked, start: range }) }
}

/** The same question for these members of the records alone. */
export function withFields(question: Question, fields: readonly string[]): Question {
  const other = new URL(question.url)
  other.searchParams.set('fields', fields.join(','))
  return { ...question, url: other.href }
}

/** The same question with its answer in another format. */
export function inFormat({ url }: Question, format: 'csv' | 'parquet'): string {
  const other = new URL(url)
  other.searchParams.set('format', format)
  return other.href
}
