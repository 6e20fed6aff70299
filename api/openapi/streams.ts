import { z } from 'zod'
import { FORMATS } from '../formats/formats.ts'
import type { Route } from '../route/define-route.ts'
import { createSchemas, type Schemas } from './schemas.ts'
import type { Json, OpenApi, Schema } from './shape.ts'

const text = (description: string): Schema => ({ type: 'string', description })

/** An event of a stream (OpenAPI 3.2, "server-sent event streams"): its data is JSON in a text. */
function toEventSchema(name: string, data: z.ZodType, schemas: Schemas): Json {
  return {
    type: 'object',
    required: ['event', 'id', 'data'],
    properties: {
      event: { const: name },
      id: text('Version of the change event, for `Last-Event-ID`.'),
      data: { type: 'string', contentMediaType: 'application/json', contentSchema: schemas.toJson(data, 'output') },
    },
  }
}

/** The records of NDJSON, one on each line: those of the JSON answer's list, or of its `data`. */
function toLineSchema({ record, recordWith }: Route, schemas: Schemas): Schema | undefined {
  if (record === undefined) return undefined
  const shapes = [record, ...(recordWith?.shapes ?? [])]
  const note = { description: 'With `fields`, a record has only the members that it names.' }
  return { ...note, ...schemas.toJson(shapes.length === 1 ? record : z.union(shapes), 'output') }
}

/** The media types whose items OpenAPI 3.2 can describe. */
function toItems(route: Route, schemas: Schemas): Json {
  if (route.events !== undefined) {
    const events = Object.entries(route.events).map(([name, data]) => toEventSchema(name, data, schemas))
    return { [route.mediaType]: { itemSchema: { oneOf: events } } }
  }
  const line = toLineSchema(route, schemas)
  return line === undefined ? {} : { [FORMATS.ndjson.mediaType]: { itemSchema: line } }
}

/**
 * The document as OpenAPI 3.2, with the items of streams: events, and lines of NDJSON. In 3.1 a stream is only a text, and
 * generators of clients make a union of several media types, so that document has JSON alone.
 */
export function toOpenApi32(document: OpenApi, routes: readonly Route[]): OpenApi {
  const schemas = createSchemas()
  const paths = Object.fromEntries(
    routes.map((route) => {
      const operation = document.paths[route.path]?.get
      if (operation === undefined) throw new Error(`${route.path} is not in the document`)
      const answer = operation.responses[200]
      const content = { ...answer.content, ...toItems(route, schemas) } as typeof answer.content
      return [route.path, { get: { ...operation, responses: { ...operation.responses, 200: { ...answer, content } } } }]
    }),
  )
  const components = { ...document.components, schemas: { ...document.components.schemas, ...schemas.named } }
  return { ...document, openapi: '3.2.0', paths, components }
}
