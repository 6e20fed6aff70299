export type Json = Record<string, unknown>

/** The part of JSON Schema that pages read. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly description?: string
  readonly default?: unknown
  readonly maximum?: number
  readonly examples?: readonly unknown[]
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly description: string
  readonly schema: Schema
  /** Value for a first request; absent if a first request should omit the parameter. */
  readonly example?: unknown
}

export interface MediaType {
  readonly schema: Schema
  readonly examples?: { readonly recorded: { readonly summary: string; readonly value: unknown } }
}

/** A column of a table. */
export interface TableColumn {
  readonly name: string
  readonly type: 'string' | 'number' | 'integer' | 'boolean' | 'time' | 'json'
  /** Whether some values may be unknown. */
  readonly nullable: boolean
}

export interface Operation {
  readonly tags: readonly string[]
  readonly operationId: string
  readonly deprecated?: boolean
  readonly summary: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  /** The datasets of the answer, by the names of `/data/status`. */
  readonly 'x-datasets': readonly string[]
  /** The parameter with which an operation about one token or DAO needs neither `id` nor `name`. */
  readonly 'x-one-unless'?: string
  /** Media types of the answer for other values of `format` than JSON. `takesRange`: `Range` is answered with 206. */
  readonly 'x-formats'?:
    | Readonly<
        Record<
          string,
          {
            readonly mediaType: string
            readonly isBinary: boolean
            readonly takesRange: boolean
            readonly description: string
          }
        >
      >
    | undefined
  /** The columns of tables with the types of their values; CSV has `json` as text. */
  readonly 'x-columns'?: readonly TableColumn[]
  readonly responses: { readonly 200: { readonly content: Readonly<Record<string, MediaType>> } & Json } & Json
}

/** An OpenAPI document of this service. */
export interface OpenApi {
  readonly openapi: string
  readonly info: Json
  readonly servers: readonly Json[]
  readonly security: readonly Json[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> } & Json
}
