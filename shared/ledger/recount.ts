import { z } from 'zod'
import { type Buckets, RUNS, subtract, union } from '../buckets.ts'
import { groupBy } from '../group-by.ts'
import { DAY_MS, INTERVAL_SECONDS, toStepStart } from '../intervals.ts'
import type { OnPart } from '../progress-bar.ts'
import { ENTIRE_REGISTRY } from '../registry/entities.ts'
import type { Database } from '../store/store.ts'
import { isUnproven } from './recount-state.ts'
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

/** Whether a row is valid from its own bucket on, not from the start of its step. */
const isRotated = ({ rowStep }: LedgerDataset) => rowStep === 'rotation'

/**
 * The number of buckets that a row may belong to, starting with the bucket of its time. Only its slot decided which
 * one.
 */
export const countPossible = ({ lagsBehindSlot }: Pick<LedgerDataset, 'lagsBehindSlot'>): number =>
  lagsBehindSlot ? 2 : 1

/** Limit on the entities of one statement. */
const BATCH_ENTITIES = 20

const toEntity = ({ series }: LedgerDataset) => series.entity ?? `toUInt64(${ENTIRE_REGISTRY.key})`
const toTime = ({ series }: LedgerDataset) => `toInt64(toUnixTimestamp(toDateTime(${series.time}, 'UTC')))`

const WITHIN = (dataset: LedgerDataset) =>
  `${dataset.series.time} >= toDateTime({begin: UInt32}, 'UTC') AND ${dataset.series.time} < toDateTime({until: UInt32}, 'UTC')
      AND ${toEntity(dataset)} IN {entities: Array(UInt64)}`

const scope = z.object({ entity: z.number(), years: z.array(z.int()) })

interface Batch {
  readonly entities: readonly number[]
  readonly year: number
}

/** The entities and years with rows or with coverage. */
async function readBatches(db: Database, dataset: LedgerDataset): Promise<Batch[]> {
  const { series } = dataset
  const found = await db.rows({
    name: 'recount-scope',
    sql: `SELECT entity, arraySort(groupUniqArray(year)) AS years FROM
(
  SELECT DISTINCT ${toEntity(dataset)} AS entity, toYear(toDateTime(${series.time}, 'UTC')) AS year FROM ${series.table}
  UNION ALL
  SELECT DISTINCT entity, year FROM coverage WHERE dataset = {dataset: String}
)
GROUP BY entity ORDER BY entity`,
    params: { dataset: dataset.name },
    schema: scope,
  })
  const years = [...new Set(found.flatMap((one) => one.years))].sort()
  return years.flatMap((year) => {
    const entities = found.filter((one) => one.years.includes(year)).map(({ entity }) => entity)
    const count = Math.ceil(entities.length / BATCH_ENTITIES)
    return Array.from({ length: count }, (_, index) => ({
      year,
      entities: entities.slice(index * BATCH_ENTITIES, (index + 1) * BATCH_ENTITIES),
    }))
  })
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
