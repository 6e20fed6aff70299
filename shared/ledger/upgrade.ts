import { z } from 'zod'
import { HISTORY_START, toBucketStart } from '../intervals.ts'
import { ALL_ENTITIES } from '../registry/entities.ts'
import type { Database } from '../store/store.ts'
import type { Logger } from '../telemetry/log.ts'
import { recordExpected } from './expected.ts'
import { addFromRows } from './recount.ts'
import { noteRecount, readRecountStates } from './recount-state.ts'
import type { LedgerDataset } from './types.ts'

const held = z.object({ entities: z.number(), first: z.number().nullable() })
const count = z.object({ count: z.number() })

/**
 * Builds the coverage of a database that is older than the coverage tables, for every dataset with rows and without
 * coverage. Records the time since its first collection as expected, so that gaps are found. Safe to repeat; an interrupted
 * run continues. `now` is in Unix milliseconds.
 */
export async function recountUpgraded(
  db: Database,
  datasets: readonly LedgerDataset[],
  log: Logger,
  now: number,
): Promise<void> {
  const pending = await begin(db, datasets, now)
  for (const { dataset, first } of pending) {
    const added = await addFromRows(db, dataset, now)
    const to = toBucketStart(now, dataset.cadence)
    // At any step: data stored at a longer step was collected at that step.
    if (first < to) await recordExpected(db, dataset, [{ entity: ALL_ENTITIES, from: first, to, interval: '7d' }])
    await noteRecount(db, dataset, 'done', now)
    log.info({ dataset: dataset.name, buckets: added }, 'coverage computed from the stored rows')
  }
}

interface PendingRecount {
  readonly dataset: LedgerDataset
  /** Time of the first collection, in Unix milliseconds. */
  readonly first: number
}

/**
 * Records which datasets to count before counting the first one. A dataset with some coverage no longer looks like an
 * old one.
 */
async function begin(db: Database, datasets: readonly LedgerDataset[], now: number): Promise<PendingRecount[]> {
  const stateOf = await readRecountStates(db)
  const recounts: PendingRecount[] = []
  for (const dataset of datasets.filter(({ resumes, name }) => !resumes && stateOf.get(name) !== 'done')) {
    const first = await readFirst(db, dataset)
    const isOld = stateOf.has(dataset.name) || !(await hasCoverage(db, dataset))
    if (first === undefined || !isOld) continue
    if (!stateOf.has(dataset.name)) await noteRecount(db, dataset, 'begun', now)
    recounts.push({ dataset, first })
  }
  return recounts
}

/**
 * The time at which half of the entities have rows. Earlier rows of a few entities do not prove that all were
 * collected.
 */
async function readFirst(db: Database, { series }: LedgerDataset): Promise<number | undefined> {
  const [row] = await db.rows({
    name: 'first-stored',
    sql: `SELECT count() AS entities, if(entities = 0, NULL, toUnixTimestamp64Milli(quantileExactLow(0.5)(first))) AS first
FROM (SELECT toDateTime64(min(${series.time}), 3, 'UTC') AS first FROM ${series.table} GROUP BY ${series.entity ?? 'tuple()'} HAVING count() > 0)`,
    schema: held,
  })
  return row?.first === undefined || row.first === null ? undefined : Math.max(row.first, Date.parse(HISTORY_START))
}

async function hasCoverage(db: Database, { name }: LedgerDataset): Promise<boolean> {
  const [row] = await db.rows({
    name: 'coverage-any',
    sql: 'SELECT count() AS count FROM coverage WHERE dataset = {dataset: String}',
    params: { dataset: name },
    schema: count,
  })
  return row !== undefined && row.count > 0
}
