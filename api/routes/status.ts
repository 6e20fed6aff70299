import { z } from 'zod'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { datasets } from '../../shared/datasets/list.ts'
import { CADENCES, INTERVAL_SECONDS } from '../../shared/intervals.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { FAILING_PROVIDERS, type FailingProviders, readFailingText } from '../../shared/store/failing-providers.ts'
import { FRESHNESS_STATES, toFreshnessState } from '../../shared/store/freshness.ts'
import { timeValue } from '../records/values.ts'
import { defineRoute } from '../route/define-route.ts'

const freshness = z.strictObject({
  dataset: z.string(),
  cadence: z.enum(CADENCES),
  lastUpdated: timeValue.nullable(),
  expectedEvery: z.int().meta({ description: 'Seconds.' }),
  lagSeconds: z.number().nullable().meta({ description: 'Age of the newest datum; null while there is none.' }),
  state: z.enum(FRESHNESS_STATES).meta({ description: 'late from 1.5 cadences on, stale from 2 on.' }),
  rows: z.int(),
  entities: z.int(),
  earliest: timeValue.nullable(),
  note: z.string().optional().meta({
    description: 'What the newest rows say of their origin, where they say it, and which providers fail since when.',
  }),
})

type Freshness = z.infer<typeof freshness>

const status = z.strictObject({
  mode: z.enum(['demo', 'live']),
  upstream: z.string().meta({ description: 'Where the data comes from.' }),
  datasets: z.array(freshness),
})

const UPSTREAM = {
  demo: 'Demo mode: the data is simulated and comes from the local stand-in for the providers. It is not real.',
  live: 'The data providers themselves.',
} as const

/** Counting a large series costs time: this long one count serves everybody. */
const HOLDS_MS = 5000

const counted = z.object({ rows: z.int(), entities: z.int(), earliest: z.int(), newest: z.int(), note: z.string() })

const job = z.object({ job: z.string(), value: z.string() })

/** What is told of failing providers, by dataset; an empty text where none fails. */
async function readFailing(db: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await db.rows({
    name: 'status-failing',
    sql: 'SELECT job, value FROM job_state FINAL WHERE name = {name: String}',
    params: { name: FAILING_PROVIDERS },
    schema: job,
  })
  return new Map(rows.map(({ job, value }) => [job, toNote(readFailingText(value))]))
}

const toNote = (failing: FailingProviders) =>
  Object.entries(failing)
    .map(([provider, { since }]) => `${provider}: failing since ${since}`)
    .join('; ')

async function toFreshness(dataset: DatasetFacts, db: Database, now: number, failing = ''): Promise<Freshness> {
  // A series about all entities together counts as one.
  const { table, entity = '1', time, source = "''" } = dataset.series
  const [found] = await db.rows({
    name: 'status',
    sql: `SELECT count() AS rows, uniqExact(${entity}) AS entities,
  toUnixTimestamp64Milli(min(${time})) AS earliest, toUnixTimestamp64Milli(max(${time})) AS newest,
  toString(argMax(${source}, ${time})) AS note
FROM ${table} FINAL`,
    schema: counted,
  })
  const expectedEvery = INTERVAL_SECONDS[dataset.cadence]
  const { rows = 0, entities = 0, newest = 0, earliest = 0, note: origin = '' } = found ?? {}
  const note = [origin, failing].filter((text) => text !== '').join('; ')
  const empty = rows === 0
  const lagSeconds = Math.max(0, (now - newest) / 1000)
  return {
    dataset: dataset.name,
    cadence: dataset.cadence,
    lastUpdated: empty ? null : new Date(newest).toISOString(),
    expectedEvery,
    lagSeconds: empty ? null : lagSeconds,
    state: toFreshnessState(empty ? null : lagSeconds, dataset.cadence),
    rows,
    entities,
    earliest: empty ? null : new Date(earliest).toISOString(),
    ...(note === '' ? {} : { note }),
  }
}

export const statusRoute = defineRoute({
  path: '/data/status',
  tag: 'Service',
  summary: 'How fresh each dataset is',
  description: 'Contract section 7. Counted anew at most every five seconds.',
  query: {},
  response: status,
  // The count does not follow commits: during a back-fill every commit would ask for a new one.
  datasets: [],
  handle: async ({ db, config, now }) => {
    const failing = await readFailing(db)
    const list = await Promise.all(
      datasets.map((dataset) => toFreshness(dataset, db, now(), failing.get(dataset.name))),
    )
    const newest = list.flatMap(({ lastUpdated }) => (lastUpdated === null ? [] : [Date.parse(lastUpdated)]))
    const body = { mode: config.mode, upstream: UPSTREAM[config.mode], datasets: list }
    return {
      body: Buffer.from(JSON.stringify(body)),
      asOf: newest.length === 0 ? null : Math.max(...newest),
      expiresAt: now() + HOLDS_MS,
    }
  },
})
