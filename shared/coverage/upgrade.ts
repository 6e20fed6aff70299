import { z } from 'zod'
import { HISTORY_START, toBucketStart } from '../intervals.ts'
import type { Database } from '../store/clickhouse.ts'
import type { Logger } from '../telemetry/log.ts'
import { addFromRows, type Recounted } from './recount.ts'
import { EVERYBODY, want } from './wanted.ts'

const state = z.object({ dataset: z.string(), value: z.string() })
const held = z.object({ entities: z.number(), first: z.number().nullable() })
const count = z.object({ count: z.number() })

const JOB = 'recount'

/**
 * Makes the coverage of a database that was filled before there was one: of every dataset that has rows and no coverage at
 * all, and says that the time since it was collected is wanted, so that what is missing in between is found. May be repeated;
 * one that was ended is taken up. `now` is in Unix milliseconds.
 */
export async function recountUpgraded(
  db: Database,
  datasets: readonly Recounted[],
  log: Logger,
  now: number,
): Promise<void> {
  const begun = await begin(db, datasets, now)
  for (const { dataset, first } of begun) {
    const added = await addFromRows(db, dataset, now)
    const to = toBucketStart(now, dataset.cadence)
    // Whatever the step: what is there at a longer one was collected so.
    if (first < to) await want(db, dataset, [{ entity: EVERYBODY, from: first, to, interval: '7d' }])
    await note(db, dataset, 'done', now)
    log.info({ dataset: dataset.name, buckets: added }, 'coverage made from the stored rows')
  }
}

interface Begun {
  readonly dataset: Recounted
  /** Since when it was collected, in Unix milliseconds. */
  readonly first: number
}

/** Notes which datasets are to be counted before any is: as soon as one has coverage it no longer looks like an old one. */
async function begin(db: Database, datasets: readonly Recounted[], now: number): Promise<Begun[]> {
  const states = await db.rows({
    name: 'recount-states',
    sql: 'SELECT name AS dataset, value FROM job_state FINAL WHERE job = {job: String}',
    params: { job: JOB },
    schema: state,
  })
  const known = new Map(states.map(({ dataset, value }) => [dataset, value]))
  const begun: Begun[] = []
  for (const dataset of datasets.filter(({ resumes, name }) => !resumes && known.get(name) !== 'done')) {
    const first = await readFirst(db, dataset)
    const isOld = known.has(dataset.name) || !(await hasCoverage(db, dataset))
    if (first === undefined || !isOld) continue
    if (!known.has(dataset.name)) await note(db, dataset, 'begun', now)
    begun.push({ dataset, first })
  }
  return begun
}

/** Since when half of the entities have rows: what one of them has from before is no sign that all were collected. */
async function readFirst(db: Database, { series }: Recounted): Promise<number | undefined> {
  const [row] = await db.rows({
    name: 'first-stored',
    sql: `SELECT count() AS entities, if(entities = 0, NULL, toUnixTimestamp64Milli(quantileExactLow(0.5)(first))) AS first
FROM (SELECT toDateTime64(min(${series.time}), 3, 'UTC') AS first FROM ${series.table} GROUP BY ${series.entity ?? 'tuple()'} HAVING count() > 0)`,
    schema: held,
  })
  return row?.first === undefined || row.first === null ? undefined : Math.max(row.first, Date.parse(HISTORY_START))
}

async function hasCoverage(db: Database, { name }: Recounted): Promise<boolean> {
  const [row] = await db.rows({
    name: 'coverage-any',
    sql: 'SELECT count() AS count FROM coverage WHERE dataset = {dataset: String}',
    params: { dataset: name },
    schema: count,
  })
  return row !== undefined && row.count > 0
}

const note = (db: Database, { name }: Recounted, value: 'begun' | 'done', now: number) =>
  db.insert({ table: 'job_state', rows: [{ job: JOB, name, value, written_at: new Date(now).toISOString() }] })
