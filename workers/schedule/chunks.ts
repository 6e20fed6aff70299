import { toId } from '../../shared/ids.ts'
import { INTERVAL_SECONDS, toBucketStart } from '../../shared/intervals.ts'
import { type RangePayload, toSlotName } from '../../shared/queue/queues.ts'
import type { Entity, Job, Range } from '../job/define.ts'

/** One piece of a back-fill: its job id follows from what it covers, so planning twice plans the same jobs. */
export interface Chunk {
  readonly id: string
  readonly payload: RangePayload
}

/**
 * Cuts a range into chunk jobs: groups of entities by windows of time on a fixed grid, oldest window first, so that
 * the same window of the same entities is the same job whoever plans it and whenever.
 */
export function planChunks(job: Job, entities: readonly Entity[], range: Range): Chunk[] {
  if (job.history === undefined) return []
  const groups: (readonly Entity[])[] = []
  for (let at = 0; at < entities.length; at += job.history.chunkEntities) {
    groups.push(entities.slice(at, at + job.history.chunkEntities))
  }
  return toWindows(toWholeBuckets(range), job.history.chunkPoints).flatMap(([from, to]) =>
    groups.map((group) => toChunk(job, group, { from, to, interval: range.interval })),
  )
}

/** A range that ends inside a bucket ends with that bucket, so that its jobs are the same until the bucket is over. */
function toWholeBuckets(range: Range): Range {
  const step = INTERVAL_SECONDS[range.interval] * 1000
  return { ...range, to: toBucketStart(range.to - 1, range.interval) + step }
}

function toWindows(range: Range, points: number): [number, number][] {
  const width = points * INTERVAL_SECONDS[range.interval] * 1000
  const windows: [number, number][] = []
  for (let at = Math.floor(range.from / width) * width; at < range.to; at += width) {
    windows.push([Math.max(at, range.from), Math.min(at + width, range.to)])
  }
  return windows
}

function toChunk(job: Job, group: readonly Entity[], range: Range): Chunk {
  const entities = group.map((entity) => entity.id)
  const groupName = toId(...entities).slice(0, 8)
  const id = [job.name, range.interval, toSlotName(range.from), toSlotName(range.to), groupName].join('.')
  return { id, payload: { kind: 'range', ...range, entities } }
}
