import { z } from 'zod'
import { defineRoute } from '../../route/define-route.ts'

export const liveRoute = defineRoute({
  operation: 'getLiveness',
  path: '/health/live',
  tag: 'Service',
  summary: 'Whether the process answers at all',
  description: 'Does not use the database or Redis. `/health/ready` reports whether data can be served.',
  query: {},
  response: z
    .strictObject({ status: z.literal('ok').describe('Always `ok`.') })
    .meta({ id: 'Liveness', description: 'That the process answers.' }),
  datasets: [],
  volatile: true,
  handle: async () => ({ body: Buffer.from('{"status":"ok"}'), asOf: null }),
})
