import type { RequestOptions } from './connection.ts'
import type { Answer } from './facts.ts'
import type { components, operations } from './schema.ts'

/** The name of an operation. */
export type OperationName = keyof operations

type Content<Name extends OperationName> = operations[Name]['responses'][200]['content']

/** What an operation answers, whatever it was asked. */
export type Body<Name extends OperationName> =
  Content<Name> extends { 'application/json': infer Json }
    ? Json
    : Content<Name> extends { 'image/svg+xml': infer Svg }
      ? Svg
      : never

type Given<T> = [NonNullable<T>] extends [never] ? unknown : NonNullable<T>
type Parameters<Name extends OperationName> = Given<operations[Name]['parameters']['query']> &
  Given<operations[Name]['parameters']['path']>

/** Lists may be given as one value; what may be left out may be undefined. */
type Asked<T> = {
  [Key in keyof T]: Several<NonNullable<T[Key]>> | (undefined extends T[Key] ? undefined : never)
}
type Several<T> = T extends readonly (infer Item)[] ? Item | readonly Item[] : T

type MemberOf<Name extends OperationName> =
  Parameters<Name> extends { fields?: infer Fields }
    ? NonNullable<Fields> extends readonly (infer Member)[]
      ? Member
      : never
    : never

/** Where what an operation tells of can come from. */
type SourceOf<Name extends OperationName> = Parameters<Name> extends { source?: infer Source } ? Source : undefined

/** Where JSON is one object around its records, all of them are whole. */
type TakesMembers<Name extends OperationName> = Body<Name> extends readonly unknown[] ? MemberOf<Name> : never

/** What an operation is asked with in JSON. */
export type Query<
  Name extends OperationName,
  Member = MemberOf<Name>,
  Fill = 'null',
  Basis = 'like-for-like',
  Source = SourceOf<Name>,
> = [keyof Parameters<Name>] extends [never]
  ? Record<string, never>
  : Asked<Omit<Parameters<Name>, 'format' | 'fields' | 'fill' | 'basis' | 'source'>> &
      ([TakesMembers<Name>] extends [never] ? unknown : { readonly fields?: Member | readonly Member[] | undefined }) &
      (Parameters<Name> extends { fill?: unknown } ? { readonly fill?: Fill | undefined } : unknown) &
      (Parameters<Name> extends { basis?: unknown } ? { readonly basis?: Basis | undefined } : unknown) &
      (Parameters<Name> extends { source?: unknown } ? { readonly source?: Source | undefined } : unknown)

/** What an operation is asked with for a table. */
export type TableQuery<Name extends OperationName> = Asked<Omit<Parameters<Name>, 'format'>>

type Schemas = components['schemas']
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Whether a record is one of those schemas. */
type IsNamed<Item, Names extends string> = true extends {
  [Name in Extract<keyof Schemas, Names>]: Same<Schemas[Name], Item>
}[Extract<keyof Schemas, Names>]
  ? true
  : false

/** What a parameter makes of a series: without it some schemas are out of question, with it all others are. */
type Chosen<Series, Names extends string, Given> = Series extends readonly (infer Item)[]
  ? IsNamed<Item, Names> extends ([Given] extends [undefined] ? false : true)
    ? Series
    : never
  : Series extends { data: infer Points }
    ? Omit<Series, 'data'> & { data: Chosen<Points, Names, Given> }
    : Series
type Filled<Name extends OperationName, Fill> =
  Parameters<Name> extends { fill?: unknown } ? Chosen<Body<Name>, `Filled${string}`, Fill> : Body<Name>
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

/** A body with the members that were asked for. */
type Narrowed<T, Member> = T extends readonly (infer Item)[]
  ? [keyof Item] extends [Member]
    ? T
    : Pick<Item, Extract<keyof Item, Member>>[]
  : T

/** What an operation answers when it is asked for these members, filled or not, on this basis or none, with its source or without. */
export type Answered<
  Name extends OperationName,
  Member = MemberOf<Name>,
  Fill = undefined,
  Basis = undefined,
  Source = undefined,
