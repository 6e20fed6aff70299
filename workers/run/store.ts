import { type Dataset, toDeriveParams } from '../../shared/datasets/define-dataset.ts'
import { askRedis } from '../../shared/queue/ask-redis.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import type { Recomputation } from '../job/recomputation.ts'
import { toTimeRange } from './announce.ts'
import type { Collected } from './collect.ts'

/** Target of the rows, and the recomputation of datasets that depend on them. */
interface Places {
  readonly db: Database
  readonly recomputation: Recomputation
}

/**
 * Stores the providers' rows in one insert, then runs or enqueues the computations that depend on them. Each step is
 * idempotent.
 * @returns the number of rows.
 */
export async function store(
  dataset: Dataset,
  { given }: Pick<Collected, 'given'>,
  { slot, startedAt }: { slot: number; startedAt: number },
  context: Places,
): Promise<number> {
  const rows = given.flatMap((one) => one.rows)
  const read = given.flatMap((one) => one.read)
  if (rows.length === 0 && read.length === 0) return 0
  const every = dataset.isCollected ? { collected_at: new Date(startedAt).toISOString() } : {}
  if (rows.length > 0) await context.db.insert({ table: dataset.table, rows, every })
  const { entity } = dataset
  const entities = entity === undefined ? [] : [...new Set(rows.map((row) => Number(Reflect.get(row, entity))))]
  const params = toDeriveParams({ entities, read, slot, ...toTimeRange(dataset, rows) })
  for (const { name, sql } of dataset.derive ?? []) await context.db.command({ name, sql, params })
  await askRedis(`what is computed from ${dataset.name}`, () => context.recomputation.enqueue(dataset, rows))
  return rows.length
}
