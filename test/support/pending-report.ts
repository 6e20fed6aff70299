import type { JobReport } from '../../shared/queue/queues.ts'
import { PartialFailureError } from '../../workers/run/retries.ts'

/** For `catch`: what an attempt stored that would be tried again for the rest. Any other failure stays one. */
export function toPendingReport(error: unknown): JobReport {
  if (error instanceof PartialFailureError) return error.report
  throw error
}
