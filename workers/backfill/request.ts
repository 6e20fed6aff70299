import { type Buckets, toBuckets, toDueEnd, toStepSeconds, toTimes } from '../../shared/buckets.ts'
import { INTERVAL_SECONDS, type Interval, type TimeRange } from '../../shared/intervals.ts'
import { openLedger } from '../../shared/ledger/ledger.ts'
import { groupByEnd, untilEnd } from '../../shared/registry/ends.ts'
import { ALL_ENTITIES } from '../../shared/registry/entities.ts'
import type { Database } from '../../shared/store/store.ts'
import type { Entity, Job } from '../job/define-job.ts'
import type { Chunk } from '../schedule/chunks.ts'

/** A request to collect history. `title` is its name in the progress output and the result table. */
export interface BackfillRequest {
  readonly title: string
  readonly job: Job
  readonly entities: readonly Entity[]
  /** Whether the request names entities instead of covering the whole dataset. */
  readonly isNamed: boolean
  /** Whether the range is already recorded as expected. */
  readonly isExpected?: true
  readonly range: TimeRange
  readonly interval: Interval
  /** Jobs for the whole request, including data that is already covered. */
  readonly chunks: readonly Chunk[]
}

/** Returns the requested step in seconds. */
export const toSeconds = ({ job, interval }: Pick<BackfillRequest, 'job' | 'interval'>): number =>
  toStepSeconds(interval, job.dataset.cadence)

/** Requested buckets that are due, with their entities. */
export interface Due {
  readonly within: Buckets
  readonly entities: readonly Entity[]
}

/**
 * Returns the requested buckets that are due, for each entity up to its end. Entities without such buckets are left
 * out.
 */
export function toDue(
  { job, range, entities }: Pick<BackfillRequest, 'job' | 'range' | 'entities'>,
  now: number,
): Due[] {
  const due = { from: range.from, to: Math.min(range.to, toDueEnd(job.dataset, now)) }
  return groupByEnd(entities, due).flatMap((group) => {
    const within = toBuckets(group.range, job.dataset.cadence)
    return within === undefined ? [] : [{ within, entities: group.entities }]
  })
}

/**
 * Records the history as expected, unless it is already recorded. The scheduler then collects it even if the queues are
 * lost.
 */
export async function recordExpectedHistory(db: Database, request: BackfillRequest): Promise<void> {
  const { job, entities, isNamed, range, interval } = request
  if (request.isExpected) return
  const ledger = openLedger(db, job.dataset)
  const said = (await ledger.expected()).filter(({ seconds }) => seconds <= INTERVAL_SECONDS[interval])
  const targets = isNamed ? entities : [{ key: ALL_ENTITIES }]
  const ranges = targets.flatMap(({ key: entity, ...lifetime }) => {
    const own = said.filter((one) => one.entity === ALL_ENTITIES || one.entity === entity)
    return withoutRanges(untilEnd(range, lifetime), own).map((gap) => ({ entity, ...gap, interval }))
  })
  await ledger.expect(ranges)
}

function withoutRanges(range: TimeRange, taken: readonly TimeRange[]): TimeRange[] {
  return taken.reduce<TimeRange[]>(
    (remaining, { from, to }) =>
      remaining.flatMap((one) =>
        [
          { from: one.from, to: Math.min(one.to, from) },
          { from: Math.max(one.from, to), to: one.to },
        ].filter((part) => part.from < part.to),
      ),
    [{ from: range.from, to: range.to }],
  )
}

/** Returns the jobs with buckets that are due and not covered at the requested step. */
export async function toMissingChunks(db: Database, request: BackfillRequest, now: number): Promise<Chunk[]> {
  const { job, chunks } = request
  const ledger = openLedger(db, job.dataset)
  const byId = new Map<string, readonly Buckets[]>()
  for (const { within, entities } of toDue(request, now)) {
    const keys = entities.map(({ key }) => key)
    const missing = await ledger.missing(keys, { expected: [within], seconds: toSeconds(request) })
    for (const { id, key } of entities) byId.set(id, missing.get(key) ?? [])
  }
  return chunks.filter(({ payload }) =>
    payload.entities?.some((id) =>
      byId.get(id)?.some((run) => {
        const { from, to } = toTimes(run, job.dataset.cadence)
        return from < payload.to && to > payload.from
      }),
    ),
  )
}

/** Returns the same jobs with other ids and with `again` set, so that covered data is collected again. */
export const toRepeated = (chunks: readonly Chunk[]): Chunk[] =>
  chunks.map(({ id, payload }) => ({ id: `${id}.again`, payload: { ...payload, again: true } }))
