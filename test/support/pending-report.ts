import type { JobReport } from '../../shared/queue/queues.ts'
import { PendingError } from '../../workers/run/pending.ts'

/** For `catch`: returns the report of a partly failed attempt. Rethrows any other failure. */
export function toPendingReport(error: unknown): JobReport {
  if (error instanceof PendingError) return error.report
  throw error
}
