import { z } from 'zod'
import { defineRoute } from '../../route/define-route.ts'

export const liveRoute = defineRoute({
  operation: 'getLiveness',
  path: '/health/live',
  tag: 'Service',
  summary: 'Whether the process answers at all',
  description: 'Asks nothing of database or Redis: use `/health/ready` to know whether data can be served.',
  query: {},
  response: z
    .strictObject({ status: z.literal('ok').describe('Always this: who answers at all is alive.') })
    .meta({ id: 'Liveness', description: 'That the process answers.' }),
  datasets: [],
  volatile: true,
  handle: async () => ({ body: Buffer.from('{"status":"ok"}'), asOf: null }),
})
