import type { OpenApi, Schema } from '../api/openapi/shape.ts'

/** Parts of JSON Schema that `Schema` has no member for. */
type Full = Schema & {
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
}

const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
)

export const isPythonName = (name: string) => /^[A-Za-z_]\w*$/.test(name) && !KEYWORDS.has(name)

/** `getTokenProfile` is `get_token_profile`; a keyword gets an underscore at its end. */
export function toPythonName(name: string): string {
  const snake = name.replaceAll(/[A-Z]+/g, (capitals) => `_${capitals.toLowerCase()}`).replaceAll(/^_|-/g, '')
  return KEYWORDS.has(snake) ? `${snake}_` : snake
}

const nameOf = (ref: string) => ref.split('/').at(-1) ?? ref

const capitalize = (name: string) => name.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())

const literal = (value: unknown) => JSON.stringify(value)

const union = (types: readonly string[]): string => {
  const each = [...new Set(types)].filter((type) => type !== 'None')
  if (each.length === 0) return 'None'
  const one = each.length === 1 ? `${each[0]}` : `Union[${each.join(', ')}]`
  return types.includes('None') ? `Optional[${one}]` : one
}

const PRIMITIVES: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
}

/** A record that differs with parameters: one schema for each. `filled` are the ones of `fill=null`. */
const isFilled = ({ items }: Schema) => nameOf(items?.$ref ?? '').startsWith('Filled')

/** An object with the members of all; those that some lack are optional. */
function mergeSchemas(schemas: readonly Full[]): Full {
  const [first = {}] = schemas
  const properties: Record<string, Schema> = {}
  for (const key of new Set(schemas.flatMap((schema) => Object.keys(schema.properties ?? {})))) {
    const values = schemas.flatMap((schema) => schema.properties?.[key] ?? [])
    const areObjects = values.every((value) => value.properties !== undefined)
    properties[key] = areObjects ? mergeSchemas(values) : (values[0] ?? {})
  }
  const required = Object.keys(properties).filter((key) => schemas.every((schema) => schema.required?.includes(key)))
  return { ...first, properties, required }
}

interface Class {
  readonly name: string
  readonly description: string
  readonly required: readonly (readonly [string, string])[]
  readonly optional: readonly (readonly [string, string])[]
}

const member = ([name, type]: readonly [string, string]) => `    ${name}: ${type}`
const entry = ([name, type]: readonly [string, string]) => `${literal(name)}: ${literal(type)}`

/** A class, or the functional form if a member is no name in Python. */
function toClassText({ name, description, required, optional }: Class): string {
  const doc = `    """${description}"""`
  const isPlain = [...required, ...optional].every(([one]) => isPythonName(one))
  if (isPlain && optional.length === 0) return [`class ${name}(TypedDict):`, doc, ...required.map(member)].join('\n')
  const base = `_${name}`
  if (isPlain)
    return [
      `class ${base}(TypedDict):`,
      ...(required.length === 0 ? ['    pass'] : required.map(member)),
      `\n\nclass ${name}(${base}, total=False):`,
      ...[doc, ...optional.map(member)],
    ].join('\n')
  return [
    `${base} = TypedDict("${base}", {${required.map(entry).join(', ')}})`,
    `_${name}Optional = TypedDict("_${name}Optional", {${optional.map(entry).join(', ')}}, total=False)`,
    `\n\nclass ${name}(${base}, _${name}Optional):`,
    doc,
  ].join('\n')
}

/** The types of answers in Python, as classes that are added when they are first named. */
export interface PythonTypes {
  /** The type of an answer, for requests without or with `fill=null`. */
  bodyOf(operation: string, schema: Schema, filled: boolean): { readonly body: string; readonly record: string }
  /** Whether `fill=null` gives other records. */
  hasFilled(schema: Schema): boolean
  text(): string
}

