import { z } from 'zod'
import { defineRoute } from '../../route/define-route.ts'

export const liveRoute = defineRoute({
  path: '/health/live',
  tag: 'Service',
  summary: 'Whether the process answers at all',
  query: {},
  response: z.strictObject({ status: z.literal('ok') }),
  datasets: [],
  volatile: true,
  handle: async () => ({ body: Buffer.from('{"status":"ok"}'), asOf: null }),
})
