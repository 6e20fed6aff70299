import { z } from 'zod'
import type { Json, Schema } from './shape.ts'

/** Removes redundant keywords: the bounds of every JavaScript integer, and the pattern of a date. */
function simplify(schema: Json): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  if (schema.format === 'date-time') delete schema.pattern
}

const DEFINITIONS = '#/$defs/'
const COMPONENTS = '#/components/schemas/'

/** Converts references to their form in an OpenAPI document. */
function toReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toReferences)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      name === '$ref' ? String(one).replace(DEFINITIONS, COMPONENTS) : toReferences(one),
    ]),
  )
}

/** The named schemas of a document, in order of first use. */
export interface Schemas {
  /**
   * Converts a schema to JSON Schema. A schema with an id in its metadata is added to the named ones, and referenced.
   */
  toJson(schema: z.ZodType, io: 'input' | 'output'): Schema
  readonly named: Readonly<Record<string, Schema>>
}

export function createSchemas(): Schemas {
  const named: Record<string, Schema> = {}
  return {
    named,
    toJson: (schema, io) => {
      // Wrapped in an array, so that the schema itself is also referenced.
      const { $defs = {}, items } = z.toJSONSchema(z.array(schema), {
        target: 'draft-2020-12',
        io,
        unrepresentable: 'any',
        override: ({ jsonSchema }) => simplify(jsonSchema as Json),
      })
      Object.assign(named, toReferences($defs))
      return toReferences(items) as Schema
    },
  }
}
