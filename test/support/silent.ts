import { createLog } from '../../shared/telemetry/log.ts'

/** A log that says nothing. */
export const silent = createLog('test', 'silent')
