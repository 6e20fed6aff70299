import type { JobReport } from '../../shared/queue/queues.ts'
import type { Collector, Job } from '../../workers/job/define-job.ts'
import { PendingError } from '../../workers/run/pending.ts'
import { type JobContext, runJob } from '../../workers/run/run-job.ts'

/** One attempt of a job: what it stored, and the ids of the entities for which it would be tried again. */
export async function runOnce(
  job: Job,
  collectors: readonly Collector[],
  context: JobContext,
  data: unknown,
): Promise<JobReport & { pending: readonly string[] }> {
  try {
    return { ...(await runJob(job, collectors, context, data)), pending: [] }
  } catch (error) {
    if (!(error instanceof PendingError)) throw error
    return { ...error.report, pending: error.entities }
  }
}
