import { INTERVALS, type Interval } from '../../shared/intervals.ts'
import { type DocumentedMember, toDocumentedMembers } from '../openapi/members.ts'
import type { OpenApi, Operation, Schema } from '../openapi/shape.ts'
import { nearestPath } from '../parameters/kinds.ts'
import { Mistake } from './mistake.ts'
import type { Source } from './source.ts'

/** A resource: a path of the API with records. The tools take it as `topic`, without `/data/`. */
export interface Resource {
  readonly name: string
  readonly path: string
  readonly operation: Operation
  /** Whether it is about several tokens or DAOs, about one, or about none. */
  readonly takes: 'several' | 'one' | 'none'
  /** Whether it takes only an id, and without one is about all entities together. */
  readonly mayBeAll: boolean
  /** The parameter that may replace the one that it is about. */
  readonly oneUnless: string | undefined
  /** Finest first; empty unless it is a series. */
  readonly intervals: readonly Interval[]
  /** The members of a record; those of nested lists with `[]`. */
  readonly members: readonly DocumentedMember[]
  /** Whether the JSON is one object around the records, which supports no `fields`. */
  readonly isWrapped: boolean
  has(parameter: string): boolean
}

/** Paths with their own tool, or without records. */
const EXCLUDED = new Set([
  ...['search', 'status', 'status/coverage', 'stream', 'usage', 'tokens/profile', 'daos/profile'],
  ...['provenance', 'provenance/raw'],
])

const isSeveral = ({ type }: Schema) => type === 'array'

function toIntervals({ parameters }: Operation): readonly Interval[] {
  const words = parameters.find(({ name }) => name === 'interval')?.schema.enum ?? []
  return INTERVALS.filter((interval) => words.includes(interval))
}

/** If the JSON is one object around the records, the members are those of its list. */
function toRecordMembers(document: OpenApi, operation: Operation): Pick<Resource, 'members' | 'isWrapped'> {
  const schema = operation.responses[200].content['application/json']?.schema ?? {}
  const members = toDocumentedMembers(document, schema)
  const inside = members.filter(({ path }) => path.startsWith('data[].'))
  if (inside.length === 0) return { members, isWrapped: false }
  const unwrapped = inside.map((member) => ({ ...member, path: member.path.slice('data[].'.length) }))
  return { members: unwrapped, isWrapped: true }
}

function toResource(document: OpenApi, path: string, operation: Operation): Resource {
  const has = (parameter: string) => operation.parameters.some(({ name }) => name === parameter)
  const id = operation.parameters.find(({ name }) => name === 'id')
  return {
    name: path.slice('/data/'.length),
    path,
    operation,
    takes: id === undefined ? 'none' : isSeveral(id.schema) ? 'several' : 'one',
    mayBeAll: id !== undefined && !has('name'),
    oneUnless: operation['x-one-unless'],
    intervals: toIntervals(operation),
    ...toRecordMembers(document, operation),
    has,
  }
}

const resourcesOf = new WeakMap<OpenApi, readonly Resource[]>()

/** Every resource, in the order of the documentation. */
export async function readResources(source: Source): Promise<readonly Resource[]> {
  const document = await source.document()
  const cached = resourcesOf.get(document)
  if (cached !== undefined) return cached
  const resources = Object.entries(document.paths)
    .filter(([path]) => path.startsWith('/data/') && !EXCLUDED.has(path.slice('/data/'.length)))
    .map(([path, { get }]) => toResource(document, path, get))
  resourcesOf.set(document, resources)
  return resources
}

/** @throws Mistake that names the most similar resource, or lists all resources if none is similar. */
export async function findResource(source: Source, name: string): Promise<Resource> {
  const resources = await readResources(source)
  const requested = name.replace(/^\/?(data\/)?/, '')
  const found = resources.find((resource) => resource.name === requested)
  if (found !== undefined) return found
  const names = resources.map((resource) => resource.name)
  const near = nearestPath(requested, names)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  throw new Mistake(`There is no topic "${name}".${hint} Topics: ${names.join(', ')}.`)
}
