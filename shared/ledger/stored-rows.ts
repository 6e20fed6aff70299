import { z } from 'zod'
import { ENTIRE_REGISTRY } from '../registry/entities.ts'
import type { Database } from '../store/store.ts'
import type { LedgerDataset } from './types.ts'

/** Whether a row is valid from its own bucket on, not from the start of its step. */
export const isRotated = ({ rowStep }: LedgerDataset) => rowStep === 'rotation'

/**
 * The number of buckets that a row may belong to, starting with the bucket of its time. Only its slot decided which
 * one.
 */
export const countPossible = ({ lagsBehindSlot }: Pick<LedgerDataset, 'lagsBehindSlot'>): number =>
  lagsBehindSlot ? 2 : 1

/** Limit on the entities of one statement. */
const BATCH_ENTITIES = 20

/** SQL for the entity of a row. */
export const toEntity = ({ series }: LedgerDataset) => series.entity ?? `toUInt64(${ENTIRE_REGISTRY.key})`
/** SQL for the time of a row, in Unix seconds. */
export const toTime = ({ series }: LedgerDataset) => `toInt64(toUnixTimestamp(toDateTime(${series.time}, 'UTC')))`

/** SQL: the rows of a batch. */
export const WITHIN = (dataset: LedgerDataset) =>
  `${dataset.series.time} >= toDateTime({begin: UInt32}, 'UTC') AND ${dataset.series.time} < toDateTime({until: UInt32}, 'UTC')
      AND ${toEntity(dataset)} IN {entities: Array(UInt64)}`

const scope = z.object({ entity: z.number(), years: z.array(z.int()) })

/** Entities that one statement counts, in a year. */
export interface Batch {
  readonly entities: readonly number[]
  readonly year: number
}

/** The entities and years with rows or with coverage. */
export async function readBatches(db: Database, dataset: LedgerDataset): Promise<Batch[]> {
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
