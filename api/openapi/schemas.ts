import { z } from 'zod'
import type { Json, Schema } from './shape.ts'

/** Leaves out what says nothing to a reader: the bounds of every JavaScript integer, and how a date is spelled. */
function simplify(schema: Json): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  if (schema.format === 'date-time') delete schema.pattern
}

const DEFINITIONS = '#/$defs/'
const COMPONENTS = '#/components/schemas/'

/** References as an OpenAPI document has them. */
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

/** The named schemas of a document, as they come up. */
export interface Schemas {
  /** A schema in JSON. Those that have an id in their metadata are put among the named ones, and referred to. */
  toJson(schema: z.ZodType, io: 'input' | 'output'): Schema
  readonly named: Readonly<Record<string, Schema>>
}

export function createSchemas(): Schemas {
  const named: Record<string, Schema> = {}
  return {
    named,
    toJson: (schema, io) => {
      // As an item the schema itself is referred to as well.
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
