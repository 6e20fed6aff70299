import { z } from 'zod'
import { nearestWord } from '../parameters/kinds.ts'

/** The part of JSON Schema that tools use. */
export interface ToolSchema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, ToolSchema>>
  readonly items?: ToolSchema
  readonly required?: readonly string[]
  readonly [keyword: string]: unknown
}

/**
 * The keywords in listed schemas: those that every client accepts which enforces schemas, such as OpenAI's strict mode,
 * and that cost few tokens. The server itself checks lengths and bounds and applies defaults; descriptions name the
 * important ones.
 */
const LISTED = {
  input: new Set(['type', 'description', 'enum', 'required']),
  // The server checks that required members of a result exist.
  output: new Set(['type', 'description', 'enum']),
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mapValues = <In, Out>(record: Readonly<Record<string, In>>, map: (value: In) => Out): Record<string, Out> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))

function toSubset(schema: ToolSchema, io: 'input' | 'output'): ToolSchema {
  const { properties = {}, items = {} } = schema
  return {
    ...Object.fromEntries(Object.entries(schema).filter(([keyword]) => LISTED[io].has(keyword))),
    ...(Object.keys(properties).length > 0 && { properties: mapValues(properties, (one) => toSubset(one, io)) }),
    ...(Object.keys(items).length > 0 && { items: toSubset(items, io) }),
    // Results may get further members.
    ...(schema.type === 'object' && io === 'input' && { additionalProperties: false }),
  }
}

/** The schema of a tool's arguments or result as listed for clients. */
const toListedSchema = (schema: z.ZodObject, io: 'input' | 'output'): ToolSchema =>
  toSubset(z.toJSONSchema(schema, { io }) as ToolSchema, io)

/** Values that clients send for an omitted argument. */
const isBlank = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  (typeof value === 'string' && value.trim() === '') ||
  (Array.isArray(value) && value.length === 0)

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

/** Parses a JSON text; returns the text itself if it is no JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function toText(value: unknown): unknown {
  if (Array.isArray(value) && value.every(isScalar)) return value.join()
  return isScalar(value) ? String(value) : value
}

function toList(value: unknown, items: ToolSchema): unknown {
  const parsed = typeof value === 'string' ? readJson(value) : value
  if (Array.isArray(parsed)) return parsed.filter((one) => !isBlank(one)).map((one) => coerce(one, items))
  if (parsed === null || isBlank(value)) return null
  // Text that begins like a list or an object is not accepted as a plain text.
  if (!isScalar(parsed) || /^\s*[[{]/.test(String(parsed))) return value
  return [coerce(typeof parsed === 'string' ? parsed : value, items)]
}

function toObject(value: unknown, { properties = {}, required = [] }: ToolSchema): unknown {
  if (!isRecord(value)) return value
  const coerced = Object.entries(value).map(([name, one]): [string, unknown] => {
    const declared = Object.hasOwn(properties, name) ? properties[name] : undefined
    return [name, coerce(one, declared ?? { type: 'string' })]
  })
  return Object.fromEntries(coerced.filter(([name, one]) => required.includes(name) || !isBlank(one)))
}

/**
 * Converts an argument to its declared type if possible: models send JSON as text, numbers as text, one value instead
 * of a list, and nulls or empty texts for omitted values. Any other value is returned unchanged, for the schema to
 * reject.
 */
function coerce(value: unknown, declared: ToolSchema): unknown {
  if (declared.type === 'string') return toText(value)
  if (declared.type === 'array') return toList(value, declared.items ?? {})
  const parsed = typeof value === 'string' ? readJson(value) : value
  return declared.type === 'object' ? toObject(parsed, declared) : parsed
}

/** Describes the error of an argument; for an unknown argument, lists the known ones. */
function toIssue(issue: z.core.$ZodIssue, names: readonly string[]): { message: string; path: PropertyKey[] } {
  if (issue.code !== 'unrecognized_keys') return { message: issue.message, path: issue.path }
  const [unknown = ''] = issue.keys
  const near = nearestWord(unknown, names)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  return {
    message: `There is no argument "${unknown.slice(0, 60)}".${hint} Arguments: ${names.join(', ')}.`,
    path: issue.path,
  }
}

/** A tool's arguments for the protocol's server: the listed schema, and the validation of a call. */
export function toArguments(input: z.ZodObject) {
  const listed = toListedSchema(input, 'input')
  return {
    '~standard': {
      version: 1 as const,
      vendor: 'dao-data',
      validate: (value: unknown) => {
        const { data, error } = input.safeParse(coerce(value, listed))
        if (error === undefined) return { value: data }
        return { issues: error.issues.map((issue) => toIssue(issue, Object.keys(input.shape))) }
      },
      jsonSchema: { input: () => ({ ...listed }), output: () => ({ ...listed }) },
    },
  }
}

/** A tool's result for the protocol's server. */
export function toResultSchema(output: z.ZodObject) {
  const listed = toListedSchema(output, 'output')
  return {
    '~standard': {
      version: 1 as const,
      vendor: 'dao-data',
      validate: (value: unknown) => output['~standard'].validate(value),
      jsonSchema: { input: () => ({ ...listed }), output: () => ({ ...listed }) },
    },
  }
}
