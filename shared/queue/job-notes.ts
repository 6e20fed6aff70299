import type { Job as QueuedJob } from 'bullmq'
import { z } from 'zod'
import { callRedis, type JobPayload, type JobReport } from './queues.ts'

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

/** A job fails permanently after this number of crashes that it caused. */
export const MOST_BLAMED = 3
/**
 * A job that was running in this number of crashes fails permanently, regardless of the cause. Otherwise each of two
 * such jobs could always be taken for the cause of the other's crashes.
 */
export const MOST_JUDGED = 10

/** Whether a job failed permanently because it crashes its workers. */
export function isPoison(queued: Queued): boolean {
  const { crashes } = readNotes(queued)
  return crashes !== undefined && (crashes.blamed >= MOST_BLAMED || crashes.judged >= MOST_JUDGED)
}
