import { z } from 'zod'
import { INTERVAL_SECONDS } from '../intervals.ts'
import type { Database } from '../store/clickhouse.ts'
import { type Buckets, toYear } from './grid.ts'
import { type Covered, toEntityFilter } from './ledger.ts'

/** The number of known buckets of an entity. */
export interface Count {
  readonly entity: number
  /** At the requested step or a shorter one. */
  readonly stored: number
  readonly nothing: number
  /** Only at a longer step. */
  readonly coarser: number
}

const count = z.object({ entity: z.number(), stored: z.int(), nothing: z.int(), coarser: z.int() })

/**
 * Counts the known buckets of entities for the requested step of `seconds`. Entities without known buckets are missing
 * in the result.
 */
export async function countCovered(
  db: Database,
  dataset: Covered,
  entities: readonly number[],
  { within, seconds }: { readonly within: Buckets; readonly seconds: number },
): Promise<Count[]> {
  const named = toEntityFilter(entities)
  const found = await db.rows({
    name: 'coverage-known',
    sql: `WITH bitmapSubsetInRange(groupBitmapMergeStateIf(buckets, state = 'stored' AND interval_seconds <= {seconds: UInt32}), {first: UInt32}, {last: UInt32} + 1) AS had,
  bitmapSubsetInRange(groupBitmapMergeStateIf(buckets, interval_seconds <= {seconds: UInt32}), {first: UInt32}, {last: UInt32} + 1) AS known,
  bitmapSubsetInRange(groupBitmapMergeStateIf(buckets, state = 'stored'), {first: UInt32}, {last: UInt32} + 1) AS stored_at_all
SELECT entity, bitmapCardinality(had) AS stored, bitmapAndnotCardinality(known, had) AS nothing,
  bitmapAndnotCardinality(stored_at_all, known) AS coarser
FROM coverage
WHERE dataset = {dataset: String} AND year BETWEEN {firstYear: UInt16} AND {lastYear: UInt16} AND ${named.sql}
GROUP BY entity`,
    params: {
      dataset: dataset.name,
      ...named.params,
      seconds: Math.max(seconds, INTERVAL_SECONDS[dataset.cadence]),
      ...within,
      firstYear: toYear(within.first, dataset.cadence),
      lastYear: toYear(within.last, dataset.cadence),
    },
    schema: count,
  })
  const requested = new Set(entities)
  return found.filter(({ entity }) => requested.has(entity))
}
