import { z } from 'zod'
import { defineRoute, type Route } from '../route/define-route.ts'

/** A document of the API: its version of OpenAPI, path, operation id, and how it is described. */
const DOCUMENTS = {
  '3.1': {
    operation: 'getOpenApi',
    path: '/openapi.json',
    description:
      'All operations with their parameters, responses, errors and links, generated from the schemas that validate requests.',
  },
  '3.2': {
    operation: 'getOpenApi32',
    path: '/openapi-3.2.json',
    description:
      'The document of `/openapi.json` with the items of streams: each event of `/data/stream`, and each line of NDJSON.',
  },
} as const

/** The route of an OpenAPI document; `write` generates it from the list of routes. */
export const openApiRoute = (version: keyof typeof DOCUMENTS, write: () => object): Route =>
  defineRoute({
    ...DOCUMENTS[version],
    tag: 'Service',
    summary: `This service as an OpenAPI ${version} document`,
    query: {},
    response: z.looseObject({ openapi: z.string().describe('Version of OpenAPI.') }),
    datasets: [],
    handle: async () => ({ body: Buffer.from(JSON.stringify(write())), asOf: null }),
  })
