import { toUrl, type Values } from './address.ts'
import { type Connection, type ConnectionOptions, createConnection, type RequestOptions } from './connection.ts'
import type { Answer } from './facts.ts'
import { ConnectionError } from './failure.ts'
import type { Download, Format, Method, OperationName, Query } from './operation.ts'
import { OPERATIONS } from './operations.ts'
import { followChanges, type StreamEvent, type StreamOptions } from './stream.ts'

type Operations = typeof OPERATIONS

/** Change events as they happen, while the iteration continues. */
type Following = (
  query?: Query<'streamChanges'>,
  options?: StreamOptions,
) => AsyncGenerator<StreamEvent, void, undefined>

/** Every operation of the service, by tag and name. */
export type DaoData = {
  readonly [Tag in keyof Operations]: {
    readonly [Name in keyof Operations[Tag]]: Name extends 'streamChanges'
      ? Following
      : Name extends OperationName
        ? Method<Name>
        : never
  }
}

const toRecords = (data: unknown): readonly unknown[] =>
  Array.isArray(data) ? data : (data as { readonly data: readonly unknown[] }).data

/** An operation with all possible methods; the types restrict them per operation. */
function toMethod(connection: Connection, path: string) {
  const url = (query?: Values) => toUrl(connection.base, path, query)
  const answer = (query?: Values, options?: RequestOptions): Promise<Answer<unknown>> =>
    connection.answer(url(query), options)
  async function* pages(query?: Values, options?: RequestOptions) {
    let next: string | undefined
    do {
      const { data, facts } = await answer(next === undefined ? query : { ...query, cursor: next }, options)
      yield data
      // Following the same cursor again would never end.
      if (next !== undefined && facts.next === next)
        throw new ConnectionError(url(query), new Error('A page names itself as the next'))
      next = facts.next
    } while (next !== undefined)
  }
  async function* records(query?: Values, options?: RequestOptions) {
    for await (const page of pages(query, options)) yield* toRecords(page)
  }
  const download = (format: Format, query?: Values, options?: RequestOptions) =>
    connection.download(url({ ...query, format }), options) as Promise<Download>
  const operation = async (query?: Values, options?: RequestOptions) => (await answer(query, options)).data
  return Object.assign(operation, { url, answer, pages, records, download })
}

/**
 * Creates a client of a service.
 * @throws TypeError when `baseUrl` is no absolute URL.
 */
export function createDaoData(options: ConnectionOptions): DaoData {
  const connection = createConnection(options)
  const toMethods = (paths: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(paths).map(([name, path]) => [
        name,
        name === 'streamChanges'
          ? (query: Values = {}, options?: StreamOptions) => followChanges(connection, path, query, options)
          : toMethod(connection, path),
      ]),
    )
  const groups = Object.entries(OPERATIONS).map(([tag, paths]) => [tag, toMethods(paths)])
  return Object.fromEntries(groups) as DaoData
}
