import { z } from 'zod'
import { datasets } from '../../../shared/datasets/list.ts'
import { toUnavailable } from '../../problem/problem.ts'
import { defineRoute } from '../../route/define-route.ts'

const PROBE_TIMEOUT_MS = 3000

export const readyRoute = defineRoute({
  path: '/health/ready',
  tag: 'Service',
  summary: 'Whether data can be served',
  description:
    'Ready when ClickHouse answers and has the tables of every dataset, until the process is told to stop. Without Redis the service still serves: it then learns of new data a second later, from the database.',
  query: {},
  response: z.strictObject({
    status: z.literal('ready'),
    clickhouse: z.literal('ok'),
    redis: z.enum(['ok', 'away']),
  }),
  datasets: [],
  volatile: true,
  handle: async ({ db, commits, stopping }) => {
    if (stopping?.aborted) throw toUnavailable('The service is stopping.')
    const tables = ['tokens', ...datasets.map((dataset) => dataset.series.table)]
    const probe = (table: string) =>
      db.rows({
        name: 'ready',
        sql: `SELECT 1 AS one FROM ${table} LIMIT 0`,
        schema: z.unknown(),
        signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
      })
    try {
      await Promise.all(tables.map(probe))
    } catch (error) {
      throw toUnavailable('The database does not answer, or is not set up yet.', error)
    }
    const redis = commits.source === 'redis' ? 'ok' : 'away'
    return { body: Buffer.from(JSON.stringify({ status: 'ready', clickhouse: 'ok', redis })), asOf: null }
  },
})
