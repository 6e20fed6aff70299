import type { Redis } from 'ioredis'
import { z } from 'zod'
import { toDueEnd } from '../../shared/buckets.ts'
import type { Config } from '../../shared/config/config.ts'
import type { Dataset } from '../../shared/datasets/define-dataset.ts'
import { DataError } from '../../shared/errors.ts'
import { INTERVAL_SECONDS, type TimeRange, toBucketStart, toMs } from '../../shared/intervals.ts'
import { callRedis, type SlotPayload, toQueueName } from '../../shared/queue/queues.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import {
  type Database,
  type ProviderResults,
  publishChange,
  readFailingTexts,
  toFailingTexts,
} from '../../shared/store/store.ts'
import type { Logger } from '../../shared/telemetry/log.ts'
import type { Job } from '../job/define-job.ts'
import { openState } from '../job/state.ts'
import type { Collected } from './collect.ts'

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
  await callRedis(`change event of ${dataset.name}`, () => publishChange(places, change))
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

/**
 * Returns per entity the time range of the rows before `end` (Unix milliseconds). The range has whole buckets, so a
 * series that is re-read from its start includes every changed row.
 */
function toRanges(dataset: Dataset, rows: readonly object[], end: number): Map<number, TimeRange> {
  const { cadence } = dataset
  const ranges = new Map<number, TimeRange>()
  for (const row of rows) {
    const entity = dataset.entity === undefined ? ALL_ENTITIES : Number(Reflect.get(row, dataset.entity))
    const at = toMs(String(Reflect.get(row, dataset.series.time)))
    if (Number.isNaN(at) || at >= end) continue
    const from = toBucketStart(at, cadence)
    const to = from + INTERVAL_SECONDS[cadence] * 1000
    const range = ranges.get(entity) ?? { from, to }
    ranges.set(entity, { from: Math.min(range.from, from), to: Math.max(range.to, to) })
  }
  return ranges
}

/**
 * Uses the clock of ClickHouse only, and is greater than every stored `changed_at`. Readers that continue from their
 * last change therefore find the new one.
 */
const NEXT =
  'SELECT toUnixTimestamp64Milli(greatest(now64(3), max(changed_at) + toIntervalMillisecond(1))) AS at FROM history_changes'

const timeRow = z.object({ at: z.int() })

/**
 * Records for `/data/changes` that a job of the history queue stored rows of the past. Call after the insert, so that
 * recorded changes are readable.
 * @throws DataError `storage` if the change cannot be recorded; the job is then retried.
 */
export async function noteChange(
  { db, now }: { readonly db: Database; readonly now: () => number },
  job: Job,
  rows: readonly object[],
): Promise<void> {
  const { name, dataset } = job
  const ranges = toRanges(dataset, rows, toDueEnd(dataset, now()))
  if (ranges.size === 0) return
  const [next] = await db.rows({ name: 'next-change', sql: NEXT, schema: timeRow })
  if (next === undefined) throw new DataError('storage', 'ClickHouse, next-change: an answer without a row')
  const changed = [...ranges].map(([entity, { from, to }]) => ({
    dataset: dataset.name,
    entity,
    job: toQueueName(name, 'history'),
    begins_at: new Date(from).toISOString(),
    ends_at: new Date(to).toISOString(),
    changed_at: new Date(next.at).toISOString(),
  }))
  await db.insert({ table: 'history_changes', rows: changed })
}

/**
 * Records the failed providers of a slot for `/data/status`; a backfill does not describe the present. A storage error
 * here is only logged: the job must end with the provider's failure.
 */
export async function reportFailing(
  job: Job,
  { slot, piece: batch, isComplete }: SlotPayload & { readonly isComplete: boolean },
  { failures, results }: Collected,
  context: { readonly db: Database; readonly now: () => number; readonly log: Logger },
): Promise<void> {
  try {
    const answered = results.filter(({ rows, read }) => rows.length + read.length > 0).map(({ provider }) => provider)
    await rememberFailing(context, job.name, { slot, batch, isComplete: isComplete, failures, answered })
  } catch (error) {
    const failed = failures.map(({ provider }) => provider)
    context.log.warn({ dataset: job.name, failed, err: error }, 'failing providers could not be stored')
  }
}

/** Stores which providers of `job` fail, for `/data/status`. */
export async function rememberFailing(
  { db, now }: { readonly db: Database; readonly now: () => number },
  job: string,
  results: ProviderResults,
): Promise<void> {
  const state = openState(db, job, now)
  for (const [name, text] of toFailingTexts(await readFailingTexts(db, job), results)) state.set(name, text)
  await state.store()
}
