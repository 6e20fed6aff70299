import { z } from 'zod'
import { toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import type { Database } from '../../shared/store/store.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { findRollUps, type RollUp } from '../../workers/rebuild/roll-ups.ts'

const differing = z.object({ row: z.string() })

/**
 * Rows of each roll-up and derived table, as JSON, that differ from a computation from the stored series, by table.
 * `slot`, in Unix milliseconds, is the end of the derived tables' windows.
 */
export async function findDifferences(
  db: Database,
  database: string,
  slot: number,
): Promise<Record<string, readonly string[]>> {
  const datasets = jobs.map(({ dataset }) => dataset)
  const rollUps = await findRollUps(db, database, datasets)
  const found = await Promise.all(
    rollUps.map(async (rollUp) => [rollUp.table, await differencesOf(db, rollUp, slot)] as const),
  )
  return Object.fromEntries(found)
}

/** Returns at most 20 rows, each with the word `stored` or `computed` before it. */
async function differencesOf(
  db: Database,
  { table, raw, entity, fill }: RollUp,
  slot: number,
): Promise<readonly string[]> {
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
  const onlyIn = (one: string, other: string, word: string) =>
    `SELECT concat('${word} ', formatRow('JSONEachRow', *)) AS row FROM (${all(one)} EXCEPT ${all(other)})`
  const sql = `${onlyIn(table, computed, 'stored')} UNION ALL ${onlyIn(computed, table, 'computed')} LIMIT 20`
  const rows = await db.rows({ name: 'differences', sql, schema: differing })
  return rows.map((difference) => difference.row.trim())
}
