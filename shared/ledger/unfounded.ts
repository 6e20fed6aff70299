import { z } from 'zod'
import { RUNS, subtract, union } from '../buckets.ts'
import { groupBy } from '../group-by.ts'
import { INTERVAL_SECONDS, toStepStart } from '../intervals.ts'
import type { OnPart } from '../progress-bar.ts'
import type { Database } from '../store/store.ts'
import { isUnproven } from './recount-state.ts'
import { type Batch, countPossible, isRotated, readBatches, toEntity, toTime, WITHIN } from './stored-rows.ts'
import type { LedgerDataset, Report } from './types.ts'

const step = z.object({ seconds: z.int() })
const unfounded = z.object({ entity: z.number(), provider: z.string(), runs: z.array(z.tuple([z.int(), z.int()])) })

/**
 * See `Ledger.findUnfounded`. If the table contains only the newest rows, checks only the buckets
 * after the newest row of each entity. Datasets with cursors are checked once after an upgrade (`isUnproven`).
 */
export async function findUnfounded(
  db: Database,
  dataset: LedgerDataset,
  onBatch: OnPart = () => {},
): Promise<Report[]> {
  if (dataset.resumes && !(await isUnproven(db, dataset))) return []
  const steps = await db.rows({
    name: 'recount-steps',
    sql: `SELECT DISTINCT interval_seconds AS seconds FROM coverage WHERE dataset = {dataset: String} AND state = 'stored' ORDER BY seconds`,
    params: { dataset: dataset.name },
    schema: step,
  })
  const found: Report[] = []
  const batches = await readBatches(db, dataset)
  const newest = dataset.keepsNewest ? await readNewestRows(db, dataset) : undefined
  for (const [at, batch] of batches.entries()) {
    for (const { seconds } of steps)
      for (const report of await readUnfounded(db, dataset, batch, seconds)) {
        const replaced = { first: 0, last: newest?.get(report.entity) ?? -1 }
        for (const run of subtract(report, [replaced])) found.push({ ...report, ...run })
      }
    onBatch(at + 1, batches.length)
  }
  return dataset.resumes ? widen(found) : found
}

/** Adds a bucket on each side of each run: it may have been read only in part. */
function widen(reports: readonly Report[]): Report[] {
  const groups = groupBy(reports, ({ entity, provider, seconds }) => [entity, provider, seconds].join(' '))
  return [...groups.values()].flatMap((group) =>
    union(group.map(({ first, last }) => ({ first: first - 1, last: last + 1 }))).flatMap((run) =>
      group.slice(0, 1).map((report) => ({ ...report, ...run })),
    ),
  )
}

const newestRow = z.object({ entity: z.number(), bucket: z.int() })

/** The bucket of the newest row of each entity. */
async function readNewestRows(db: Database, dataset: LedgerDataset): Promise<ReadonlyMap<number, number>> {
  const rows = await db.rows({
    name: 'recount-newest',
    sql: `SELECT ${toEntity(dataset)} AS entity, intDiv(max(${toTime(dataset)}), {cadence: Int64}) AS bucket FROM ${dataset.series.table} GROUP BY entity`,
    params: { cadence: INTERVAL_SECONDS[dataset.cadence] },
    schema: newestRow,
  })
  return new Map(rows.map(({ entity, bucket }) => [entity, bucket]))
}

/** Includes tombstone rows: a point that was stored and then withdrawn is known. */
async function readUnfounded(
  db: Database,
  dataset: LedgerDataset,
  { entities, year }: Batch,
  seconds: number,
): Promise<Report[]> {
  const { name, series } = dataset
  const cadence = INTERVAL_SECONDS[dataset.cadence]
  const window = isRotated(dataset)
    ? `intDiv(${toTime(dataset)}, {cadence: Int64})`
    : `intDiv(intDiv(${toTime(dataset)} - {origin: Int64}, {seconds: Int64}) * {seconds: Int64} + {origin: Int64}, {cadence: Int64})`
  const rows = await db.rows({
    name: 'recount-unfounded',
    sql: `WITH arrayFilter(bucket -> NOT has(expected, bucket), held) AS numbers
SELECT entity, provider, ${RUNS('numbers')} AS runs
FROM
(
  SELECT stored.entity AS entity, provider, held, expected
  FROM
  (
    SELECT entity, toString(provider) AS provider, day, arraySort(groupUniqArray(bucket)) AS held FROM
    (
      SELECT entity, provider, arrayJoin(bitmapToArray(groupBitmapMergeState(buckets))) AS bucket, intDiv(toInt64(bucket) * {cadence: Int64}, 86400) AS day
      FROM coverage
      WHERE dataset = {dataset: String} AND year = {year: UInt16} AND state = 'stored' AND interval_seconds = {seconds: UInt32}
        AND entity IN {entities: Array(UInt64)}
      GROUP BY entity, provider
    )
    GROUP BY entity, provider, day
  ) AS stored
  LEFT JOIN
  (
    SELECT entity, day, groupUniqArray(bucket) AS expected FROM
    (
      SELECT entity, toUInt32(arrayJoin(range(toUInt32(begin), toUInt32(begin + intDiv({seconds: Int64}, {cadence: Int64}) + {possible: UInt8} - 1)))) AS bucket,
        intDiv(toInt64(bucket) * {cadence: Int64}, 86400) AS day
      FROM
      (
        SELECT DISTINCT ${toEntity(dataset)} AS entity, ${window} AS begin FROM ${series.table}
        WHERE ${WITHIN(dataset)}
      )
    )
    GROUP BY entity, day
  ) AS rows ON rows.entity = stored.entity AND rows.day = stored.day
)
WHERE notEmpty(numbers)
ORDER BY entity, runs`,
    params: {
      dataset: name,
      year,
      entities,
      cadence,
      possible: countPossible(dataset),
      seconds,
      // For weekly steps, the step that contains 1970-01-01 starts before it.
      origin: toStepStart(0, seconds) / 1000,
      begin: Math.max(0, Date.UTC(year) / 1000 - seconds),
      until: Date.UTC(year + 1) / 1000 + seconds,
    },
    schema: unfounded,
  })
  return rows.flatMap(({ entity, provider, runs }) =>
    runs.map(([first, last]) => ({ entity, provider, seconds, state: 'stored' as const, first, last })),
  )
}
