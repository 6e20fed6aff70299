import { z } from 'zod'
import { datasets } from '../../../shared/datasets/list.ts'
import type { Database } from '../../../shared/store/clickhouse.ts'
import { probe } from '../../../shared/store/probe.ts'
import { toUnavailable } from '../../problem/problem.ts'
import { defineRoute } from '../../route/define-route.ts'

const PROBE_TIMEOUT_MS = 3000
/** Load balancers and orchestrators ask every few seconds each. */
const HOLDS_MS = 1000

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
  handle: async ({ db, commits, now, stopping }) => {
    if (stopping?.aborted) throw toUnavailable('The service is stopping.')
    try {
      await lookAtTables(db, now())
    } catch (error) {
      throw toUnavailable('The database does not answer, or is not set up yet.', error)
    }
    const redis = commits.source === 'redis' ? 'ok' : 'away'
    return { body: Buffer.from(JSON.stringify({ status: 'ready', clickhouse: 'ok', redis })), asOf: null }
  },
})

/** Until when each database's tables are known to be there, in Unix milliseconds. */
const known = new WeakMap<Database, number>()

/** One statement names every table and reads none of them; however many ask, it is sent once in a while. */
async function lookAtTables(db: Database, now: number): Promise<void> {
  if (now < (known.get(db) ?? 0)) return
  const tables = ['tokens', ...datasets.map((dataset) => dataset.series.table)]
  const sql = tables.map((table) => `SELECT 1 FROM ${table} WHERE 0`).join(' UNION ALL ')
  await probe(db, { sql, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })
  known.set(db, now + HOLDS_MS)
}
