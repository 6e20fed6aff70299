import { z } from 'zod'
import type { Database } from '../../shared/clickhouse.ts'
import type { DatasetFacts } from '../../shared/datasets/list.ts'
import { INTERVAL_SECONDS } from '../../shared/intervals.ts'

const filled = z.object({ entity: z.number(), slots: z.array(z.number()) })

/**
 * The slots of the dataset's cadence that each entity's rows lie in, from `from` on and before `to` (Unix milliseconds), in
 * order: a slot with two rows is there twice.
 */
export async function readSlots(
  db: Database,
  { series, cadence }: DatasetFacts,
  { from, to }: { from: number; to: number },
): Promise<ReadonlyMap<number, readonly number[]>> {
  const { table, time, entity = 'toUInt64(0)' } = series
  const sql = `
SELECT ${entity} AS entity,
  arraySort(groupArray(intDiv(toUnixTimestamp64Milli(toDateTime64(${time}, 3)), {step: Int64}) * {step: Int64})) AS slots
FROM ${table} FINAL
WHERE ${time} >= fromUnixTimestamp64Milli({from: Int64}) AND ${time} < fromUnixTimestamp64Milli({to: Int64})
GROUP BY entity`
  const params = { from, to, step: INTERVAL_SECONDS[cadence] * 1000 }
  const rows = await db.rows({ name: 'stored-slots', sql, params, schema: filled })
  return new Map(rows.map(({ entity, slots }) => [entity, slots]))
}

/** How many rows of a table are in one of two databases only; `where` picks those that are compared. */
export async function countUnlike(db: Database, databases: readonly [string, string], table: string, where = '1') {
  const [one, other] = databases.map((database) => `SELECT * FROM ${database}.${table} FINAL WHERE ${where}`)
  const sql = `SELECT toUInt32(count()) AS n, toUInt32((SELECT count() FROM (${one}))) AS of FROM
    ((${one} EXCEPT ${other}) UNION ALL (${other} EXCEPT ${one}))`
  const [row] = await db.rows({ name: 'unlike', sql, schema: z.object({ n: z.number(), of: z.number() }) })
  return { unlike: row?.n, of: row?.of }
}
