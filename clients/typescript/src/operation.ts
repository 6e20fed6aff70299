import type { RequestOptions } from './connection.ts'
import type { Answer } from './facts.ts'
import type { components, operations } from './schema.ts'

/** The name of an operation. */
export type OperationName = keyof operations

type Content<Name extends OperationName> = operations[Name]['responses'][200]['content']

/** The body of an operation's answer, for any parameters. */
export type Body<Name extends OperationName> =
  Content<Name> extends { 'application/json': infer Json } | { 'application/feed+json': infer Json }
    ? Json
    : Content<Name> extends
          | { 'image/svg+xml': infer Text }
          | { 'application/atom+xml': infer Text }
          | { 'text/calendar': infer Text }
          | { 'application/octet-stream': infer Text }
      ? Text
      : never

type Present<T> = [NonNullable<T>] extends [never] ? unknown : NonNullable<T>
type Parameters<Name extends OperationName> = Present<operations[Name]['parameters']['query']> &
  Present<operations[Name]['parameters']['path']>

/** A list may be given as one value; optional parameters may be undefined. */
type QueryArgs<T> = {
  [Key in keyof T]: Several<NonNullable<T[Key]>> | (undefined extends T[Key] ? undefined : never)
}
type Several<T> = T extends readonly (infer Item)[] ? Item | readonly Item[] : T

type MemberOf<Name extends OperationName> =
  Parameters<Name> extends { fields?: infer Fields }
    ? NonNullable<Fields> extends readonly (infer Member)[]
      ? Member
      : never
    : never

/** The possible values of `source`. */
type SourceOf<Name extends OperationName> = Parameters<Name> extends { source?: infer Source } ? Source : undefined

/** If the JSON is one object around its records, `fields` has no effect on them. */
type TakesMembers<Name extends OperationName> = Body<Name> extends readonly unknown[] ? MemberOf<Name> : never

/** The parameters of an operation for JSON. */
export type Query<
  Name extends OperationName,
  Member = MemberOf<Name>,
  Fill = 'null',
  Basis = 'like-for-like',
  Source = SourceOf<Name>,
> = [keyof Parameters<Name>] extends [never]
  ? Record<string, never>
  : QueryArgs<Omit<Parameters<Name>, 'format' | 'bom' | 'fields' | 'fill' | 'basis' | 'source'>> &
      ([TakesMembers<Name>] extends [never] ? unknown : { readonly fields?: Member | readonly Member[] | undefined }) &
      (Parameters<Name> extends { fill?: unknown } ? { readonly fill?: Fill | undefined } : unknown) &
      (Parameters<Name> extends { basis?: unknown } ? { readonly basis?: Basis | undefined } : unknown) &
      (Parameters<Name> extends { source?: unknown } ? { readonly source?: Source | undefined } : unknown)

/** The parameters of an operation for a table. */
export type TableQuery<Name extends OperationName> = QueryArgs<Omit<Parameters<Name>, 'format'>>

type Schemas = components['schemas']
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Whether a record is one of those schemas. */
type IsNamed<Item, Names extends string> = true extends {
  [Name in Extract<keyof Schemas, Names>]: Same<Schemas[Name], Item>
}[Extract<keyof Schemas, Names>]
  ? true
  : false

/** Selects the variants of a series by a parameter: without it the named schemas are excluded, with it all others. */
type Chosen<Series, Names extends string, Selected> = Series extends readonly (infer Item)[]
  ? IsNamed<Item, Names> extends ([Selected] extends [undefined] ? false : true)
    ? Series
    : never
  : Series extends { data: infer Points }
    ? Omit<Series, 'data'> & { data: Chosen<Points, Names, Selected> }
    : Series
/** The variants without the members that other parameters than `fill`, `basis` and `source` add. */
type Usual<Name extends OperationName> = Chosen<
  Body<Name>,
  `Governance${string}WithParameters` | `Governance${string}Details`,
  undefined
>
type Filled<Name extends OperationName, Fill> =
  Parameters<Name> extends { fill?: unknown } ? Chosen<Usual<Name>, `Filled${string}`, Fill> : Usual<Name>
type Based<Name extends OperationName, Fill, Basis> =
  Parameters<Name> extends { basis?: unknown }
    ? Chosen<Filled<Name, Fill>, `${string}LikeForLike${string}`, Basis>
    : Filled<Name, Fill>

type WithSource<Series, Source> = [Chosen<Series, `${string}OfSource`, Source>] extends [never]
  ? Series
  : Chosen<Series, `${string}OfSource`, Source>
