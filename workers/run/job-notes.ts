import type { Job as QueuedJob } from 'bullmq'
import { z } from 'zod'
import type { JobPayload, JobReport } from '../../shared/queue/queues.ts'

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

export async function addNotes(queued: Queued, more: JobNotes): Promise<void> {
  await queued.updateProgress({ ...readNotes(queued), ...more })
}
