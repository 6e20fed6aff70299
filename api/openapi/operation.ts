import type { z } from 'zod'
import { groupBy } from '../../shared/group-by.ts'
import { FORMAT_NAMES, FORMATS, toColumns } from '../formats/formats.ts'
import { ANSWER_HEADERS, LIMIT_HEADERS } from '../http/headers.ts'
import { exampleOf, isRequired, takesSeveral } from '../parameters/parse.ts'
import type { Route } from '../route/define-route.ts'
import { toTableColumns } from './columns.ts'
import { exampleAnswers } from './examples.ts'
import { toFailuresOf } from './failures.ts'
import type { Headers } from './headers.ts'
import type { Schemas } from './schemas.ts'
import type { Json, MediaType, Operation, Parameter } from './shape.ts'

/** Parts that operations share. */
export interface Components {
  readonly schemas: Schemas
  readonly headers: Headers
}

/** A series without a default limit is long, and a first request should be short. */
const isLong = (name: string, schema: z.ZodType) => name === 'limit' && schema.safeParse(undefined).data === undefined

/**
 * Whether a first request should include the parameter: required ones, one of `id` and `name`, an interval that must be
 * chosen, the tokens of a basket, and the limit of a long series. Pages with a request form fill in only these.
 */
export function isTried(route: Route, name: string): boolean {
  const schema = route.query[name] as z.ZodType
  const isOfOne = route.query.id !== undefined && !takesSeveral(route.query.id)
  const isChosen = 'points' in route.query && route.query.start !== undefined && isRequired(route.query.start)
  const who = 'name' in route.query ? 'name' : 'id'
  const isBasket = 'top' in route.query && name === 'of'
  return (
    isRequired(schema) ||
    (isChosen && name === 'interval') ||
    isBasket ||
    isLong(name, schema) ||
    (isOfOne && name === who)
  )
}

function toParameters(route: Route, { schemas }: Components): Parameter[] {
  const { path, query, tableQuery } = route
  return Object.entries(query).map(([name, schema]) => {
    const { description = '', examples: _, ...rest } = schemas.toJson(schema, 'input')
    const inTables = tableQuery[name] ?? schema
    const { description: more = '', examples: __, ...several } = schemas.toJson(inTables, 'input')
    const isBoth = inTables !== schema
    const isInPath = path.includes(`{${name}}`)
    const example = exampleOf(schema)
    // Every value of another parameter is valid in both forms: only its default differs.
    const own = takesSeveral(inTables) && isBoth ? { anyOf: [rest, several] } : rest
    return {
      name,
      in: isInPath ? 'path' : 'query',
      required: isInPath || isRequired(schema),
      description: isBoth ? `${description} With another format than JSON: ${more}` : description,
      ...(takesSeveral(inTables) ? { style: 'form', explode: true } : {}),
      schema: isTried(route, name) || example === undefined ? own : { ...own, examples: [example] },
      ...(isTried(route, name) ? { example } : {}),
    }
  })
}

/** The names of a table's columns, and of those that a parameter adds. */
function toColumnsText(
  { record, recordWith }: { record: z.ZodObject } & Pick<Route, 'recordWith'>,
  format: Parameters<typeof toColumns>[2],
): string {
  const namesOf = (one: z.ZodObject, members: readonly string[]) =>
    toColumns(one, members, format)
      .map(({ name }) => name)
      .join(', ')
  const usual = Object.keys(record.shape).filter((member) => !(member in (recordWith?.members ?? {})))
  const all = `Columns: ${namesOf(record, usual)}.`
  if (recordWith === undefined) return all
  const brought = Object.keys(recordWith.record.shape).filter((member) => member in recordWith.members)
  const byCondition = groupBy(brought, (member) => recordWith.members[member] ?? '')
  const texts = [...byCondition].map(
    ([condition, members]) => ` With \`${condition}\` also ${namesOf(recordWith.record, members)}.`,
  )
  return [all, ...texts].join('')
}

/** The body without `format`, which is JSON for records. */
function toContent(route: Route, { schemas }: Components): Record<string, MediaType> {
  const { response, record, query, mediaType: type } = route
  const schema = schemas.toJson(response, 'output')
  const example = exampleAnswers[route.operation]
  const examples =
    example === undefined ? {} : { examples: { recorded: { summary: `GET ${example.url}`, value: example.answer } } }
  if (record === undefined) return { [type]: { schema, ...examples } }
  const fieldsNote =
    'fields' in query ? { description: 'With `fields`, a record has only the members that it names.' } : {}
  return { [type]: { schema: { ...fieldsNote, ...schema }, ...examples } }
}

/**
 * The other formats of records, by the values of `format`. For an operation with several media types or with a 206
 * answer, client generators produce a union, a stream or `unknown`, so both are described outside of its responses.
 */
function toTableFormats({ record, recordWith }: Pick<Route, 'record' | 'recordWith'>): Operation['x-formats'] {
  if (record === undefined) return undefined
  const tables = FORMAT_NAMES.filter((name) => name !== 'json').map((name) => {
    const { mediaType, shape, isBinary } = FORMATS[name]
    const description =
      shape === 'nested' ? 'One record as JSON on each line.' : toColumnsText({ record, recordWith }, FORMATS[name])
    return [name, { mediaType, isBinary, takesRange: isBinary, description }]
  })
  return Object.fromEntries(tables)
}

/** Volatile answers have no entity tag. */
const { ETag: _, ...HEADERS_WITHOUT_ETAG } = ANSWER_HEADERS

/** One route as an operation, with the links of its answers. */
export function toOperation(route: Route, components: Components, links: Json = {}): Operation {
  const formats = toTableFormats(route)
  const served = route.aliases.length === 0 ? '' : `\n\nServed at ${route.aliases.join(', ')} as well.`
  return {
    tags: [route.tag],
    operationId: route.operation,
    ...(route.deprecated === undefined ? {} : { deprecated: true }),
    summary: route.summary,
    description: `${route.description}${served}`,
    parameters: toParameters(route, components),
    // /data/status and /data/stream use these names.
    'x-datasets': route.datasets.map(({ name }) => name),
    ...(route.oneUnless === undefined ? {} : { 'x-one-unless': route.oneUnless }),
    ...(formats === undefined ? {} : { 'x-formats': formats, 'x-columns': toTableColumns(route) }),
    responses: {
      200: {
        description:
          route.record === undefined ? 'The answer.' : 'The response, as JSON unless another format is requested.',
        headers: components.headers.toJson({
          ...(route.volatile ? HEADERS_WITHOUT_ETAG : ANSWER_HEADERS),
          ...LIMIT_HEADERS,
          ...route.headers,
        }),
        content: toContent(route, components),
        ...(Object.keys(links).length === 0 ? {} : { links }),
      },
      ...(route.volatile ? {} : { 304: { $ref: '#/components/responses/NotModified' } }),
      ...toFailuresOf(route),
    },
  }
}
