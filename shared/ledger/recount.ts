import { z } from 'zod'
import { type Buckets, RUNS, union } from '../buckets.ts'
import { DAY_MS, INTERVAL_SECONDS } from '../intervals.ts'
import type { OnPart } from '../progress-bar.ts'
import type { Database } from '../store/store.ts'
import { type Batch, countPossible, isRotated, readBatches, toEntity, toTime, WITHIN } from './stored-rows.ts'
import { addCoverage } from './tables.ts'
import type { LedgerDataset, Report } from './types.ts'

const DAY_SECONDS = DAY_MS / 1000

/** SQL for the step of rows without a stored step; `cells` are the buckets of a day with rows, `gap` is of `joinGaps`. */
function toStepSql({ rowStep = [], cadence }: LedgerDataset): string {
  if (rowStep === 'rotation') return `least(${DAY_SECONDS}, gap)`
  const steps = [cadence, ...rowStep].map((interval) => INTERVAL_SECONDS[interval])
  // A day with more rows than the next longer step has buckets was collected at a shorter step.
  return steps.reduceRight((longer, step, at) => {
    const next = steps[at + 1]
    return next === undefined ? String(step) : `if(length(cells) > ${DAY_SECONDS / next}, ${step}, ${longer})`
  }, '')
}

const lacking = z.object({ entity: z.number(), seconds: z.int(), runs: z.array(z.tuple([z.int(), z.int()])) })

/** See `Ledger.addFromRows`. Safe to repeat and to stop at any time. */
export async function addFromRows(
  db: Database,
  dataset: LedgerDataset,
  now: number,
  onBatch: OnPart = () => {},
): Promise<number> {
  if (dataset.resumes) return 0
  let added = 0
  const batches = await readBatches(db, dataset)
  for (const [at, batch] of batches.entries()) {
    const reports = await readLacking(db, dataset, batch, now)
    await addCoverage(db, dataset, reports)
    added += reports.reduce((sum, { first, last }) => sum + last - first + 1, 0)
    onBatch(at + 1, batches.length)
  }
  return added
}

async function readLacking(
  db: Database,
  dataset: LedgerDataset,
  { entities, year }: Batch,
  now: number,
): Promise<Report[]> {
  const { name, series } = dataset
  const cadence = INTERVAL_SECONDS[dataset.cadence]
  const begin = isRotated(dataset)
    ? 'cell'
    : 'intDiv(cell * {cadence: Int64}, seconds) * intDiv(seconds, {cadence: Int64})'
  const rows = await db.rows({
    name: 'recount-lacking',
    sql: `WITH arraySort(arrayDistinct(arrayFlatten(arrayMap(cell -> arrayMap(at -> ${begin} + at, range(toUInt32(intDiv(seconds, {cadence: Int64})))), lacks)))) AS all_of_them,
  arrayFilter(bucket -> bucket < {end: Int64}, all_of_them) AS numbers
SELECT entity, seconds, ${RUNS('numbers')} AS runs
FROM
(
  SELECT days.entity AS entity, cells, toInt64(${toStepSql(dataset)}) AS seconds,
    arrayFilter(cell -> NOT has(held, toUInt32(cell)), cells) AS lacks
  FROM
  (
    SELECT ${toEntity(dataset)} AS entity, intDiv(${toTime(dataset)}, 86400) AS day,
      groupUniqArray(intDiv(${toTime(dataset)}, {cadence: Int64})) AS cells
    FROM ${series.table} FINAL
    WHERE ${WITHIN(dataset)}
    GROUP BY entity, day
  ) AS days
  ${isRotated(dataset) ? joinGaps(dataset) : ''}
  LEFT JOIN
  (
    SELECT entity, intDiv(toInt64(bucket) * {cadence: Int64}, 86400) AS day, groupUniqArray(bucket) AS held FROM
    (
      SELECT entity, arrayJoin(bitmapToArray(groupBitmapMergeState(buckets))) - arrayJoin(range({possible: UInt8})) AS bucket FROM coverage
      WHERE dataset = {dataset: String} AND year = {year: UInt16} AND state = 'stored' AND entity IN {entities: Array(UInt64)}
      GROUP BY entity
    )
    GROUP BY entity, day
  ) AS known ON known.entity = days.entity AND known.day = days.day
)
WHERE notEmpty(lacks)
ORDER BY entity`,
    params: {
      dataset: name,
      year,
      entities,
      cadence,
      possible: countPossible(dataset),
      end: Math.floor(now / 1000 / cadence) + 1,
      begin: Date.UTC(year) / 1000,
      until: Date.UTC(year + 1) / 1000,
    },
    schema: lacking,
  })
  return toReports(rows)
}

/** The shortest time between two rows of an entity: the length of its rotation, in seconds. */
const joinGaps = (dataset: LedgerDataset) => `LEFT JOIN
  (
    SELECT entity, {cadence: Int64} * if(length(cells) < 2, 1, arrayMin(arrayPopFront(arrayDifference(cells)))) AS gap FROM
    (
      SELECT ${toEntity(dataset)} AS entity, arraySort(groupUniqArray(intDiv(${toTime(dataset)}, {cadence: Int64}))) AS cells
      FROM ${dataset.series.table}
      WHERE ${WITHIN(dataset)}
      GROUP BY entity
    )
  ) AS gaps ON gaps.entity = days.entity`

/** Merges runs of adjacent days per entity and step. The provider of these rows is unknown. */
function toReports(rows: readonly z.infer<typeof lacking>[]): Report[] {
  const runs = new Map<string, { entity: number; seconds: number; runs: Buckets[] }>()
  for (const { entity, seconds, runs: runsOfRow } of rows) {
    const key = `${entity} ${seconds}`
    const found = runs.get(key) ?? { entity, seconds, runs: [] }
    runs.set(key, found)
    for (const [first, last] of runsOfRow) found.runs.push({ first, last })
  }
  return [...runs.values()].flatMap(({ entity, seconds, runs: runsOfEntity }) =>
    union(runsOfEntity).map((run) => ({ entity, seconds, state: 'stored' as const, provider: 'unknown', ...run })),
  )
}
