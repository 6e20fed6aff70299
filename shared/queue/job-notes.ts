import type { Job as QueuedJob } from 'bullmq'
import { z } from 'zod'
import type { JobPayload, JobReport } from './queues.ts'
import { askRedis } from './queues.ts'

export type Queued = QueuedJob<JobPayload, JobReport>

const notes = z.object({
  /** When the first of its tries failed, in Unix milliseconds. */
  failingSince: z.number().optional(),
  crashes: z.object({ seen: z.number(), judged: z.number(), blamed: z.number(), ended: z.number() }).optional(),
})

/** What is remembered of a queued job between its tries, in its `progress`. */
export type JobNotes = z.infer<typeof notes>

export function readNotes(queued: Queued): JobNotes {
  const read = notes.safeParse(queued.progress)
  return read.success ? read.data : {}
}

/** @throws DataError `storage` */
export async function addNotes(queued: Queued, more: JobNotes): Promise<void> {
  await askRedis('notes of a job', () => queued.updateProgress({ ...readNotes(queued), ...more }))
}

/** A job that is to blame for so many crashes is dead. */
export const MOST_BLAMED = 3
/** One that ran in so many crashes is dead whoever is to blame: two such jobs would clear each other for ever. */
export const MOST_JUDGED = 10

/** Whether a dead job is dead because it kills the workers that run it. */
export function isPoison(queued: Queued): boolean {
  const { crashes } = readNotes(queued)
  return crashes !== undefined && (crashes.blamed >= MOST_BLAMED || crashes.judged >= MOST_JUDGED)
}
