import type { Redis } from 'ioredis'
import type { Config } from '../../shared/config/config.ts'
import type { Dataset } from '../../shared/datasets/define.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import type { Database } from '../../shared/store/clickhouse.ts'
import { publishCommit } from '../../shared/store/commits.ts'

/**
 * Tells readers that a dataset changed; `rows` are those that changed, absent where nobody knows.
 * @throws DataError `storage` when it could not be told; the job is tried again then.
 */
export async function announce(
  dataset: Dataset,
  { db, redis, config }: { readonly db: Database; readonly redis: Redis; readonly config: Config },
  rows: readonly object[] = [],
): Promise<void> {
  try {
    const change = { dataset: dataset.name, ...toChangedTimes(dataset, rows) }
    await publishCommit({ db, redis, prefix: config.redis.prefix }, change)
  } catch (cause) {
    if (cause instanceof DataError) throw cause
    throw new DataError('storage', `Redis, commit of ${dataset.name}: ${toReason(cause)}`, { cause })
  }
}

/** The first and the last time that the rows are about, in Unix milliseconds; nothing where the rows do not say. */
function toChangedTimes(dataset: Dataset, rows: readonly object[]): { from?: number; to?: number } {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const row of rows) {
    const time = Date.parse(String(Reflect.get(row, dataset.series.time)))
    if (Number.isNaN(time)) return {}
    from = Math.min(from, time)
    to = Math.max(to, time)
  }
  return rows.length === 0 ? {} : { from, to }
}
