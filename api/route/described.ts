/** What documents say of a route. */
export interface Described {
  /** Its operation id in the OpenAPI document, as a person would name a method: `listTokens`. */
  readonly operation: string
  /** Parts in braces are path parameters, declared in `query` like the others. */
  readonly path: string
  /** Served as well, with a `Link` to `path` (docs/contract.md, section 1). */
  readonly aliases?: readonly string[]
  readonly tag: string
  readonly summary: string
  readonly description: string
}

/** These members of a declaration that has more. */
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
