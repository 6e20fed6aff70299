import { z } from 'zod'
import { toUnavailable } from '../../problem/problem.ts'
import { type AppContext, defineRoute } from '../../route/define-route.ts'

export const readyRoute = defineRoute({
  operation: 'getReadiness',
  path: '/health/ready',
  tag: 'Service',
  summary: 'Whether data can be served',
  description:
    'Ready when ClickHouse responds and has the tables of every dataset, until the process receives a stop signal. Without Redis the service still works: it then detects new data within a second by polling the database, and each process counts rate limits separately.',
  query: {},
  response: z
    .strictObject({
      status: z.literal('ready').describe('Always this: otherwise the answer is a problem.'),
      clickhouse: z.literal('ok').describe('The database answers and has every table.'),
      redis: z
        .enum(['ok', 'away'])
        .describe('Whether change events arrive through Redis, or a second later without it.'),
      limits: z
        .enum(['off', 'shared', 'per process'])
        .describe(
          'How requests are counted if a rate limit is set: across all processes in Redis, or per process while Redis is unavailable or refuses writes, for example at its memory limit or after a failover.',
        ),
      clockAhead: z.int().optional().meta({
        description:
          "By how many seconds this process's clock is ahead of the database's, where that is over 300; the age of data is then judged by the database's clock.",
      }),
    })
    .meta({ id: 'Readiness', description: 'That data can be served.' }),
  datasets: [],
  volatile: true,
  handle: async ({ changeFeed, readiness, stopping, limits }) => {
    refuseIfStopping(stopping)
    const aheadMs = await readiness().catch((error: unknown) => {
      throw toUnavailable('The database does not answer, or is not set up yet.', error)
    })
    // The stop signal may have arrived while the database was slow to answer.
    refuseIfStopping(stopping)
    const redis = changeFeed.source === 'redis' ? 'ok' : 'away'
    const ready = { status: 'ready', clickhouse: 'ok', redis, limits: await readLimits(limits), ...toAhead(aheadMs) }
    return { body: Buffer.from(JSON.stringify(ready)), asOf: null }
  },
})

function refuseIfStopping(stopping: AppContext['stopping']): void {
  if (stopping?.aborted) throw toUnavailable('The service is stopping.')
}

const toAhead = (ms: number) => (ms === 0 ? {} : { clockAhead: Math.round(ms / 1000) })

async function readLimits(limits: AppContext['limits']): Promise<'off' | 'shared' | 'per process'> {
  if (limits === undefined || (limits.keys === undefined && limits.anonymous === undefined)) return 'off'
  return (await limits.counting.isShared()) ? 'shared' : 'per process'
}
