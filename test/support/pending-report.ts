import type { JobReport } from '../../shared/queue/queues.ts'
import { PartialFailureError } from '../../workers/run/runner.ts'

/** For `catch`: returns the report of a partly failed attempt. Rethrows any other failure. */
export function toPendingReport(error: unknown): JobReport {
  if (error instanceof PartialFailureError) return error.report
  throw error
}
