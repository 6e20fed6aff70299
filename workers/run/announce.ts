import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { toMs } from '../../shared/memo.ts'
import { askRedis } from '../../shared/queue/ask-redis.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { publishCommit } from '../../shared/store/commits.ts'

/**
 * Publishes that a dataset changed. `rows` are the rows that were stored; without them readers take every answer for
 * changed.
 * @throws DataError `storage` when it could not be published; the job is then tried again.
 */
export async function announce(
  dataset: Dataset,
  { db, redis, config }: { readonly db: Database; readonly redis: Redis; readonly config: Config },
  rows: readonly object[] = [],
): Promise<void> {
  const { from, to } = toTimeRange(dataset, rows)
  // From where the bucket begins: a series that is read again from there on has it.
  const range = from === undefined || to === undefined ? {} : { from: toBucketStart(from, dataset.cadence), to }
  const change = { dataset: dataset.name, ...range, ...countEntities(dataset, rows) }
  const places = { db, redis, prefix: config.redis.prefix }
  await askRedis(`commit of ${dataset.name}`, () => publishCommit(places, change))
}

/** The first and the last time that the rows are about, in Unix milliseconds; nothing where the rows do not say. */
export function toTimeRange(dataset: Dataset, rows: readonly object[]): { from?: number; to?: number } {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const row of rows) {
    const time = toMs(String(Reflect.get(row, dataset.series.time)))
    if (Number.isNaN(time)) return {}
    from = Math.min(from, time)
    to = Math.max(to, time)
  }
  return rows.length === 0 ? {} : { from, to }
}

/** How many tokens or DAOs the rows are about; nothing where there are no rows, or a row is about all together. */
function countEntities({ entity }: Dataset, rows: readonly object[]): { entities?: number } {
  if (entity === undefined || rows.length === 0) return {}
  return { entities: new Set(rows.map((row) => Reflect.get(row, entity))).size }
}
