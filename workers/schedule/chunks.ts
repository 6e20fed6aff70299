import { toBatches } from '../../shared/group-by.ts'
import { toId } from '../../shared/ids.ts'
import { HISTORY_START, INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { type RangePayload, toSlotName } from '../../shared/queue/queues.ts'
import { isThereAt, untilEnd } from '../../shared/registry/ends.ts'
import type { Entity, Job, Range } from '../job/define-job.ts'

/**
 * A range cut to the size of one job. The job id is derived from the content, so repeated planning results in the same
 * jobs.
 */
export interface Chunk {
  readonly id: string
  readonly payload: RangePayload
}

/**
 * Cuts a range into chunk jobs: groups of entities by ranges on a fixed grid, oldest range first. The same range of the
 * same entities is always the same job. Entities that ended before a cut are not part of its jobs. If all entities of a
 * job end within the cut, the job's range ends with the last of them.
 */
export function planChunks(job: Job, entities: readonly Entity[], range: Range): Chunk[] {
  if (job.history === undefined) return []
  const groups = toBatches(entities, job.history.chunkEntities)
  return cutOnGrid(toFullBuckets(range), job.history.chunkPoints).flatMap((cut) =>
    groups.flatMap((group) => toChunk(job, group, cut)),
  )
}

/**
 * Extends a range to whole buckets, but not before the start of all history. Jobs then stay the same until the bucket
 * is over, and steps align with those of other ranges.
 */
export function toFullBuckets(range: Range): Range {
  const step = INTERVAL_SECONDS[range.interval] * 1000
  const from = Math.max(toBucketStart(range.from, range.interval), Math.min(range.from, Date.parse(HISTORY_START)))
  return { ...range, from, to: toBucketStart(range.to - 1, range.interval) + step }
}

/** Cuts a range at every `points` steps of its interval, counted from 1970. */
function cutOnGrid(range: Range, points: number): Range[] {
  const width = points * INTERVAL_SECONDS[range.interval] * 1000
  const cuts: Range[] = []
  for (let at = Math.floor(range.from / width) * width; at < range.to; at += width) {
    cuts.push({ ...range, from: Math.max(at, range.from), to: Math.min(at + width, range.to) })
  }
  return cuts
}

function toChunk(job: Job, group: readonly Entity[], cut: Range): Chunk[] {
  const there = group.filter((entity) => isThereAt(entity, cut.from))
  if (there.length === 0) return []
  const range = { ...cut, to: Math.max(...there.map((entity) => untilEnd(cut, entity).to)) }
  const entities = there.map((entity) => entity.id)
  const groupName = toId(...entities).slice(0, 8)
  const id = [job.name, range.interval, toSlotName(range.from), toSlotName(range.to), groupName].join('.')
  return [{ id, payload: { kind: 'range', ...range, entities } }]
}