type Sourced<Name extends OperationName, Fill, Basis, Source> =
  Parameters<Name> extends { source?: unknown }
    ? WithSource<Based<Name, Fill, Basis>, Source>
    : Based<Name, Fill, Basis>

/** A body with only the requested members. */
type Narrowed<T, Member> = T extends readonly (infer Item)[]
  ? [keyof Item] extends [Member]
    ? T
    : Pick<Item, Extract<keyof Item, Member>>[]
  : T

/** The body of an operation's answer for these members, `fill`, `basis` and `source`. */
export type Answered<
  Name extends OperationName,
  Member = MemberOf<Name>,
  Fill = undefined,
  Basis = undefined,
  Source = undefined,
> = Narrowed<Sourced<Name, Fill, Basis, Source>, [TakesMembers<Name>] extends [never] ? PropertyKey : Member>

/** One record of a list, or one point of a series. */
export type RecordOf<T> = T extends readonly (infer Item)[]
  ? Item
  : T extends { data: infer Series }
    ? RecordOf<Series>
    : never

/** Makes the argument optional if all its members are. */
type Arguments<Args, Options = RequestOptions> =
  Record<never, never> extends Args ? [query?: Args, options?: Options] : [query: Args, options?: Options]

/** A table's formats. */
export type Format = 'csv' | 'ndjson' | 'parquet' | 'arrow'

/** An answer with a streamed body: `body` is a stream, `text()` and `arrayBuffer()` read all of it. */
export type Download = Response & { readonly body: ReadableStream<Uint8Array> }

/** An operation as a function. */
export interface Operation<Name extends OperationName> {
  /**
   * Returns the answer's body.
   * @throws ProblemError, ConnectionError, or the signal's reason.
   */
  <
    Member extends MemberOf<Name> = MemberOf<Name>,
    Fill extends 'null' | undefined = undefined,
    Basis extends 'like-for-like' | undefined = undefined,
    Source extends SourceOf<Name> | undefined = undefined,
  >(
    ...args: Arguments<Query<Name, Member, Fill, Basis, Source>>
  ): Promise<Answered<Name, Member, Fill, Basis, Source>>
  /**
   * Returns the body with the metadata from its headers.
   * @throws as the operation itself
   */
  answer<
    Member extends MemberOf<Name> = MemberOf<Name>,
    Fill extends 'null' | undefined = undefined,
    Basis extends 'like-for-like' | undefined = undefined,
    Source extends SourceOf<Name> | undefined = undefined,
  >(
    ...args: Arguments<Query<Name, Member, Fill, Basis, Source>>
  ): Promise<Answer<Answered<Name, Member, Fill, Basis, Source>>>
  /** The URL of the answer, for links and other programs. */
  url(...args: Arguments<Query<Name>, never>): string
}

/** An operation with records that are also available as a table. */
export interface TableOperation<Name extends OperationName> extends Operation<Name> {
  /**
   * The records as a file. No retry after the first byte.
   * @throws as the operation itself
   */
  download(format: Format, ...args: Arguments<TableQuery<Name>>): Promise<Download>
}

/** An operation with paged records; `limit` is the page size. */
export interface PagedOperation<Name extends OperationName> extends TableOperation<Name> {
  /**
   * Iterates over this page and all following ones. A record that changes its position during the iteration may be
   * missing or repeated.
   * @throws as the operation itself
   */
  pages<
    Member extends MemberOf<Name> = MemberOf<Name>,
    Fill extends 'null' | undefined = undefined,
    Basis extends 'like-for-like' | undefined = undefined,
    Source extends SourceOf<Name> | undefined = undefined,
  >(
    ...args: Arguments<Query<Name, Member, Fill, Basis, Source>>
  ): AsyncGenerator<Answered<Name, Member, Fill, Basis, Source>, void, undefined>
  /**
   * The records of these pages, one by one.
   * @throws as the operation itself
   */
  records<
    Member extends MemberOf<Name> = MemberOf<Name>,
    Fill extends 'null' | undefined = undefined,
    Basis extends 'like-for-like' | undefined = undefined,
    Source extends SourceOf<Name> | undefined = undefined,
  >(
    ...args: Arguments<Query<Name, Member, Fill, Basis, Source>>
  ): AsyncGenerator<RecordOf<Answered<Name, Member, Fill, Basis, Source>>, void, undefined>
}

/** The methods of an operation. */
export type Method<Name extends OperationName> =
  Parameters<Name> extends { cursor?: unknown }
    ? PagedOperation<Name>
    : Parameters<Name> extends { format?: unknown }
      ? TableOperation<Name>
      : Operation<Name>
