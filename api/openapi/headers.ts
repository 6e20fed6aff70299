import type { Json } from './shape.ts'

/** The headers of a document, as they come up: each is told once and referred to. */
export interface Headers {
  /** References to headers, from their names and what they say. */
  toJson(headers: Readonly<Record<string, string>>): Json
  readonly named: Readonly<Record<string, Json>>
}

export function createHeaders(): Headers {
  const named: Record<string, Json> = {}
  return {
    named,
    toJson: (headers) =>
      Object.fromEntries(
        Object.entries(headers).map(([name, description]) => {
          named[name] = { description, schema: { type: 'string' } }
          return [name, { $ref: `#/components/headers/${name}` }]
        }),
      ),
  }
}
