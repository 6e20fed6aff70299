import type { JobReport } from '../../shared/queue/queues.ts'
import { PendingError } from '../../workers/run/pending.ts'

/** For `catch`: what an attempt stored that would be tried again for the rest. Any other failure stays one. */
export function toPendingReport(error: unknown): JobReport {
  if (error instanceof PendingError) return error.report
  throw error
}
