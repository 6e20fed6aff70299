import type { Job as QueuedJob } from 'bullmq'
import { z } from 'zod'
import type { JobPayload, JobReport } from './queues.ts'
import { callRedis } from './queues.ts'

export type Queued = QueuedJob<JobPayload, JobReport>

const notes = z.object({
  /** Time of the first failed attempt, in Unix milliseconds. */
  failingSince: z.number().optional(),
  crashes: z.object({ seen: z.number(), judged: z.number(), blamed: z.number(), ended: z.number() }).optional(),
})

/** State of a queued job between its attempts, stored in its `progress`. */
export type JobNotes = z.infer<typeof notes>

export function readNotes(queued: Queued): JobNotes {
  const read = notes.safeParse(queued.progress)
  return read.success ? read.data : {}
}

/** @throws DataError `storage` */
export async function addNotes(queued: Queued, more: JobNotes): Promise<void> {
  await callRedis('notes of a job', () => queued.updateProgress({ ...readNotes(queued), ...more }))
}

/** A job fails for good after this many crashes that it caused. */
export const MOST_BLAMED = 3
/**
 * A job that ran in this many crashes fails for good regardless of blame. Otherwise two such jobs could exonerate each
 * other forever.
 */
export const MOST_JUDGED = 10

/** Whether a job failed for good because it crashes its workers. */
export function isPoison(queued: Queued): boolean {
  const { crashes } = readNotes(queued)
  return crashes !== undefined && (crashes.blamed >= MOST_BLAMED || crashes.judged >= MOST_JUDGED)
}
