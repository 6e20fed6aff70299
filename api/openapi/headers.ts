import type { Json } from './shape.ts'

/** The headers of a document, in order of first use: each is defined once and referenced. */
export interface Headers {
  /** Returns references to headers, from their names and descriptions. */
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
