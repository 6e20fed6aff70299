import { z } from 'zod'
import { timeValue } from '../formats/formats.ts'
import { defineRoute } from '../route/define-route.ts'

const usage = z
  .strictObject({
    key: z
      .strictObject({
        id: z.string().describe('Id of the key, as its operator sees it.'),
        name: z.string().describe('Whose key it is.'),
      })
      .nullable()
      .meta({ description: 'The key of this request; null without a key.' }),
    limit: z
      .strictObject({
        requests: z.int().describe('Most requests in a window.'),
        seconds: z.int().describe('How long a window is.'),
        used: z.int().describe('Requests of this window so far, with this one.'),
        remaining: z.int().describe('Remaining requests in this window.'),
        resetsAt: timeValue.meta({ description: 'When the next window begins at the earliest.' }),
      })
      .nullable()
      .meta({ description: 'The window of the key, or of the IP address without a key; null without a limit.' }),
  })
  .meta({ id: 'Usage', description: 'Usage of the request limit by one client.' })

export const usageRoute = defineRoute({
  operation: 'getUsage',
  path: '/data/usage',
  tag: 'Service',
  summary: 'Usage of your request limit',
  description:
    "The window of the request's key (`X-API-Key` or `Authorization: Bearer`), or of the IP address without a key. This request counts too. Every response has the same values in the headers `RateLimit-Policy` and `RateLimit`.",
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