> = Narrowed<Sourced<Name, Fill, Basis, Source>, [TakesMembers<Name>] extends [never] ? PropertyKey : Member>

/** One record of a list, one point of a series. */
export type RecordOf<T> = T extends readonly (infer Item)[]
  ? Item
  : T extends { data: infer Series }
    ? RecordOf<Series>
    : never

/** What may be left out as a whole, is. */
type Arguments<Asked, Options = RequestOptions> =
  Record<never, never> extends Asked ? [query?: Asked, options?: Options] : [query: Asked, options?: Options]

/** A table's formats. */
export type Format = 'csv' | 'ndjson' | 'parquet' | 'arrow'

/** An answer whose bytes come as they are read: `body` is a stream of them, `text()` and `arrayBuffer()` read them all. */
export type Download = Response & { readonly body: ReadableStream<Uint8Array> }

/** An operation as a function. */
export interface Operation<Name extends OperationName> {
  /** What it answers. @throws ProblemError, ConnectionError, or the signal's reason. */
  <
    Member extends MemberOf<Name> = MemberOf<Name>,
    Fill extends 'null' | undefined = undefined,
    Basis extends 'like-for-like' | undefined = undefined,
    Source extends SourceOf<Name> | undefined = undefined,
  >(
    ...asked: Arguments<Query<Name, Member, Fill, Basis, Source>>
  ): Promise<Answered<Name, Member, Fill, Basis, Source>>
  /** The same with what its headers say of it. @throws as the operation itself */
  answer<
    Member extends MemberOf<Name> = MemberOf<Name>,
    Fill extends 'null' | undefined = undefined,
    Basis extends 'like-for-like' | undefined = undefined,
    Source extends SourceOf<Name> | undefined = undefined,
  >(
    ...asked: Arguments<Query<Name, Member, Fill, Basis, Source>>
  ): Promise<Answer<Answered<Name, Member, Fill, Basis, Source>>>
  /** Where the answer is, for links and for other programs. */
  url(...asked: Arguments<Query<Name>, never>): string
}

/** An operation whose records come as a table as well. */
export interface TableOperation<Name extends OperationName> extends Operation<Name> {
  /** The records as a file. Not tried again once its bytes come. @throws as the operation itself */
  download(format: Format, ...asked: Arguments<TableQuery<Name>>): Promise<Download>
}

/** An operation whose records come in pages, as large as `limit` says. */
export interface PagedOperation<Name extends OperationName> extends TableOperation<Name> {
  /** This page and all that follow; what changes its place meanwhile may be missed, or come twice. @throws as the operation itself */
  pages<
    Member extends MemberOf<Name> = MemberOf<Name>,
    Fill extends 'null' | undefined = undefined,
    Basis extends 'like-for-like' | undefined = undefined,
    Source extends SourceOf<Name> | undefined = undefined,
  >(
    ...asked: Arguments<Query<Name, Member, Fill, Basis, Source>>
  ): AsyncGenerator<Answered<Name, Member, Fill, Basis, Source>, void, undefined>
  /** The records of these pages, one by one. @throws as the operation itself */
  records<
    Member extends MemberOf<Name> = MemberOf<Name>,
    Fill extends 'null' | undefined = undefined,
    Basis extends 'like-for-like' | undefined = undefined,
    Source extends SourceOf<Name> | undefined = undefined,
  >(
    ...asked: Arguments<Query<Name, Member, Fill, Basis, Source>>
  ): AsyncGenerator<RecordOf<Answered<Name, Member, Fill, Basis, Source>>, void, undefined>
}

/** What there is of an operation. */
export type Method<Name extends OperationName> =
  Parameters<Name> extends { cursor?: unknown }
    ? PagedOperation<Name>
    : Parameters<Name> extends { format?: unknown }
      ? TableOperation<Name>
      : Operation<Name>
