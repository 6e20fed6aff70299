import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { toBucketStart } from '../../shared/intervals.ts'
import { toMs } from '../../shared/memo.ts'
import { askRedis } from '../../shared/queue/ask-redis.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { publishCommit } from '../../shared/store/commits.ts'

/**
 * Publishes a change event for a dataset. `rows` are the stored rows; if they are missing, readers treat every cached
 * response as changed.
 * @throws DataError `storage` if the event cannot be published; the job is then retried.
 */
export async function announce(
  dataset: Dataset,
  { db, redis, config }: { readonly db: Database; readonly redis: Redis; readonly config: Config },
  rows: readonly object[] = [],
): Promise<void> {
  const { from, to } = toTimeRange(dataset, rows)
  // Starts at the bucket start, so a series that is re-read from there includes the whole bucket.
  const range = from === undefined || to === undefined ? {} : { from: toBucketStart(from, dataset.cadence), to }
  const change = { dataset: dataset.name, ...range, ...countEntities(dataset, rows) }
  const places = { db, redis, prefix: config.redis.prefix }
  await askRedis(`commit of ${dataset.name}`, () => publishCommit(places, change))
}

/** Returns the first and last row time in Unix milliseconds, or an empty object if a row has no valid time. */
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

/**
 * Counts the entities of the rows. Returns an empty object if there are no rows or the dataset has no entity column.
 */
function countEntities({ entity }: Dataset, rows: readonly object[]): { entities?: number } {
  if (entity === undefined || rows.length === 0) return {}
  return { entities: new Set(rows.map((row) => Reflect.get(row, entity))).size }
}
