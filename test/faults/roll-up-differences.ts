import { z } from 'zod'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import type { Database } from '../../shared/store/store.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { findRollUps, type RollUp } from '../../workers/rebuild/roll-ups.ts'

const counted = z.object({ n: z.number() })

/**
 * How many rows of each roll-up and derived table differ from a computation from the stored series, in either direction, by
 * table. `slot`, in Unix milliseconds, is the end of the derived tables' windows.
 */
export async function countDifferences(db: Database, database: string, slot: number): Promise<Record<string, number>> {
  const datasets = jobs.map(({ dataset }) => dataset)
  const rollUps = await findRollUps(db, database, datasets)
  const found = await Promise.all(
    rollUps.map(async (rollUp) => [rollUp.table, await countOf(db, rollUp, slot)] as const),
  )
  return Object.fromEntries(found)
}

async function countOf(db: Database, { table, raw, entity, fill }: RollUp, slot: number): Promise<number> {
  const computed = `${table}_computed`
  await db.command({ name: 'create', sql: `CREATE TABLE ${computed} AS ${table}` })
  const keys = entity === undefined ? '[]' : `(SELECT groupUniqArray(${entity}) FROM ${raw})`
  const [row] = await db.rows({
    name: 'entities',
    sql: `SELECT ${keys} AS entities`,
    schema: z.object({ entities: z.array(z.number()) }),
  })
  const entities = row?.entities ?? []
  const params = toDeriveParams({ entities, read: entities, slot })
  await db.command({ name: 'fill', sql: fill(computed), params })
  // The time of computation is not compared.
  const all = (from: string) => `SELECT * EXCEPT computed_at FROM ${from} FINAL`
  const sql = `SELECT toUInt32(count()) AS n FROM
    ((${all(table)} EXCEPT ${all(computed)}) UNION ALL (${all(computed)} EXCEPT ${all(table)}))`
  const [difference] = await db.rows({ name: 'differences', sql, schema: counted })
  return difference?.n ?? -1
}
