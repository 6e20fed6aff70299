import type { OpenApi, Schema } from './shape.ts'

/** A member of an answer: its path, its type and its meaning. */
export interface DocumentedMember {
  readonly path: string
  readonly type: string
  readonly description: string
}

const nameOf = (ref: string) => ref.split('/').at(-1) ?? ref

function resolve({ components }: OpenApi, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema
  const found = components.schemas[nameOf(schema.$ref)] ?? {}
  return schema.description === undefined ? found : { ...found, description: schema.description }
}

/** A short type name: `number or null`, `list of Token`. */
export function toTypeName(schema: Schema): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref)
  if (schema.anyOf !== undefined) return schema.anyOf.map(toTypeName).join(' or ')
  if (schema.items !== undefined) return `list of ${toTypeName(schema.items)}`
  if (schema.const !== undefined) return `\`${schema.const}\``
  if (schema.enum !== undefined) return schema.enum.map((word) => `\`${word}\``).join(', ')
  const names = [schema.type ?? 'any'].flat()
  return names.map((name) => (name === 'string' && schema.format === 'date-time' ? 'time' : name)).join(' or ')
}

/** The members of an answer, including nested ones: `financialData.price`, `topHolders[].share`. */
export function toDocumentedMembers(document: OpenApi, schema: Schema, path = ''): DocumentedMember[] {
  const full = resolve(document, schema)
  if (full.items !== undefined) return toDocumentedMembers(document, full.items, path === '' ? '' : `${path}[]`)
  const inner = full.anyOf?.find(({ type }) => type !== 'null')
  if (inner !== undefined) return toDocumentedMembers(document, inner, path)
  return Object.entries(full.properties ?? {}).flatMap(([name, member]) => {
    const here = path === '' ? name : `${path}.${name}`
    const { description = '' } = resolve(document, member)
    return [{ path: here, type: toTypeName(member), description }, ...toDocumentedMembers(document, member, here)]
  })
}
