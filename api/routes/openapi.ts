import { z } from 'zod'
import { defineRoute, type Route } from '../route/define-route.ts'

/** The OpenAPI document; `write` generates it from the list of routes. */
export const openApiRoute = (write: () => object): Route =>
  defineRoute({
    operation: 'getOpenApi',
    path: '/openapi.json',
    tag: 'Service',
    summary: 'This service as an OpenAPI 3.1 document',
    description:
      'All operations with their parameters, responses and errors, generated from the schemas that validate requests.',
    query: {},
    response: z.looseObject({ openapi: z.string().describe('Version of OpenAPI.') }),
    datasets: [],
    handle: async () => ({ body: Buffer.from(JSON.stringify(write())), asOf: null }),
  })
