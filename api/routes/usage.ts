import { z } from 'zod'
import { timeValue } from '../records/table.ts'
import { defineRoute } from '../route/define-route.ts'

const usage = z
  .strictObject({
    key: z
      .strictObject({
        id: z.string().describe('Id of the key, as its operator sees it.'),
        name: z.string().describe('Whose key it is.'),
      })
      .nullable()
      .meta({ description: 'The key that came with this request; null without one.' }),
    limit: z
      .strictObject({
        requests: z.int().describe('Most requests in a window.'),
        seconds: z.int().describe('How long a window is.'),
        used: z.int().describe('Requests of this window so far, with this one.'),
        remaining: z.int().describe('Requests that are left in this window.'),
        resetsAt: timeValue.meta({ description: 'When the next window begins at the earliest.' }),
      })
      .nullable()
      .meta({ description: 'How the window of the key stands, or of the address without one; null without a limit.' }),
  })
  .meta({ id: 'Usage', description: 'What a client has used of its limit.' })

export const usageRoute = defineRoute({
  operation: 'getUsage',
  path: '/data/usage',
  tag: 'Service',
  summary: 'What you have used of your limit',
  description:
    'The window of the key that comes with the request, as `X-API-Key` or `Authorization: Bearer`, or of the address without one. This request counts like any other. Every answer says the same in its headers `RateLimit-Policy` and `RateLimit`.',
  query: {},
  response: usage,
  datasets: [],
  volatile: true,
  handle: async ({ caller, now }) => {
    if (caller === undefined) return { body: Buffer.from('{"key":null,"limit":null}'), asOf: null }
    const { holder, allowance, standing } = caller
    const limit = {
      ...allowance,
      used: allowance.requests - standing.remaining,
      remaining: standing.remaining,
      resetsAt: new Date(now() + standing.resetMs).toISOString(),
    }
    const key = holder === undefined ? null : { id: holder.id, name: holder.name }
    return { body: Buffer.from(JSON.stringify({ key, limit } satisfies z.infer<typeof usage>)), asOf: null }
  },
})
