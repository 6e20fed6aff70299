/** The documentation of a route. */
export interface Described {
  /** Its operation id in the OpenAPI document, as a method name: `listTokens`. */
  readonly operation: string
  /** Parts in braces are path parameters, declared in `query` like the others. */
  readonly path: string
  /** Also served, with a `Link` to `path` (docs/contract.md, section 1). */
  readonly aliases?: readonly string[]
  readonly tag: string
  readonly summary: string
  readonly description: string
}

/** Picks these members from a declaration with more. */
export function toDescribed({
  operation,
  path,
  aliases = [],
  tag,
  summary,
  description,
}: Described): Required<Described> {
  return { operation, path, aliases, tag, summary, description }
}
