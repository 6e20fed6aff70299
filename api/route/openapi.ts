import { z } from 'zod'
import { FORMAT_NAMES, FORMATS } from '../answers/formats.ts'
import { ANSWER_HEADERS, RANGE_HEADERS } from '../http/headers.ts'
import { exampleOf, isRequired, takesSeveral } from '../parameters/parse.ts'
import { PROBLEM_CODES, type ProblemCode } from '../problem/codes.ts'
import { problemBody } from '../problem/problem.ts'
import { toColumns } from '../records/columns.ts'
import type { Route } from './define-route.ts'

type Json = Record<string, unknown>

function toSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io, unrepresentable: 'any' })
  return rest
}

function toParameters({ path, query, tableQuery }: Route): Json[] {
  return Object.entries(query).map(([name, schema]) => {
    const { description, examples: _, ...rest } = toSchema(schema, 'input')
    const inTables = tableQuery[name] ?? schema
    const { description: more, examples: __, ...several } = toSchema(inTables, 'input')
    const isBoth = inTables !== schema
    const example = exampleOf(schema)
    const place = path.includes(`{${name}}`) ? 'path' : 'query'
    return {
      name,
      in: place,
      required: place === 'path' || isRequired(schema),
      ...(description === undefined
        ? {}
        : { description: isBoth ? `${description} With another format than JSON: ${more}` : description }),
      ...(takesSeveral(inTables) ? { style: 'form', explode: true } : {}),
      schema: isBoth ? { anyOf: [rest, several] } : rest,
      ...(example === undefined ? {} : { example }),
    }
  })
}

/** The codes that a route can fail with beyond those of every route. */
function toCodes(route: Route): ProblemCode[] {
  const single = 'id' in route.query && !takesSeveral(route.query.id as z.ZodType)
  const optional: [ProblemCode, boolean][] = [
    ['missing_parameter', single || Object.values(route.query).some(isRequired)],
    ['invalid_parameter', Object.keys(route.query).length > 0],
    ['not_found', single || route.path.includes('{')],
    ['no_data', route.mayHaveNoData],
    ['ambiguous_name', single],
    ['range_not_satisfiable', route.record !== undefined],
  ]
  const common: ProblemCode[] = ['unknown_parameter', 'method_not_allowed', 'not_acceptable', 'internal', 'unavailable']
  return [...optional.filter(([, holds]) => holds).map(([code]) => code), ...common]
}

function toErrors(route: Route): Json {
  const byStatus = new Map<number, ProblemCode[]>()
  for (const code of toCodes(route)) {
    const { status } = PROBLEM_CODES[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const problem = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
  const entries = [...byStatus].sort(([a], [b]) => a - b)
  return Object.fromEntries(
    entries.map(([status, codes]) => [
      status,
      {
        description: codes.map((code) => `\`${code}\`: ${PROBLEM_CODES[code].title}`).join('; '),
        ...(status === 503 ? { headers: toHeaders({ 'Retry-After': 'Seconds after which to try again.' }) } : {}),
        ...(status === 405 ? { headers: toHeaders({ Allow: 'The methods that are allowed.' }) } : {}),
        content: problem,
      },
    ]),
  )
}

const toHeaders = (headers: Readonly<Record<string, string>>): Json =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )

/** A body of each format; a table is described by the names of its columns. */
function toContent(route: Route): Json {
  const { response, record, query, mediaType: type } = route
  const schema = toSchema(response, 'output')
  if (record === undefined) return { [type]: { schema } }
  const some = 'fields' in query ? { description: 'With `fields`, a record has only the members that it names.' } : {}
  const own = { [type]: { schema: { ...some, ...schema } } }
  const tables = FORMAT_NAMES.filter((name) => name !== 'json').map((name) => {
    const { mediaType, shape, isBinary } = FORMATS[name]
    const columns = toColumns(record, Object.keys(record.shape), FORMATS[name]).map((column) => column.name)
    const description = shape === 'nested' ? 'One record as JSON on each line.' : `Columns: ${columns.join(', ')}.`
    return [mediaType, { schema: isBinary ? { description } : { type: 'string', description } }]
  })
  return { ...own, ...Object.fromEntries(tables) }
}

/** One range of a body that is read in parts. */
const PART: Json = {
  description: 'The bytes that `Range` asks for, unless `If-Range` names others.',
  headers: toHeaders({ ...ANSWER_HEADERS, ...RANGE_HEADERS }),
  content: Object.fromEntries(
    FORMAT_NAMES.filter((name) => FORMATS[name].isBinary).map((name) => [
      FORMATS[name].mediaType,
      { schema: { description: 'A part of the table.' } },
    ]),
  ),
}

/** Answers of the moment have no entity tag. */
const { ETag: _, ...MOMENT_HEADERS } = ANSWER_HEADERS

function toOperation(route: Route): Json {
  const served = route.aliases.length === 0 ? '' : `\n\nServed at ${route.aliases.join(', ')} as well.`
  return {
    tags: [route.tag],
    operationId: route.path
      .split(/[^A-Za-z0-9]+/)
      .filter((word) => word !== '')
      .join('-'),
    summary: route.summary,
    description: `${route.description ?? ''}${served}`.trim(),
    parameters: toParameters(route),
    responses: {
      200: {
        description: 'The answer.',
        headers: toHeaders({ ...(route.volatile ? MOMENT_HEADERS : ANSWER_HEADERS), ...route.headers }),
        content: toContent(route),
      },
      ...(route.record === undefined ? {} : { 206: PART }),
      ...(route.volatile ? {} : { 304: { description: 'The client has this answer: `If-None-Match` names it.' } }),
      ...toErrors(route),
    },
  }
}

/** The OpenAPI 3.1 document of a list of routes, from the schemas that validate requests. */
export function toOpenApi(routes: readonly Route[]): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'dao-data',
      version: '1.0.0',
      description:
        'Read-only data about decentralized organizations and their tokens. Times are ISO 8601 UTC, money is in US dollars, an unknown number is null. Failures are problem+json (RFC 9457); their codes are explained at /docs/errors.',
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths: Object.fromEntries(routes.map((route) => [route.path, { get: toOperation(route) }])),
    components: { schemas: { Problem: toSchema(problemBody, 'output') } },
  }
}