export function createPythonTypes({ components }: OpenApi): PythonTypes {
  const classes = new Map<string, Class>()
  const schemaOf = (ref: string) => (components.schemas[nameOf(ref)] ?? {}) as Full

  function addClass(name: string, schema: Full, optional: ReadonlySet<string>, filled: boolean): string {
    if (classes.has(name)) return name
    const members = Object.entries(schema.properties ?? {}).map(
      ([key, one]) => [key, toType(one, filled, `${name}${capitalize(key)}`)] as const,
    )
    classes.set(name, {
      name,
      description: schema.description ?? '',
      required: members.filter(([key]) => !optional.has(key)),
      optional: members.filter(([key]) => optional.has(key)),
    })
    return name
  }

  const optionalOf = ({ properties = {}, required = [] }: Full) =>
    new Set(Object.keys(properties).filter((key) => !required.includes(key)))

  /** A named schema. If its rows differ with `fill=null`, there is a second class for them. */
  function toNamed(ref: string, filled: boolean): string {
    const schema = schemaOf(ref)
    if (schema.properties === undefined) return toType(schema, filled, nameOf(ref))
    const isOther = filled && hasFilled({ $ref: ref })
    return addClass(`${isOther ? 'Filled' : ''}${nameOf(ref)}`, schema, optionalOf(schema), filled)
  }

  /** One record for all that parameters other than `fill` can bring: members of some only are optional. */
  function toWidest(refs: readonly string[]): string {
    const [first = ''] = refs
    if (refs.length === 1) return toNamed(first, false)
    const merged = mergeSchemas(refs.map(schemaOf))
    return addClass(`${nameOf(first)}Record`, merged, optionalOf(merged), false)
  }

  function toRecords(variants: readonly Schema[], filled: boolean): string {
    const chosen = variants.filter((variant) => isFilled(variant) === filled)
    const refs = (chosen.length > 0 ? chosen : variants).map(({ items }) => items?.$ref ?? '')
    return `List[${toWidest(refs)}]`
  }

  const flatten = (schema: Schema): readonly Schema[] => schema.anyOf?.flatMap(flatten) ?? [schema]
  const isListOfNamed = ({ items }: Schema) => items?.$ref !== undefined

  function toType(schema: Full, filled: boolean, name: string): string {
    if (schema.$ref !== undefined) return toNamed(schema.$ref, filled)
    const variants = flatten(schema)
    if (variants.length > 1 && variants.every(isListOfNamed)) return toRecords(variants, filled)
    if (variants.length > 1) return union(variants.map((one) => toType(one, filled, name)))
    if (schema.items !== undefined) return `List[${toType(schema.items, filled, name)}]`
    if (schema.properties !== undefined) return addClass(name, schema, optionalOf(schema), filled)
    if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`
    if (schema.enum !== undefined) return `Literal[${schema.enum.map(literal).join(', ')}]`
    if (typeof schema.additionalProperties === 'object')
      return `Dict[str, ${toType(schema.additionalProperties, filled, name)}]`
    const types = [schema.type ?? []].flat().map((type) => PRIMITIVES[type])
    if (types.length === 0 || types.includes(undefined)) throw new Error(`${name}: no type for ${literal(schema)}`)
    return union(types.map(String))
  }

  function hasFilled(schema: Schema): boolean {
    if (schema.$ref !== undefined) {
      const { data } = schemaOf(schema.$ref).properties ?? {}
      return data !== undefined && hasFilled(data)
    }
    return flatten(schema).some(isFilled) && !flatten(schema).every(isFilled)
  }

  return {
    hasFilled,
    bodyOf: (operation, schema, filled) => {
      const name = `${operation[0]?.toUpperCase()}${operation.slice(1)}Record`
      const body = toType(schema, filled, name)
      const data = schema.$ref === undefined ? undefined : schemaOf(schema.$ref).properties?.data
      const list = data === undefined ? body : toType(data, filled, name)
      return { body, record: /^List\[(.*)\]$/.exec(list)?.[1] ?? 'Any' }
    },
    text: () => [...classes.values()].map(toClassText).join('\n\n\n'),
  }
}
